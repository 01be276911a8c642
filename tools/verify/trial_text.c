/* SPDX-License-Identifier: Apache-2.0
 * The text form of a trial: a SHAPE for the library, and words that only trials have. */
#include "layout.h"
#include "number.h"
#include "trial.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const inputs_names[TRIAL_INPUTS] = {"rising", "steep", "equal", "ones", "nan-rows", "large", "outliers"};

static const char *const winner_names[TRIAL_WINNERS] = {"first", "middle", "last", "thirds", "all", "rise"};

const char *trial_inputs_name(enum trial_inputs inputs) { return inputs < TRIAL_INPUTS ? inputs_names[inputs] : NULL; }

void trial_init(struct trial *trial, const clattn_problem *problem)
{
    memset(trial, 0, sizeof *trial);
    trial->problem = *problem;
    trial->batch = problem->batch;
    trial->seq_q = problem->seq_q;
    trial->seq_kv = problem->seq_kv;
    trial->offset = problem->offset;
    trial->scale = problem->scale;
    trial->window_left = problem->window.left;
    trial->window_right = problem->window.right;
    trial->mask_columns = problem->mask.columns;
    trial->bias_columns = problem->bias.columns;
    trial->seed = 1;
    trial->shift = -1;
    trial->repeats = 1;
}

double trial_work(const struct trial *trial)
{
    const double rows = (double)trial->batch * (double)trial->problem.heads_q * (double)trial->seq_q * trial->repeats;
    return rows * (double)trial->seq_kv * (double)(trial->problem.head_dim_qk + trial->problem.head_dim_v);
}

static clattn_status refuse(clattn_error *error, const char *word, const char *why)
{
    if (error) {
        clattn_error_init(error);
        error->status = CLATTN_INVALID_ARGUMENT;
        snprintf(error->field, sizeof error->field, "%.63s", word);
        snprintf(error->message, sizeof error->message, "shape word \"%s\": %s", word, why);
    }
    return CLATTN_INVALID_ARGUMENT;
}

static const char *value_of(const char *word, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool read_integer(const char *text, int64_t lowest, int64_t highest, int64_t *value)
{
    char *end;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *value >= lowest && *value <= highest;
}

static bool read_name(const char *name, const char *const *names, int count, int *number)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

struct own_words {
    bool has_call;
    int64_t batch, seq_q, seq_kv;
    int64_t seed, shift, repeats, mask_columns, bias_columns, mask_blocks, chunk;
    double slice, level, sink, value;
    bool has_sink, has_totals;
    int64_t total_q, total_kv;
    int inputs, winner;
    char layout[24], override[96];
};

static bool read_text(const char *value, char *out, size_t size) { return snprintf(out, size, "%s", value) < (int)size; }

static bool read_call(const char *value, struct own_words *own)
{
    own->has_call = number_read(&value, &own->batch) && *value++ == ',' && number_read(&value, &own->seq_q) &&
                    *value++ == ',' && number_read(&value, &own->seq_kv) && *value == '\0';
    return own->has_call;
}

static bool read_totals(const char *value, struct own_words *own)
{
    own->has_totals = number_read(&value, &own->total_q) && *value++ == ',' && number_read(&value, &own->total_kv) &&
                      *value == '\0' && own->total_q >= 0 && own->total_kv >= 0;
    return own->has_totals;
}

/* As fp32 holds it: inf and nan are numbers, one that becomes infinite by that is none. */
static bool read_float(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && (isinf(*value) || isnan(*value) || fabs(*value) <= (double)FLT_MAX);
}
static bool read_finite(const char *text, double *value) { return read_float(text, value) && isfinite(*value); }

static bool read_real(const char *text, double *value) { return read_finite(text, value) && *value >= 0.0; }

/* The same for words that are plain numbers. */
static bool take_number(const char *word, struct own_words *own, const char **why)
{
    const struct {
        const char *name;
        int64_t *value, lowest, highest;
        const char *why;
    } forms[] = {
        {"seed", &own->seed, 0, INT64_MAX, "expected seed=NUMBER"},
        {"shift", &own->shift, -1, 31, "expected shift=0 ... 31"},
        {"repeats", &own->repeats, 1, 1000, "expected repeats=1 ... 1000"},
        {"mask-columns", &own->mask_columns, -1, INT32_MAX, "expected mask-columns=KEYS"},
        {"bias-columns", &own->bias_columns, -1, INT32_MAX, "expected bias-columns=KEYS"},
        {"mask-blocks", &own->mask_blocks, 1, INT32_MAX, "expected mask-blocks=QUERIES AND KEYS OF A BLOCK"},
        {"chunk", &own->chunk, -1, INT32_MAX, "expected chunk=KEYS, -1 to split no keys"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *value = value_of(word, forms[i].name);
        if (value) {
            *why = read_integer(value, forms[i].lowest, forms[i].highest, forms[i].value) ? NULL : forms[i].why;
            return true;
        }
    }
    return false;
}

/* True when the word is a trial's own; *why is set when it is a wrong one. */
static bool take_own(const char *word, struct own_words *own, const char **why)
{
    const char *value;
    *why = NULL;
    if ((value = value_of(word, "call")) != NULL)
        *why = read_call(value, own) ? NULL : "expected call=BATCH,SEQ_Q,SEQ_KV";
    else if ((value = value_of(word, "inputs")) != NULL)
        *why = read_name(value, inputs_names, TRIAL_INPUTS, &own->inputs)
                   ? NULL
                   : "expected rising, steep, equal, ones, nan-rows, large or outliers";
    else if ((value = value_of(word, "winner")) != NULL)
        *why = read_name(value, winner_names, TRIAL_WINNERS, &own->winner)
                   ? NULL
                   : "expected first, middle, last, thirds, all or rise";
    else if ((value = value_of(word, "level")) != NULL)
        *why = read_finite(value, &own->level) ? NULL : "expected level=NUMBER, the size of products of queries and keys";
    else if ((value = value_of(word, "sink")) != NULL)
        *why = (own->has_sink = read_float(value, &own->sink)) ? NULL : "expected sink=NUMBER, nan and inf included";
    else if ((value = value_of(word, "value")) != NULL)
        *why = read_finite(value, &own->value) ? NULL : "expected value=NUMBER, the size of V";
    else if ((value = value_of(word, "totals")) != NULL)
        *why = read_totals(value, own) ? NULL : "expected totals=QUERIES,KEYS, rows of packed tensors";
    else if ((value = value_of(word, "layout")) != NULL)
        *why = read_text(value, own->layout, sizeof own->layout) ? NULL : "there is no layout of that name";
    else if ((value = value_of(word, "override")) != NULL)
        *why = read_text(value, own->override, sizeof own->override) ? NULL : "too long";
    else if ((value = value_of(word, "slice")) != NULL)
        *why = read_real(value, &own->slice) ? NULL : "expected slice=MILLISECONDS";
    else
        return take_number(word, own, why);
    return true;
}

/* The trial's own words go to *own, the others, in their order, to `shape`. */
static clattn_status split(const char *text, char *shape, size_t size, struct own_words *own, clattn_error *error)
{
    size_t used = 0;
    while (*(text += strspn(text, " \t\n"))) {
        const size_t length = strcspn(text, " \t\n");
        char word[128];
        const char *why;
        if (length >= sizeof word || used + length + 2 > size)
            return refuse(error, "shape", "too long");
        memcpy(word, text, length);
        word[length] = '\0';
        text += length;
        if (take_own(word, own, &why)) {
            if (why)
                return refuse(error, word, why);
        } else {
            used += (size_t)snprintf(shape + used, size - used, "%s ", word);
        }
    }
    return CLATTN_SUCCESS;
}

clattn_status trial_parse(const char *text, struct trial *trial, clattn_error *error)
{
    struct own_words own = {.seed = 1, .shift = -1, .repeats = 1, .mask_columns = -1, .bias_columns = -1};
    char shape[512] = "";
    clattn_problem problem;
    clattn_status status = split(text, shape, sizeof shape, &own, error);
    if (status == CLATTN_SUCCESS)
        status = clattn_problem_parse(shape, &problem, error);
    if (status != CLATTN_SUCCESS)
        return status;
    if (own.has_sink && !problem.sinks)
        return refuse(error, "sink", "the shape has no \"sinks\"");
    if (own.has_totals && !problem.packed.starts)
        return refuse(error, "totals", "the shape is not \"packed\"");
    if (own.has_totals) {
        problem.packed.total_q = own.total_q;
        problem.packed.total_kv = own.total_kv;
    }
    if (own.layout[0] && !layout_apply(own.layout, &problem))
        return refuse(error, own.layout, "there is no layout of that name");
    trial_init(trial, &problem);
    if (own.has_call && (own.batch < 0 || own.batch > problem.batch || own.seq_q < 0 || own.seq_q > problem.seq_q ||
                         own.seq_kv < 0 || own.seq_kv > problem.seq_kv))
        return refuse(error, "call", "past the sizes of the shape, which are its bounds");
    if (own.has_call) {
        trial->batch = own.batch;
        trial->seq_q = own.seq_q;
        trial->seq_kv = own.seq_kv;
    }
    trial->mask_columns = own.mask_columns;
    trial->bias_columns = own.bias_columns;
    trial->mask_blocks = own.mask_blocks;
    trial->chunk = own.chunk;
    trial->slice = own.slice;
    trial->seed = (uint64_t)own.seed;
    trial->shift = (int)own.shift;
    trial->repeats = (int)own.repeats;
    trial->inputs = (enum trial_inputs)own.inputs;
    trial->level = own.level;
    trial->winner = (enum trial_winner)own.winner;
    trial->has_sink = own.has_sink;
    trial->sink = (float)own.sink;
    trial->value = (float)own.value;
    trial->has_totals = own.has_totals;
    memcpy(trial->layout, own.layout, sizeof trial->layout);
    memcpy(trial->override, own.override, sizeof trial->override);
    return CLATTN_SUCCESS;
}

static void add(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void trial_print(const struct trial *t, char *text, size_t size)
{
    if (size == 0 || clattn_problem_print(&t->problem, text, size, NULL) != CLATTN_SUCCESS)
        return;
    if (t->layout[0])
        add(text, size, " layout=%s", t->layout);
    if (t->batch != t->problem.batch || t->seq_q != t->problem.seq_q || t->seq_kv != t->problem.seq_kv)
        add(text, size, " call=%" PRId64 ",%" PRId64 ",%" PRId64, t->batch, t->seq_q, t->seq_kv);
    if (t->mask_columns >= 0)
        add(text, size, " mask-columns=%" PRId64, t->mask_columns);
    if (t->bias_columns >= 0)
        add(text, size, " bias-columns=%" PRId64, t->bias_columns);
    if (t->mask_blocks > 0)
        add(text, size, " mask-blocks=%" PRId64, t->mask_blocks);
    if (t->chunk != 0)
        add(text, size, " chunk=%" PRId64, t->chunk);
    if (t->slice > 0.0)
        add(text, size, " slice=%g", t->slice);
    if (t->inputs != TRIAL_RISING)
        add(text, size, " inputs=%s", inputs_names[t->inputs]);
    if (t->level != 0.0)
        add(text, size, " level=%.9g winner=%s", t->level, winner_names[t->winner]);
    if (t->has_sink)
        add(text, size, " sink=%.9g", (double)t->sink);
    if (t->value != 0.0f)
        add(text, size, " value=%.9g", (double)t->value);
    if (t->has_totals)
        add(text, size, " totals=%" PRId64 ",%" PRId64, t->problem.packed.total_q, t->problem.packed.total_kv);
    if (t->shift >= 0)
        add(text, size, " shift=%d", t->shift);
    if (t->repeats > 1)
        add(text, size, " repeats=%d", t->repeats);
    if (t->override[0])
        add(text, size, " override=%s", t->override);
    add(text, size, " seed=%" PRIu64, t->seed);
}
