/* SPDX-License-Identifier: Apache-2.0 */
#include "run_options.h"

#include "arrays.h"
#include "half.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_OPTION = TRIAL_LAST_OUTPUT + 1 };

/* --------------------------------------------------------------------------------------------------------------- texts */

static bool read_corner(const char *text, clattn_problem *p)
{
    const bool top_left = strcmp(text, "top-left") == 0;
    if (top_left || strcmp(text, "bottom-right") == 0)
        p->corner = top_left ? CLATTN_TOP_LEFT : CLATTN_BOTTOM_RIGHT;
    return top_left || strcmp(text, "bottom-right") == 0;
}

static int set_corner(const struct run_options *o, clattn_problem *p)
{
    const char *const named = o->causal ? "--causal" : "--corner";
    if (o->causal && o->corner)
        return cli_fail("run", CLI_USAGE, "--corner", "--causal names the corner already; leave this out");
    if (o->offset && (o->causal || o->corner))
        return cli_fail("run", CLI_USAGE, "--offset", "%s says where the diagonal lies already; leave one of them out%s", named,
                        o->causal ? " (--causal takes a number too)" : "");
    if (o->corner && !read_corner(o->corner, p))
        return cli_fail("run", CLI_USAGE, "--corner", "'%s' is neither top-left nor bottom-right; --offset takes a number",
                        o->corner);
    p->causal = o->causal != NULL;
    if (o->corner || (o->causal && read_corner(o->causal, p)) || (!o->causal && !o->offset))
        return CLI_OK;
    p->corner = CLATTN_EXPLICIT;
    if (o->offset && !cli_read_integer(o->offset, &p->offset))
        return cli_fail("run", CLI_USAGE, "--offset", "'%s' is not a whole number", o->offset);
    if (o->causal && !cli_read_integer(o->causal, &p->offset))
        return cli_fail("run", CLI_USAGE, "--causal", "'%s' is neither top-left, bottom-right, nor the key position of query 0",
                        o->causal);
    return CLI_OK;
}

static int set_window(const char *text, clattn_problem *p)
{
    char left[32];
    const char *comma = strchr(text, ',');
    const size_t length = comma ? (size_t)(comma - text) : sizeof left;
    bool ok = length < sizeof left;
    if (ok) {
        memcpy(left, text, length);
        left[length] = '\0';
        ok = cli_read_integer(left, &p->window.left) && cli_read_integer(comma + 1, &p->window.right) && p->window.left >= -1 &&
             p->window.right >= -1;
    }
    return ok ? CLI_OK
              : cli_fail("run", CLI_USAGE, "--window",
                         "'%s': give keys to the left and to the right, such as 128,0; -1 is an open side", text);
}

int run_options_set(const struct run_options *o, clattn_problem *p)
{
    int code = set_corner(o, p);
    if (code == CLI_OK && o->window)
        code = set_window(o->window, p);
    p->softcap = (float)o->softcap;
    p->sinks = o->sink != NULL;
    p->alibi.present = o->alibi != NULL;
    p->mask.present = o->mask != NULL;
    p->bias.present = o->bias != NULL;
    if (code == CLI_OK && (o->cu_q != NULL) != (o->cu_k != NULL))
        code = cli_fail("run", CLI_USAGE, o->cu_q ? "--cu-k" : "--cu-q", "is missing: packed sequences need both");
    if (code != CLI_OK || o->scores[0] == NULL)
        return code;
    static const char *const kinds[] = {"raw", "softcap", "bias", "softmax"};
    for (int i = 0; i < 4; i++)
        if (strcmp(o->scores[0], kinds[i]) == 0) {
            p->scores.kind = (clattn_scores_kind)(i + 1);
            return CLI_OK;
        }
    return cli_fail("run", CLI_USAGE, "--scores", "'%s' is not a kind of scores; give raw, softcap, bias or softmax and a file",
                    o->scores[0]);
}

/* --------------------------------------------------------------------------------------------------------------- files */

/* The array's bytes, without copying them: the tensor owns them from here on. */
static void take(struct npy *array, struct trial_tensor *t)
{
    t->data = array->data;
    t->count = (int64_t)array->count;
    array->data = NULL;
}

static int wrong_shape(const char *option, const struct npy *array, const char *wanted)
{
    char shape[128];
    return cli_fail("run", CLI_USAGE, option, "its shape %s does not go with %s", npy_shape_text(array, shape, sizeof shape),
                    wanted);
}

/* Dimensions align right: (keys), (queries, keys), (heads, queries, keys), (batch, heads, queries, keys), 1 for a broadcast.
 * With fewer columns than keys the rest is masked. */
static int shape_mask(const char *option, const clattn_problem *p, const struct npy *array, struct trial_tensor *t,
                      int64_t *columns)
{
    const int64_t sizes[4] = {p->batch, p->heads_q, p->seq_q, p->seq_kv};
    char wanted[128];
    int64_t step = 1;
    snprintf(wanted, sizeof wanted, "(batch %" PRId64 ", heads %" PRId64 ", queries %" PRId64 ", keys %" PRId64 ")", sizes[0],
             sizes[1], sizes[2], sizes[3]);
    if (array->rank < 1 || array->rank > 4)
        return wrong_shape(option, array, wanted);
    for (int axis = 3; axis >= 0; axis--) {
        const int from = axis - 4 + array->rank;
        const int64_t size = from < 0 ? 1 : array->shape[from];
        if (size != sizes[axis] && size != 1 && (axis < 3 || size > sizes[3]))
            return wrong_shape(option, array, wanted);
        t->size[axis] = size;
        t->stride[axis] = size == 1 || array->count == 0 ? 0 : step;
        step = array->count == 0 ? 0 : step * size; /* sizes next to a 0 may be anything: their product need not fit */
    }
    *columns = t->size[3] == 1 ? -1 : t->size[3];
    return CLI_OK;
}

static int read_mask(const struct run_options *o, clattn_problem *p, struct trial_tensor *t)
{
    struct npy array;
    int code = o->mask ? array_read("run", "--mask", o->mask, &array) : CLI_OK;
    if (code != CLI_OK || !o->mask)
        return code;
    if (array.type != NPY_B1 && array.type != NPY_U1)
        code = cli_fail("run", CLI_USAGE, "--mask", "%s holds %s; a mask holds bool (or uint8), an additive one is for --bias",
                        o->mask, npy_type_name(array.type));
    else
        code = shape_mask("--mask", p, &array, t, &p->mask.columns);
    if (code == CLI_OK) {
        t->integer = 1;
        take(&array, t);
        p->mask.strides.batch = t->stride[0];
        p->mask.strides.head = t->stride[1];
        p->mask.strides.row = t->stride[2];
        p->mask.strides.column = t->stride[3];
    }
    npy_free(&array);
    return code;
}

static bool is_float(const struct npy *array) { return array->type <= NPY_V2; }

/* Floats of any width as `type`. */
static int convert(const char *option, const struct npy *array, clattn_type type, struct trial_tensor *t)
{
    t->type = type;
    t->count = (int64_t)array->count;
    t->data = array_to_storage(array, type);
    return t->data ? CLI_OK : cli_fail("run", CLI_FAILED, option, "out of memory");
}

static int read_bias(const struct run_options *o, clattn_problem *p, struct trial_tensor *t)
{
    struct npy array;
    int code = o->bias ? array_read("run", "--bias", o->bias, &array) : CLI_OK;
    if (code != CLI_OK || !o->bias)
        return code;
    p->bias.type = storage_type_of(&array);
    if (!is_float(&array))
        code = cli_fail("run", CLI_USAGE, "--bias", "%s holds %s; a bias holds floats, a bool mask is for --mask", o->bias,
                        npy_type_name(array.type));
    else
        code = shape_mask("--bias", p, &array, t, &p->bias.columns);
    if (code == CLI_OK)
        code = convert("--bias", &array, p->bias.type, t);
    p->bias.strides.batch = t->stride[0];
    p->bias.strides.head = t->stride[1];
    p->bias.strides.row = t->stride[2];
    p->bias.strides.column = t->stride[3];
    npy_free(&array);
    return code;
}

static int automatic_slopes(clattn_problem *p, struct trial_tensor *t)
{
    const bool is_empty = p->batch == 0 || p->seq_q == 0; /* no row needs its slope, whatever number of heads a shape names */
    t->type = CLATTN_FP32;
    t->count = is_empty ? 0 : p->heads_q;
    t->data = malloc(((size_t)t->count + 1) * sizeof(float));
    if (t->data == NULL)
        return cli_fail("run", CLI_FAILED, "--alibi", "out of memory");
    clattn_alibi_slopes(t->count, t->data);
    p->alibi.strides.head = t->stride[1] = 1;
    t->size[0] = t->size[2] = t->size[3] = 1;
    t->size[1] = p->heads_q;
    return CLI_OK;
}

/* (heads), or (batch, heads). */
static int read_slopes(const struct run_options *o, clattn_problem *p, struct trial_tensor *t)
{
    struct npy array;
    if (!o->alibi)
        return CLI_OK;
    if (strcmp(o->alibi, "auto") == 0)
        return automatic_slopes(p, t);
    int code = array_read("run", "--alibi", o->alibi, &array);
    if (code != CLI_OK)
        return code;
    const bool ok = is_float(&array) && (array.rank == 1 || (array.rank == 2 && array.shape[0] == p->batch)) &&
                    array.shape[array.rank - 1] == p->heads_q;
    code = ok ? convert("--alibi", &array, CLATTN_FP32, t) : wrong_shape("--alibi", &array, "a slope for each query head");
    p->alibi.strides.head = t->stride[1] = 1;
    p->alibi.strides.batch = t->stride[0] = array.rank == 2 ? p->heads_q : 0;
    t->size[0] = array.rank == 2 ? p->batch : 1;
    t->size[1] = p->heads_q;
    t->size[2] = t->size[3] = 1;
    npy_free(&array);
    return code;
}

static void shape_list(struct trial_tensor *t, int64_t count)
{
    t->size[0] = t->size[1] = t->size[2] = 1;
    t->size[3] = count;
    t->stride[3] = 1;
}

static int read_sinks(const struct run_options *o, const clattn_problem *p, struct trial_tensor *t)
{
    struct npy array;
    int code = o->sink ? array_read("run", "--sink", o->sink, &array) : CLI_OK;
    if (code != CLI_OK || !o->sink)
        return code;
    if (!is_float(&array) || array.rank != 1 || array.shape[0] != p->heads_q)
        code = wrong_shape("--sink", &array, "a number for each query head");
    else
        code = convert("--sink", &array, CLATTN_FP32, t);
    shape_list(t, p->heads_q);
    npy_free(&array);
    return code;
}

static int read_integers(const char *option, const char *path, int64_t count, clattn_integer *type, struct trial_tensor *t)
{
    struct npy array;
    int code = path ? array_read("run", option, path, &array) : CLI_OK;
    if (code != CLI_OK || !path)
        return code;
    if (array.type != NPY_I4 && array.type != NPY_I8)
        code = cli_fail("run", CLI_USAGE, option, "%s holds %s; int32 or int64 is needed", path, npy_type_name(array.type));
    else if (array.rank != 1 || (count >= 0 ? array.shape[0] != count : array.count == 0))
        code = wrong_shape(option, &array,
                           count >= 0 ? "a number for each sequence of the batch" : "one number more than sequences");
    if (code == CLI_OK) {
        *type = array.type == NPY_I4 ? CLATTN_INT32 : CLATTN_INT64;
        t->integer = array.type == NPY_I4 ? 4 : 8;
        shape_list(t, array.shape[0]);
        take(&array, t);
    }
    npy_free(&array);
    return code;
}

static int64_t integer_of(const struct trial_tensor *t, int64_t i)
{
    return t->integer == 4 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

/* Starts of packed sequences lie among the rows that there are and never fall; anything else is a mistake in a file. */
static int refuse_starts(const char *option, const struct trial_tensor *starts, int64_t rows)
{
    for (int64_t i = 0; i < starts->count; i++) {
        const int64_t start = integer_of(starts, i), before = i > 0 ? integer_of(starts, i - 1) : 0;
        if (start < 0 || start > rows)
            return cli_fail("run", CLI_USAGE, option,
                            "its number %" PRId64 " is %" PRId64 ": starts of packed sequences lie in 0 ... %" PRId64
                            ", the number of rows",
                            i, start, rows);
        if (start < before)
            return cli_fail("run", CLI_USAGE, option,
                            "its number %" PRId64 " is %" PRId64 ", less than %" PRId64
                            " before it: starts of packed sequences never fall",
                            i, start, before);
    }
    return CLI_OK;
}

/* The longest of the sequences that begin where the list says. */
static int64_t longest(const struct trial_tensor *starts)
{
    int64_t most = 0;
    for (int64_t i = 1; i < starts->count; i++) {
        const int64_t length = integer_of(starts, i) - integer_of(starts, i - 1);
        most = length > most ? length : most;
    }
    return most;
}

int run_options_starts(const struct run_options *o, clattn_problem *p, struct trial_data *data)
{
    clattn_integer k_type = CLATTN_NO_INTEGERS;
    if (!o->cu_q)
        return CLI_OK;
    if (p->batch != 1)
        return cli_fail("run", CLI_USAGE, "--cu-q",
                        "packed sequences lie one after another in one batch entry, not in %" PRId64, p->batch);
    int code = read_integers("--cu-q", o->cu_q, -1, &p->packed.starts, &data->q_starts);
    if (code == CLI_OK)
        code = read_integers("--cu-k", o->cu_k, data->q_starts.count, &k_type, &data->kv_starts);
    if (code == CLI_OK && k_type != p->packed.starts)
        code = cli_fail("run", CLI_USAGE, "--cu-k", "must have the integer type of --cu-q");
    code = code != CLI_OK ? code : refuse_starts("--cu-q", &data->q_starts, p->seq_q);
    code = code != CLI_OK ? code : refuse_starts("--cu-k", &data->kv_starts, p->seq_kv);
    if (code != CLI_OK)
        return code;
    p->packed.total_q = p->seq_q;
    p->packed.total_kv = p->seq_kv;
    p->batch = data->q_starts.count - 1;
    p->seq_q = longest(&data->q_starts);
    p->seq_kv = longest(&data->kv_starts);
    return CLI_OK;
}

int run_options_read(const struct run_options *o, clattn_problem *p, struct trial_data *data)
{
    int code = read_mask(o, p, &data->mask);
    code = code != CLI_OK ? code : read_bias(o, p, &data->bias);
    code = code != CLI_OK ? code : read_slopes(o, p, &data->alibi);
    code = code != CLI_OK ? code : read_sinks(o, p, &data->sinks);
    code = code != CLI_OK ? code : read_integers("--q-lengths", o->q_lengths, p->batch, &p->q_lengths, &data->q_lengths);
    code = code != CLI_OK ? code : read_integers("--kv-lengths", o->kv_lengths, p->batch, &p->kv_lengths, &data->kv_lengths);
    return code;
}

void run_options_free(struct trial_data *data)
{
    for (int i = FIRST_OPTION; i < TRIAL_BUFFERS; i++)
        free(trial_tensor_at(data, i)->data);
}

int run_options_send(const struct trial_data *data, struct runner *runner)
{
    clattn_call *call = &runner->call;
    clattn_buffer *const places[] = {&call->mask,     &call->bias,      &call->bias_factors, &call->alibi,
                                     &call->sinks,    &call->q_lengths, &call->kv_lengths,   &call->offsets,
                                     &call->q_starts, &call->kv_starts};
    int code = CLI_OK;
    for (int i = FIRST_OPTION; i < TRIAL_BUFFERS && code == CLI_OK; i++) {
        const struct trial_tensor *t = trial_tensor_at(data, i);
        if (t->count > 0)
            code = runner_option(runner, trial_buffer_name(i), t->data, (size_t)t->count * trial_item_size(t),
                                 places[i - FIRST_OPTION]);
    }
    return code;
}
