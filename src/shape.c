/* SPDX-License-Identifier: Apache-2.0
 * The SHAPE text: a problem as one line that tools, tests and tuning tables share. docs/semantics.md has the grammar. */
#include "arithmetic.h"
#include "problem.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    clattn_problem *problem;
    bool has_hkv, has_k, has_dv;
    char mask_dims[8], bias_dims[8]; /* which of b, h, q, k they have; the others are broadcast */
};

static clattn_status refuse(clattn_error *error, const char *word, size_t length, const char *why)
{
    char field[64];
    const size_t shown = length < sizeof field - 1 ? length : sizeof field - 1;
    memcpy(field, word, shown);
    field[shown] = '\0';
    return cla_fail(error, CLATTN_INVALID_ARGUMENT, field, "shape word \"%s\": %s", field, why);
}

/* Digits to the end of the word. */
static bool read_number(const char *text, const char *end, int64_t *value)
{
    const bool negative = text < end && *text == '-';
    int64_t number = 0;
    text += negative;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || number > INT64_MAX / 10 - 9)
            return false;
        number = number * 10 + (*text - '0');
    }
    *value = negative ? -number : number;
    return true;
}

static bool is_word(const char *word, size_t length, const char *expected)
{
    return strlen(expected) == length && memcmp(word, expected, length) == 0;
}

static bool has_prefix(const char *word, size_t length, const char *prefix, const char **rest)
{
    const size_t size = strlen(prefix);
    *rest = word + size;
    return length > size && memcmp(word, prefix, size) == 0;
}

static bool read_type(const char *word, const char *end, clattn_type *type)
{
    const size_t length = (size_t)(end - word);
    *type = is_word(word, length, "fp32")   ? CLATTN_FP32
            : is_word(word, length, "fp16") ? CLATTN_FP16
            : is_word(word, length, "bf16") ? CLATTN_BF16
                                            : 0;
    return *type != 0;
}

/* "fp16" for all four, or "q=fp32" "k=..." "v=..." "kv=..." "o=..." one at a time. False: not a type word. */
static bool take_type(struct shape *s, const char *word, size_t length)
{
    const struct {
        const char *prefix;
        bool q, k, v, o;
    } forms[] = {{"q=", 1, 0, 0, 0},  {"k=", 0, 1, 0, 0}, {"v=", 0, 0, 1, 0},
                 {"kv=", 0, 1, 1, 0}, {"o=", 0, 0, 0, 1}, {"", 1, 1, 1, 1}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *rest;
        clattn_type type;
        if (has_prefix(word, length, forms[i].prefix, &rest) && read_type(rest, word + length, &type)) {
            clattn_problem *p = s->problem;
            p->q.type = forms[i].q ? type : p->q.type;
            p->k.type = forms[i].k ? type : p->k.type;
            p->v.type = forms[i].v ? type : p->v.type;
            p->o.type = forms[i].o ? type : p->o.type;
            return true;
        }
    }
    return false;
}

/* "b2", "hq8" and so on. False: not a size word. */
static bool take_size(struct shape *s, const char *word, size_t length)
{
    clattn_problem *p = s->problem;
    const struct {
        const char *prefix;
        int64_t *value;
        bool *seen;
    } forms[] = {{"hq", &p->heads_q, NULL},
                 {"hkv", &p->heads_kv, &s->has_hkv},
                 {"h", &p->heads_q, NULL},
                 {"b", &p->batch, NULL},
                 {"q", &p->seq_q, NULL},
                 {"k", &p->seq_kv, &s->has_k},
                 {"dv", &p->head_dim_v, &s->has_dv},
                 {"d", &p->head_dim_qk, NULL},
                 {"n", &p->seq_q, NULL}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *rest;
        int64_t value;
        if (has_prefix(word, length, forms[i].prefix, &rest) && read_number(rest, word + length, &value)) {
            *forms[i].value = value;
            if (forms[i].seen)
                *forms[i].seen = true;
            return true;
        }
    }
    return false;
}

/* "top-left", "bottom-right" or an offset. */
static bool read_corner(const char *text, const char *end, clattn_problem *problem)
{
    if (is_word(text, (size_t)(end - text), "top-left"))
        problem->corner = CLATTN_TOP_LEFT;
    else if (is_word(text, (size_t)(end - text), "bottom-right"))
        problem->corner = CLATTN_BOTTOM_RIGHT;
    else if (read_number(text, end, &problem->offset))
        problem->corner = CLATTN_EXPLICIT;
    else
        return false;
    return true;
}

static clattn_status take_corner(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *rest = NULL;
    if (is_word(word, length, "causal") || has_prefix(word, length, "causal=", &rest))
        s->problem->causal = true;
    else
        has_prefix(word, length, "corner=", &rest);
    if (rest && !read_corner(rest, word + length, s->problem))
        return refuse(error, word, length, "expected top-left, bottom-right or a whole number behind =");
    return CLATTN_SUCCESS;
}

static clattn_status take_window(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *const end = word + length, *const left = word + strlen("window="), *comma = memchr(word, ',', length);
    if (!comma || comma < left || !read_number(left, comma, &s->problem->window.left) ||
        !read_number(comma + 1, end, &s->problem->window.right) || s->problem->window.left < -1 ||
        s->problem->window.right < -1)
        return refuse(error, word, length, "expected window=LEFT,RIGHT in keys, -1 for an open side");
    return CLATTN_SUCCESS;
}

/* "qk", "bhqk": a choice of these letters, or "1": none of them. */
static bool read_dims(const char *text, const char *end, char dims[8])
{
    size_t count = 0;
    dims[0] = '\0';
    if (is_word(text, (size_t)(end - text), "1"))
        return true;
    for (; text < end; text++) {
        if (!strchr("bhqk", *text) || strchr(dims, *text))
            return false;
        dims[count++] = *text;
        dims[count] = '\0';
    }
    return count > 0;
}

static clattn_status take_mask(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *rest;
    const bool is_mask = word[0] == 'm';
    char *dims = is_mask ? s->mask_dims : s->bias_dims;
    *(is_mask ? &s->problem->mask.present : &s->problem->bias.present) = true;
    if (is_word(word, length, is_mask ? "mask" : "bias"))
        memcpy(dims, "qk", 3);
    else if (!has_prefix(word, length, is_mask ? "mask=" : "bias=", &rest) || !read_dims(rest, word + length, dims))
        return refuse(error, word, length, "expected the dimensions that it has, such as mask=qk, mask=bk or bias=bhqk");
    return CLATTN_SUCCESS;
}

/* "kv-lengths" (int32) and "kv-lengths=int64", and so on. False: no such word. */
static bool take_integers(struct shape *s, const char *word, size_t length)
{
    clattn_problem *p = s->problem;
    const struct {
        const char *name;
        clattn_integer *type;
    } forms[] = {
        {"q-lengths", &p->q_lengths}, {"kv-lengths", &p->kv_lengths}, {"offsets", &p->offsets}, {"packed", &p->packed.starts}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *rest;
        if (is_word(word, length, forms[i].name))
            *forms[i].type = CLATTN_INT32;
        else if (has_prefix(word, length, forms[i].name, &rest) && is_word(rest, (size_t)(word + length - rest), "=int64"))
            *forms[i].type = CLATTN_INT64;
        else
            continue;
        if (forms[i].type == &p->offsets)
            p->corner = CLATTN_EXPLICIT;
        return true;
    }
    return false;
}

/* Words without a value. False: no such word. */
static bool take_flag(struct shape *s, const char *word, size_t length)
{
    clattn_problem *p = s->problem;
    const struct {
        const char *name;
        bool *flag;
    } forms[] = {
        {"lse", &p->lse.present}, {"alibi", &p->alibi.present}, {"sinks", &p->sinks}, {"bias-factors", &p->bias.factors}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (is_word(word, length, forms[i].name)) {
            *forms[i].flag = true;
            return true;
        }
    return false;
}

static const char *const score_names[] = {"none", "raw", "softcap", "bias", "softmax"};

/* "scores=softmax", and "score-heads=FIRST,COUNT" (a count of 0: the rest). */
static clattn_status take_scores(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *rest, *const end = word + length, *const comma = memchr(word, ',', length);
    clattn_problem *p = s->problem;
    if (has_prefix(word, length, "scores=", &rest)) {
        for (size_t i = 0; i < sizeof score_names / sizeof *score_names; i++)
            if (is_word(rest, (size_t)(end - rest), score_names[i])) {
                p->scores.kind = (clattn_scores_kind)i;
                return CLATTN_SUCCESS;
            }
        return refuse(error, word, length, "expected raw, softcap, bias, softmax or none behind =");
    }
    if (!has_prefix(word, length, "score-heads=", &rest) || !comma || !read_number(rest, comma, &p->scores.first_head) ||
        !read_number(comma + 1, end, &p->scores.heads))
        return refuse(error, word, length, "expected score-heads=FIRST,COUNT in query heads, a count of 0 for the rest");
    return CLATTN_SUCCESS;
}

static clattn_status take_float(const char *name, float *value, const char *word, size_t length, clattn_error *error)
{
    const char *end, *const digits = word + strlen(name);
    const double number = cla_parse_double(digits, &end);
    if (end != word + length || end == digits)
        return refuse(error, word, length, "expected a number behind =");
    *value = (float)number;
    return CLATTN_SUCCESS;
}

static bool is_any(const char *word, size_t length, const char *name)
{
    const char *rest;
    return is_word(word, length, name) || (has_prefix(word, length, name, &rest) && *rest == '=');
}

static clattn_status take_word(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *rest;
    clattn_problem *p = s->problem;
    if (is_any(word, length, "causal") || has_prefix(word, length, "corner=", &rest))
        return take_corner(s, word, length, error);
    if (has_prefix(word, length, "window=", &rest))
        return take_window(s, word, length, error);
    if (has_prefix(word, length, "scale=", &rest))
        return take_float("scale=", &p->scale, word, length, error);
    if (has_prefix(word, length, "softcap=", &rest))
        return take_float("softcap=", &p->softcap, word, length, error);
    if (is_any(word, length, "scores") || is_any(word, length, "score-heads"))
        return take_scores(s, word, length, error);
    if (is_any(word, length, "mask") || is_any(word, length, "bias"))
        return take_mask(s, word, length, error);
    if (has_prefix(word, length, "bias-type=", &rest) && read_type(rest, word + length, &p->bias.type))
        return CLATTN_SUCCESS;
    if (!take_flag(s, word, length) && !take_integers(s, word, length) && !take_type(s, word, length) &&
        !take_size(s, word, length))
        return refuse(
            error, word, length,
            "not understood; a shape looks like \"b2 hq8 hkv2 q37 k53 d64 dv64 fp16 causal=bottom-right scale=0.5 lse\"");
    return CLATTN_SUCCESS;
}

/* Contiguous over the dimensions that it has, broadcast over the others. */
static void lay_out_dims(const clattn_problem *p, const char *dims, int64_t *batch, int64_t *head, int64_t *seq_q,
                         int64_t *seq_kv)
{
    int64_t step = 1;
    int64_t *const strides[] = {seq_kv, seq_q, head, batch};
    const int64_t sizes[] = {p->seq_kv, p->seq_q, p->heads_q, p->batch};
    for (int i = 0; i < 4; i++) {
        const bool has = strchr(dims, "kqhb"[i]) != NULL;
        *strides[i] = has ? step : 0;
        step = has ? cla_times(step, sizes[i]) : step;
    }
}

/* Sets what depends on sizes, after all words are read. */
static void complete(struct shape *s)
{
    clattn_problem *p = s->problem;
    p->heads_kv = s->has_hkv ? p->heads_kv : p->heads_q;
    p->seq_kv = s->has_k ? p->seq_kv : p->seq_q;
    p->head_dim_v = s->has_dv ? p->head_dim_v : p->head_dim_qk;
    p->packed.total_q = p->packed.starts ? cla_times(p->batch, p->seq_q) : 0;
    p->packed.total_kv = p->packed.starts ? cla_times(p->batch, p->seq_kv) : 0;
    clattn_problem_set_layout(p, CLATTN_BHSD);
    if (p->mask.present)
        lay_out_dims(p, s->mask_dims, &p->mask.strides.batch, &p->mask.strides.head, &p->mask.strides.row,
                     &p->mask.strides.column);
    if (p->bias.present)
        lay_out_dims(p, s->bias_dims, &p->bias.strides.batch, &p->bias.strides.head, &p->bias.strides.row,
                     &p->bias.strides.column);
    p->alibi.strides.head = p->alibi.present;
}

static clattn_status parse(const char *text, clattn_problem *problem, clattn_error *error)
{
    struct shape s = {.problem = problem};
    clattn_problem_init(problem);
    problem->batch = problem->heads_q = 1;
    problem->seq_q = problem->head_dim_qk = -1;
    while (*(text += strspn(text, " \t\n"))) {
        const size_t length = strcspn(text, " \t\n");
        TRY(take_word(&s, text, length, error));
        text += length;
    }
    if (problem->seq_q < 0 || problem->head_dim_qk < 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, problem->seq_q < 0 ? "q" : "d",
                        "the shape lacks %s, as in \"h8 q1024 k1024 d64\"",
                        problem->seq_q < 0 ? "qN (query rows)" : "dN (head_dim)");
    complete(&s);
    return CLATTN_SUCCESS;
}

/* Parses the whole problem, then copies the fields that the caller's struct has; fails if one that it lacks is set. */
clattn_status clattn_problem_parse_sized(const char *text, clattn_problem *problem, size_t size, clattn_error *error)
{
    clattn_problem full, fresh;
    cla_clear(error);
    if (!text || !problem)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, text ? "problem" : "shape", "%s is NULL", text ? "problem" : "shape");
    clattn_problem_init_sized(problem, size);
    TRY(parse(text, &full, error));
    clattn_problem_init(&fresh);
    if (size < sizeof full && memcmp((const char *)&full + size, (const char *)&fresh + size, sizeof full - size) != 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "shape",
                        "the shape has options that this program's clattn_problem is too old for");
    memcpy(problem, &full, size < sizeof full ? size : sizeof full);
    problem->struct_size = size;
    return CLATTN_SUCCESS;
}

static void print_dims(struct text *text, const char *name, int64_t batch, int64_t head, int64_t seq_q, int64_t seq_kv)
{
    const bool none = !batch && !head && !seq_q && !seq_kv;
    cla_text_add(text, " %s=%s%s%s%s%s", name, batch ? "b" : "", head ? "h" : "", seq_q ? "q" : "", seq_kv ? "k" : "",
                 none ? "1" : "");
}

static void print_integers(struct text *text, const char *name, clattn_integer type)
{
    if (type)
        cla_text_add(text, " %s%s", name, type == CLATTN_INT64 ? "=int64" : "");
}

static void print_float(struct text *text, const char *name, float value)
{
    cla_text_add(text, " %s=", name);
    cla_text_add_float(text, value);
}

static void print_position(struct text *text, const clattn_problem *p)
{
    if (p->causal || p->corner != CLATTN_TOP_LEFT) {
        cla_text_add(text, p->causal ? " causal=" : " corner=");
        if (p->corner == CLATTN_EXPLICIT)
            cla_text_add(text, "%" PRId64, p->offset);
        else
            cla_text_add(text, "%s", cla_corner_name(p->corner));
    }
    if (p->window.left >= 0 || p->window.right >= 0)
        cla_text_add(text, " window=%" PRId64 ",%" PRId64, p->window.left, p->window.right);
}

static void print_options(struct text *text, const clattn_problem *p)
{
    if (!isnan(p->scale))
        print_float(text, "scale", p->scale);
    if (p->softcap != 0.0f)
        print_float(text, "softcap", p->softcap);
    if (p->mask.present)
        print_dims(text, "mask", p->mask.strides.batch, p->mask.strides.head, p->mask.strides.row, p->mask.strides.column);
    if (p->bias.present) {
        print_dims(text, "bias", p->bias.strides.batch, p->bias.strides.head, p->bias.strides.row, p->bias.strides.column);
        cla_text_add(text, "%s%s%s", p->bias.type == CLATTN_FP32 ? "" : " bias-type=",
                     p->bias.type == CLATTN_FP32 ? "" : cla_type_name(p->bias.type), p->bias.factors ? " bias-factors" : "");
    }
    print_integers(text, "q-lengths", p->q_lengths);
    print_integers(text, "kv-lengths", p->kv_lengths);
    print_integers(text, "offsets", p->offsets);
    print_integers(text, "packed", p->packed.starts);
    cla_text_add(text, "%s%s%s", p->alibi.present ? " alibi" : "", p->sinks ? " sinks" : "", p->lse.present ? " lse" : "");
    if (p->scores.kind > CLATTN_SCORES_NONE && p->scores.kind <= CLATTN_SCORES_SOFTMAX)
        cla_text_add(text, " scores=%s", score_names[p->scores.kind]);
    if (p->scores.first_head || p->scores.heads)
        cla_text_add(text, " score-heads=%" PRId64 ",%" PRId64, p->scores.first_head, p->scores.heads);
}

clattn_status clattn_problem_print(const clattn_problem *given, char *out, size_t size, size_t *needed)
{
    struct text text = {0};
    clattn_problem full, *const p = &full;
    clattn_problem_init(p);
    TRY(cla_struct_take("problem", given, CLA_PROBLEM_LEAST_SIZE, p, sizeof *p, NULL));
    cla_text_add(&text, "b%" PRId64 " hq%" PRId64 " hkv%" PRId64 " q%" PRId64 " k%" PRId64 " d%" PRId64 " dv%" PRId64, p->batch,
                 p->heads_q, p->heads_kv, p->seq_q, p->seq_kv, p->head_dim_qk, p->head_dim_v);
    if (p->q.type == p->k.type && p->q.type == p->v.type && p->q.type == p->o.type)
        cla_text_add(&text, " %s", cla_type_name(p->q.type));
    else
        cla_text_add(&text, " q=%s k=%s v=%s o=%s", cla_type_name(p->q.type), cla_type_name(p->k.type),
                     cla_type_name(p->v.type), cla_type_name(p->o.type));
    print_position(&text, p);
    print_options(&text, p);
    const clattn_status status = cla_text_out(&text, out, size, needed);
    cla_text_free(&text);
    return status;
}
