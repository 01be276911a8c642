/* SPDX-License-Identifier: Apache-2.0
 * The kernel sources of the NVIDIA engines for chips that are not present: each is composed, and its host half counts what the
 * source needs. Where CLATTN_TEXTS names a folder they are written there, for tools/scripts/nvidia_offline.sh to compile. */
#include "choose.h"
#include "device_facts.h"
#include "files.h"
#include "kernel_text.h"
#include "problem.h"
#include "support.h"

static const struct {
    const char *name, *overrides;
} chips[] = {
    {"sm_80", "nv_compute=80,local_mem_static=163K"},   {"sm_86", "nv_compute=86,local_mem_static=99K"},
    {"sm_89", "nv_compute=89,local_mem_static=99K"},    {"sm_90a", "nv_compute=90,local_mem_static=226K"},
    {"sm_100", "nv_compute=100,local_mem_static=226K"}, {"sm_120", "nv_compute=120,local_mem_static=99K"},
};

static const struct {
    const char *name, *shape;
} shapes[] = {
    {"d64-fp16", "b2 hq8 q2048 d64 fp16 causal"},
    {"d128-bf16", "b2 hq8 q1024 d128 bf16 causal lse"},
    {"d256-fp16", "b2 hq8 q1024 d256 fp16"},
    {"d64-short", "b2 hq8 q512 d64 bf16 causal"},
    {"d128-short", "b2 hq8 q512 d128 bf16 causal"},
    {"d256-short", "b2 hq8 q512 d256 bf16 causal"},
    {"d128-long", "b2 hq8 q8192 d128 fp16 causal"},
    {"d192-bf16", "b2 hq8 q1024 d192 dv128 bf16 causal"},
    {"d128-mask", "b2 hq8 q1024 d128 bf16 mask"},
    {"d80-bias", "b2 hq8 q1024 d80 fp16 bias"},
    {"d64-mask", "b2 hq8 q1024 d64 fp16 mask"},
    {"d128-bias", "b2 hq8 q1024 d128 fp16 bias bias-type=fp16"},
    {"d128-softcap", "b2 hq8 q1024 d128 fp16 softcap=30"},
    {"d128-alibi", "b2 hq8 q1024 d128 fp16 alibi"},
    {"d128-decode", "b2 hq8 hkv2 q1 k8192 d128 bf16"},
    {"d256-few-mask", "b2 hq8 hkv2 q2 k700 d256 fp16 mask"},
    {"d64-fp32", "b2 hq8 q1024 d64 causal"},
    {"d128-fp32", "b2 hq8 q1024 d128 lse"},
    {"d256-fp32", "b2 hq8 q1024 d256 fp32 mask"},
};

enum { FP32_SHAPES = 3, FEW_SHAPES = 2 };

static void read_chip(const char *overrides, struct facts *facts)
{
    clattn_error error;
    clattn_error_init(&error);
    device_facts_read("nvidia-hopper-h200.facts", facts);
    assert_ok(cla_facts_override(facts, overrides, &error), &error);
}

static void write_text(const struct config *config, const char *chip, const char *shape, const char *text)
{
    const char *folder = getenv("CLATTN_TEXTS");
    char name[100];
    if (folder == NULL) {
        return;
    }
    snprintf(name, sizeof name, "%s-%s-%s.cl", config->engine->name, chip, shape);
    char *path = path_join(folder, name);
    assert_true(file_write(path, text));
    free(path);
}

static void check_text(const struct facts *facts, const char *engine, const char *chip, size_t number, size_t *composed)
{
    clattn_error error;
    clattn_problem given, problem;
    clattn_plan_options options;
    struct candidates candidates;
    struct source source;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse(shapes[number].shape, &given, &error), &error);
    assert_ok(cla_problem_take(&given, &problem, &error), &error);
    clattn_plan_options_init(&options);
    options.engine = engine;
    if (cla_decide(facts, &problem, &options, &candidates, &error) == CLATTN_SUCCESS) {
        const struct config *config = &candidates.list[0];
        assert_true(config->local_bytes <= facts->local_mem_static);
        assert_ok(cla_kernel_source(facts, &problem, config, NULL, &source, &error), &error);
        write_text(config, chip, shapes[number].name, source.text.data);
        cla_source_free(&source);
        ++*composed;
    }
    cla_text_free(&candidates.declined);
}

static void sources_compose_for_every_chip(void **state)
{
    (void)state;
    static const char *const engines[] = {"nv_mma", "nv_wgmma", "nv_tf32x3"};
    size_t composed[3] = {0, 0, 0};
    for (size_t i = 0; i < COUNT_OF(chips); i++) {
        struct facts facts;
        read_chip(chips[i].overrides, &facts);
        for (size_t e = 0; e < COUNT_OF(engines); e++) {
            for (size_t j = 0; j < COUNT_OF(shapes); j++) {
                check_text(&facts, engines[e], chips[i].name, j, &composed[e]);
            }
        }
    }
    /* Tensor cores serve every chip and shape; Hopper's products one chip, without few queries. */
    assert_int_equal(composed[0], COUNT_OF(chips) * (COUNT_OF(shapes) - FP32_SHAPES));
    assert_int_equal(composed[1], COUNT_OF(shapes) - FP32_SHAPES - FEW_SHAPES);
    assert_int_equal(composed[2], COUNT_OF(chips) * FP32_SHAPES);
}

static void older_chips_decline(void **state)
{
    (void)state;
    struct facts facts;
    size_t composed = 0;
    read_chip("nv_compute=75", &facts);
    for (size_t j = 0; j < COUNT_OF(shapes); j++) {
        check_text(&facts, "nv_mma", "sm_75", j, &composed);
        check_text(&facts, "nv_wgmma", "sm_75", j, &composed);
        check_text(&facts, "nv_tf32x3", "sm_75", j, &composed);
    }
    assert_int_equal(composed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_compose_for_every_chip),
        cmocka_unit_test(older_chips_decline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
