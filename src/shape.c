/* SPDX-License-Identifier: Apache-2.0
 * The SHAPE text: a problem as one line that tools, tests and tuning tables share. docs/semantics.md has the grammar. */
#include "problem.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    clattn_problem *problem;
    bool has_hkv, has_k, has_dv;
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

static clattn_status take_causal(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *rest = "top-left", *end = rest + strlen(rest);
    if (!is_word(word, length, "causal")) {
        rest = word + strlen("causal=");
        end = word + length;
    }
    s->problem->causal = true;
    if (is_word(rest, (size_t)(end - rest), "top-left"))
        s->problem->corner = CLATTN_TOP_LEFT;
    else if (is_word(rest, (size_t)(end - rest), "bottom-right"))
        s->problem->corner = CLATTN_BOTTOM_RIGHT;
    else if (read_number(rest, end, &s->problem->offset))
        s->problem->corner = CLATTN_EXPLICIT;
    else
        return refuse(error, word, length, "expected causal=top-left, causal=bottom-right or causal=NUMBER");
    return CLATTN_SUCCESS;
}

static clattn_status take_scale(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *end;
    const double value = cla_parse_double(word + strlen("scale="), &end);
    if (end != word + length || end == word + strlen("scale="))
        return refuse(error, word, length, "expected scale=NUMBER");
    s->problem->scale = (float)value;
    return CLATTN_SUCCESS;
}

static clattn_status take_word(struct shape *s, const char *word, size_t length, clattn_error *error)
{
    const char *rest;
    if (is_word(word, length, "causal") || has_prefix(word, length, "causal=", &rest))
        return take_causal(s, word, length, error);
    if (has_prefix(word, length, "scale=", &rest))
        return take_scale(s, word, length, error);
    if (is_word(word, length, "lse"))
        s->problem->lse.present = true;
    else if (is_word(word, length, "weights"))
        s->problem->scores.kind = CLATTN_SCORES_SOFTMAX;
    else if (!take_type(s, word, length) && !take_size(s, word, length))
        return refuse(
            error, word, length,
            "not understood; a shape looks like \"b2 hq8 hkv2 q37 k53 d64 dv64 fp16 causal=bottom-right scale=0.5 lse\"");
    return CLATTN_SUCCESS;
}

clattn_status clattn_problem_parse(const char *text, clattn_problem *problem, clattn_error *error)
{
    cla_clear(error);
    if (!text || !problem)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, text ? "problem" : "shape", "%s is NULL", text ? "problem" : "shape");
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
    problem->heads_kv = s.has_hkv ? problem->heads_kv : problem->heads_q;
    problem->seq_kv = s.has_k ? problem->seq_kv : problem->seq_q;
    problem->head_dim_v = s.has_dv ? problem->head_dim_v : problem->head_dim_qk;
    clattn_problem_set_layout(problem, CLATTN_BHSD);
    return CLATTN_SUCCESS;
}

clattn_status clattn_problem_print(const clattn_problem *p, char *out, size_t size, size_t *needed)
{
    struct text text = {0};
    if (!p)
        return CLATTN_INVALID_ARGUMENT;
    cla_text_add(&text, "b%" PRId64 " hq%" PRId64 " hkv%" PRId64 " q%" PRId64 " k%" PRId64 " d%" PRId64 " dv%" PRId64, p->batch,
                 p->heads_q, p->heads_kv, p->seq_q, p->seq_kv, p->head_dim_qk, p->head_dim_v);
    if (p->q.type == p->k.type && p->q.type == p->v.type && p->q.type == p->o.type)
        cla_text_add(&text, " %s", cla_type_name(p->q.type));
    else
        cla_text_add(&text, " q=%s k=%s v=%s o=%s", cla_type_name(p->q.type), cla_type_name(p->k.type),
                     cla_type_name(p->v.type), cla_type_name(p->o.type));
    if (p->causal && p->corner == CLATTN_EXPLICIT)
        cla_text_add(&text, " causal=%" PRId64, p->offset);
    else if (p->causal)
        cla_text_add(&text, " causal=%s", cla_corner_name(p->corner));
    if (!isnan(p->scale)) {
        cla_text_add(&text, " scale=");
        cla_text_add_float(&text, p->scale);
    }
    cla_text_add(&text, "%s%s", p->lse.present ? " lse" : "", p->scores.kind == CLATTN_SCORES_SOFTMAX ? " weights" : "");
    const clattn_status status = cla_text_out(&text, out, size, needed);
    cla_text_free(&text);
    return status;
}
