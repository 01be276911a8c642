/* SPDX-License-Identifier: Apache-2.0
 * src/choose.c and what engines offer it, over the facts of real devices in tests/devices. */
#include "support.h"

#include "choose.h"
#include "device_facts.h"
#include "files.h"
#include "kernel_text.h"
#include "workspace.h"

static clattn_error error;
static struct names devices;

static int list_devices(void **state)
{
    (void)state;
    clattn_error_init(&error);
    return folder_list(DEVICE_FACTS, ".facts", &devices) ? 0 : -1;
}

static int free_devices(void **state)
{
    (void)state;
    names_free(&devices);
    return 0;
}

static const char *const shapes[] = {
    "q1 d1",
    "q1 k4096 hq32 hkv8 d128 fp16",
    "q17 k31 d3 dv5",
    "b2 hq8 q512 d64",
    "b2 hq8 q512 d64 causal",
    "hq4 q2048 d128 fp16 causal=bottom-right",
    "hq4 q300 d192 dv128 bf16",
    "hq2 q300 d576 dv512 fp16",
    "q64 d256 q=fp32 kv=fp16 o=fp32",
    "q64 d512 causal",
    "q64 d1024 dv1024",
    "q64 d1024 dv1 bf16 lse",
    "b0 q64 d64",
    "q0 k64 d64",
    "q64 k0 d64",
    "q129 k513 d80 v=bf16 o=fp16",
};

static void the_fixtures_are_many_and_complete(void **state)
{
    (void)state;
    assert_true(devices.count >= 15);
    for (size_t i = 0; i < devices.count; i++) {
        struct facts facts;
        device_facts_read(devices.list[i], &facts);
        if (facts.platform_name[0] == '\0' || facts.device_name[0] == '\0' || facts.device_kind == 0 ||
            facts.max_work_group == 0 || facts.max_work_item_0 == 0 || facts.local_mem == 0 || facts.local_mem_static == 0 ||
            facts.max_alloc == 0) {
            fail_msg("%s lacks a fact that choices need", devices.list[i]);
        }
    }
}

/* The rules of every configuration, checked here without the library's own function. */
static void check_config(const char *device, const char *text, const struct facts *facts, const struct config *c)
{
    /* Swapped axes do not show in square tiles; those of vendor instructions are tested on the device, and large tiles by the
     * smaller ones of the same text. */
    const bool ok = c->engine != NULL && c->block_m >= 1 && c->block_n >= 1 &&
                    (c->block_m != c->block_n || c->block_m >= 128 || c->engine->vendor) && c->work_group >= 1 &&
                    (uint64_t)c->work_group <= facts->max_work_group && (uint64_t)c->work_group <= facts->max_work_item_0 &&
                    c->team >= 1 && c->work_group % c->team == 0 && c->local_bytes <= facts->local_mem_static;
    if (!ok) {
        fail_msg("%s, \"%s\": %s has block_m %d block_n %d work_group %d team %d local %zu", device, text,
                 c->engine != NULL ? c->engine->name : "no engine", c->block_m, c->block_n, c->work_group, c->team,
                 c->local_bytes);
    }
}

static void every_device_gets_a_working_tile(void **state)
{
    (void)state;
    for (size_t i = 0; i < devices.count; i++) {
        struct facts facts;
        device_facts_read(devices.list[i], &facts);
        for (size_t j = 0; j < COUNT_OF(shapes); j++) {
            const clattn_problem problem = shape_of(shapes[j]);
            struct candidates candidates;
            assert_ok(cla_choose(&facts, &problem, NULL, NULL, &candidates, &error), &error);
            assert_true(candidates.count >= 1);
            for (size_t k = 0; k < candidates.count; k++) {
                check_config(devices.list[i], shapes[j], &facts, &candidates.list[k]);
            }
            /* Whatever else happens, the engine that needs nothing comes last. */
            assert_string_equal(candidates.list[candidates.count - 1].engine->name, "reference");
            cla_text_free(&candidates.declined);
        }
    }
}

static void every_engine_alone_fits_where_it_serves(void **state)
{
    (void)state;
    for (size_t i = 0; i < devices.count; i++) {
        struct facts facts;
        device_facts_read(devices.list[i], &facts);
        for (size_t j = 0; j < COUNT_OF(shapes); j++) {
            const clattn_problem problem = shape_of(shapes[j]);
            for (size_t e = 0; e < cla_engine_count; e++) {
                char why[200] = "";
                struct config list[CLA_MAX_CONFIGS];
                if (!cla_engines[e]->serves(&facts, &problem, why, sizeof why)) {
                    assert_true(why[0] != '\0');
                    continue;
                }
                const size_t count = cla_engines[e]->configs(&facts, &problem, list);
                if (count < 1 || count > CLA_MAX_CONFIGS) {
                    fail_msg("%s, \"%s\": %s says it serves and has %zu tiles", devices.list[i], shapes[j],
                             cla_engines[e]->name, count);
                }
                for (size_t k = 0; k < count; k++) {
                    assert_ptr_equal(list[k].engine, cla_engines[e]);
                    check_config(devices.list[i], shapes[j], &facts, &list[k]);
                }
            }
        }
    }
}

static const char *expected_engine(const struct facts *facts, const clattn_problem *problem)
{
    if (problem->q.type == CLATTN_FP32 || facts->nv_compute < 80) {
        return "simt";
    }
    return facts->nv_compute == 90 ? "nv_wgmma" : "nv_mma";
}

/* GPUs with ordinary work-groups get the fast engine on ordinary shapes. */
static void gpus_get_the_fast_path(void **state)
{
    (void)state;
    static const char *const ordinary[] = {"b2 hq8 q512 d64", "hq4 q2048 d128 fp16 causal=bottom-right", "q512 d80 bf16"};
    size_t seen = 0;
    for (size_t i = 0; i < devices.count; i++) {
        struct facts facts;
        device_facts_read(devices.list[i], &facts);
        for (size_t j = 0; j < COUNT_OF(ordinary) && facts.device_kind == DEVICE_GPU; j++) {
            const clattn_problem problem = shape_of(ordinary[j]);
            struct candidates candidates;
            assert_ok(cla_choose(&facts, &problem, NULL, NULL, &candidates, &error), &error);
            if (strcmp(candidates.list[0].engine->name, expected_engine(&facts, &problem)) != 0) {
                fail_msg("%s, \"%s\": %s comes first; %s", devices.list[i], ordinary[j], candidates.list[0].engine->name,
                         candidates.declined.data != NULL ? candidates.declined.data : "");
            }
            cla_text_free(&candidates.declined);
            seen++;
        }
    }
    assert_true(seen >= 30);
}

/* Tiles whose sums Intel's compiler keeps in registers, as tools/scripts/offline.sh shows. */
static void intel_gpus_get_tiles_of_few_sums(void **state)
{
    (void)state;
    static const struct {
        const char *device, *shape;
        int block_m, block_n, cols;
    } rows[] = {
        {"intel-arc-a770.facts", "h8 q2048 k2048 d64", 64, 32, 2},
        {"intel-arc-a770.facts", "h8 q2048 k2048 d128", 32, 64, 2},
        {"intel-arc-a770.facts", "h8 q2048 k2048 d256", 16, 64, 1},
        {"intel-arc-a770.facts", "h8 q2048 k2048 d128 softcap=30", 40, 32, 1},
        {"intel-uhd-770.facts", "h8 q2048 k2048 d64", 32, 64, 2},
        {"intel-uhd-770.facts", "h8 q2048 k2048 d128", 40, 32, 1},
        {"intel-uhd-630.facts", "h8 q2048 k2048 d128", 16, 64, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct facts facts;
        struct candidates candidates;
        device_facts_read(rows[i].device, &facts);
        const clattn_problem problem = shape_of(rows[i].shape);
        assert_ok(cla_choose(&facts, &problem, "simt", NULL, &candidates, &error), &error);
        const struct config *const first = &candidates.list[0];
        if (first->block_m != rows[i].block_m || first->block_n != rows[i].block_n ||
            define_of(&facts, &problem, first, "COLS_PER_ITEM") != rows[i].cols) {
            fail_msg("%s, \"%s\": %d x %d, %d columns an item", rows[i].device, rows[i].shape, first->block_m, first->block_n,
                     define_of(&facts, &problem, first, "COLS_PER_ITEM"));
        }
        cla_text_free(&candidates.declined);
    }
}

/* The build option belongs to Intel's compiler; other drivers of such a GPU do not get it. */
static void large_registers_are_asked_of_intels_compiler(void **state)
{
    (void)state;
    struct facts facts;
    device_facts_read("intel-uhd-770.facts", &facts);
    assert_true(cla_facts_is_intel_gpu(&facts));
    assert_false(cla_facts_has_large_registers(&facts));
    device_facts_read("intel-arc-a770.facts", &facts);
    assert_true(cla_facts_has_large_registers(&facts));
    strcpy(facts.platform_name, "rusticl");
    assert_false(cla_facts_has_large_registers(&facts));
}

static void causal_ranks_tall_tiles_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < devices.count; i++) {
        struct facts facts;
        device_facts_read(devices.list[i], &facts);
        const clattn_problem problem = shape_of("hq8 q2048 d64 causal");
        struct candidates candidates;
        assert_ok(cla_choose(&facts, &problem, NULL, NULL, &candidates, &error), &error);
        const struct config *first = &candidates.list[0];
        /* A work-item that has a tile to itself stops at the last key that a row sees, so nothing is wasted past the diagonal.
         */
        if (first->team > 1 && first->block_m < first->block_n) {
            fail_msg("%s: block_m %d before block_n %d", devices.list[i], first->block_m, first->block_n);
        }
        cla_text_free(&candidates.declined);
    }
}

/* Small local memory, small and odd work-groups. */
static void small_devices_get_tiles_that_fit(void **state)
{
    (void)state;
    static const char *const overrides[] = {
        "local_mem=0",       "local_mem=1K",      "local_mem=16K",      "local_mem=32K",
        "local_mem=48K",     "local_mem=64K",     "max_work_group=1",   "max_work_group=17",
        "max_work_group=64", "max_work_item_0=1", "max_work_item_0=24", "max_work_group=64,local_mem=1K",
    };
    static const char *const sizes[] = {"q300 d64", "q300 d256", "q300 d512 fp16", "q300 d576 dv512", "q300 d1024 causal"};
    for (size_t i = 0; i < devices.count; i++) {
        for (size_t j = 0; j < COUNT_OF(overrides); j++) {
            struct facts facts;
            device_facts_read(devices.list[i], &facts);
            assert_ok(cla_facts_override(&facts, overrides[j], &error), &error);
            for (size_t k = 0; k < COUNT_OF(sizes); k++) {
                const clattn_problem problem = shape_of(sizes[k]);
                struct candidates candidates;
                assert_ok(cla_choose(&facts, &problem, NULL, NULL, &candidates, &error), &error);
                for (size_t n = 0; n < candidates.count; n++) {
                    check_config(devices.list[i], overrides[j], &facts, &candidates.list[n]);
                }
                cla_text_free(&candidates.declined);
            }
        }
    }
}

/* More compute units never lead to larger tiles, and no engine stops serving, whatever number a device reports. */
static void absurd_numbers_of_compute_units_do_not_wrap(void **state)
{
    (void)state;
    static const char *const counts[] = {"compute_units=4611686018427387904", "compute_units=9223372036854775808",
                                         "compute_units=16000000000000000000"};
    const clattn_problem problem = shape_of("hq8 q512 d64");
    for (size_t i = 0; i < devices.count; i++) {
        struct facts facts;
        struct candidates usual, absurd;
        device_facts_read(devices.list[i], &facts);
        assert_ok(cla_facts_override(&facts, "compute_units=1000000000", &error), &error);
        assert_ok(cla_choose(&facts, &problem, NULL, NULL, &usual, &error), &error);
        for (size_t j = 0; j < COUNT_OF(counts); j++) {
            assert_ok(cla_facts_override(&facts, counts[j], &error), &error);
            assert_ok(cla_choose(&facts, &problem, NULL, NULL, &absurd, &error), &error);
            assert_int_equal(absurd.count, usual.count);
            for (size_t n = 0; n < usual.count; n++) {
                assert_ptr_equal(absurd.list[n].engine, usual.list[n].engine);
                assert_int_equal(absurd.list[n].block_m, usual.list[n].block_m);
                assert_true((absurd.list[n].resident > 0) == (usual.list[n].resident > 0));
            }
            cla_text_free(&absurd.declined);
        }
        cla_text_free(&usual.declined);
    }
}

static void the_general_rule_refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct facts facts;
    memset(&facts, 0, sizeof facts);
    facts.max_work_group = 64;
    facts.max_work_item_0 = 32;
    facts.local_mem = facts.local_mem_static = 1024;
    struct config config;
    memset(&config, 0, sizeof config);
    char why[200] = "";
    config.work_group = 32;
    config.local_bytes = 1024;
    assert_true(cla_config_fits(&facts, &config, why, sizeof why));
    config.local_bytes = 1025;
    assert_false(cla_config_fits(&facts, &config, why, sizeof why));
    assert_contains(why, "1025");
    config.local_bytes = 0;
    config.work_group = 33;
    assert_false(cla_config_fits(&facts, &config, why, sizeof why));
    assert_contains(why, "33");
    facts.max_work_item_0 = 1024;
    config.work_group = 65;
    assert_false(cla_config_fits(&facts, &config, why, sizeof why));
}

static void the_caller_may_force_and_avoid_engines(void **state)
{
    (void)state;
    struct facts facts;
    device_facts_read("amd-rdna2-gfx1030.facts", &facts);
    const clattn_problem problem = shape_of("hq8 q512 d64");
    struct candidates candidates;
    assert_ok(cla_choose(&facts, &problem, "reference", NULL, &candidates, &error), &error);
    for (size_t i = 0; i < candidates.count; i++) {
        assert_string_equal(candidates.list[i].engine->name, "reference");
    }
    cla_text_free(&candidates.declined);
    assert_ok(cla_choose(&facts, &problem, "unfused", NULL, &candidates, &error), &error);
    assert_string_equal(candidates.list[0].engine->name, "unfused");
    cla_text_free(&candidates.declined);
    assert_ok(cla_choose(&facts, &problem, NULL, "simt, cpu", &candidates, &error), &error);
    assert_string_equal(candidates.list[0].engine->name, "reference");
    assert_contains(candidates.declined.data, "simt");
    cla_text_free(&candidates.declined);
    /* A part of a name avoids nothing. */
    assert_ok(cla_choose(&facts, &problem, NULL, "sim,simt2", &candidates, &error), &error);
    assert_string_equal(candidates.list[0].engine->name, "simt");
    cla_text_free(&candidates.declined);
    assert_refused(cla_choose(&facts, &problem, "warp_drive", NULL, &candidates, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "options.engine");
    assert_contains(error.message, "warp_drive");
    cla_text_free(&candidates.declined);
}

/* Mesa's compiler also knows the builtin, but ends the process when it meets it. */
static void no_engine_serves_and_every_reason_is_given(void **state)
{
    (void)state;
    struct facts facts;
    device_facts_read("amd-rdna2-gfx1030.facts", &facts);
    const clattn_problem problem = shape_of("hq8 q512 d64");
    struct candidates candidates;
    char all[256] = "";
    for (size_t i = 0; i < cla_engine_count; i++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s,", cla_engines[i]->name);
    }
    assert_int_equal(cla_choose(&facts, &problem, NULL, all, &candidates, &error), CLATTN_UNSUPPORTED);
    for (size_t i = 0; i < cla_engine_count; i++) {
        if (!cla_engines[i]->on_request) {
            assert_contains(error.message, cla_engines[i]->name);
        }
    }
    cla_text_free(&candidates.declined);
}

/* A fused engine serves, and the engine that can write scores adds them for their heads only. */
static void scores_come_from_the_unfused_engine(void **state)
{
    (void)state;
    struct facts facts;
    device_facts_read("nvidia-ampere-rtx3060.facts", &facts);
    clattn_problem problem = shape_of("hq8 q512 d64 scores=softmax score-heads=2,3");
    struct candidates candidates;
    assert_ok(cla_choose(&facts, &problem, NULL, NULL, &candidates, &error), &error);
    assert_true(cla_needs_scores(&problem, candidates.list[0].engine));
    cla_text_free(&candidates.declined);
    assert_ok(cla_choose(&facts, &problem, "unfused", NULL, &candidates, &error), &error);
    assert_false(cla_needs_scores(&problem, candidates.list[0].engine));
    assert_false(candidates.list[0].scores_only);
    assert_int_equal(cla_workspace_bytes(&problem, &candidates.list[0]), 8 * 512 * 512 * sizeof(float));
    cla_text_free(&candidates.declined);

    assert_ok(cla_choose_scores(&facts, &problem, NULL, &candidates, &error), &error);
    assert_true(candidates.count > 0);
    for (size_t i = 0; i < candidates.count; i++) {
        assert_true(candidates.list[i].scores_only);
        assert_true(candidates.list[i].engine == &cla_engine_unfused);
    }
    const struct config scores = candidates.list[0];
    assert_int_equal(cla_workspace_bytes(&problem, &scores), 3 * 512 * 512 * sizeof(float));
    cla_text_free(&candidates.declined);
    assert_int_equal(cla_choose_scores(&facts, &problem, "unfused", &candidates, &error), CLATTN_UNSUPPORTED);
    assert_contains(error.message, "avoided");
    cla_text_free(&candidates.declined);

    problem.scores.kind = CLATTN_SCORES_NONE;
    assert_false(cla_needs_scores(&problem, &cla_engine_reference));
    problem.scores.kind = CLATTN_SCORES_BIAS;
    assert_int_equal(cla_workspace_bytes(&problem, &scores), 0);
    problem.scores.kind = CLATTN_SCORES_SOFTMAX;
    facts.max_alloc = 3 * 512 * 512 * sizeof(float) - 1;
    assert_int_equal(cla_choose_scores(&facts, &problem, NULL, &candidates, &error), CLATTN_UNSUPPORTED);
    assert_contains(error.message, "bytes");
    cla_text_free(&candidates.declined);
}

static void choosing_is_a_pure_function(void **state)
{
    (void)state;
    struct facts facts;
    device_facts_read("intel-arc-a770.facts", &facts);
    const clattn_problem problem = shape_of("hq8 q512 d64 causal");
    struct candidates first, second;
    assert_ok(cla_choose(&facts, &problem, NULL, NULL, &first, &error), &error);
    assert_ok(cla_choose(&facts, &problem, NULL, NULL, &second, &error), &error);
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.list, second.list, first.count * sizeof first.list[0]);
    cla_text_free(&first.declined);
    cla_text_free(&second.declined);
}

/* The unfused engine declines by the memory it needs before anything is allocated. */
static const struct config *split_choice(const struct facts *facts, const char *text, const char *engine,
                                         clattn_problem *problem, struct candidates *candidates)
{
    *problem = shape_of(text);
    clattn_plan_options options;
    clattn_plan_options_init(&options);
    options.engine = engine;
    assert_ok(cla_decide(facts, problem, &options, candidates, &error), &error);
    cla_text_free(&candidates->declined);
    return &candidates->list[0];
}

/* The group that finishes the last chunk merges them where NVIDIA's memory model makes other groups' writes visible, and where
 * there are few chunks and few rows. The launches and the workspace follow from that; the chunks do not depend on it. */
static void chunks_are_merged_in_the_last_group_where_it_pays(void **state)
{
    (void)state;
    static const struct {
        const char *device, *engine, *shape;
        int chunk;
        bool inside;
    } cases[] = {
        {"nvidia-hopper-h200.facts", "simt", "hq32 hkv8 q1 k8192 d128 fp16", 512, true},
        {"nvidia-hopper-h200.facts", "nv_mma", "hq32 hkv8 q1 k8192 d128 fp16", 512, true},
        {"nvidia-hopper-h200.facts", "nv_mma", "b16 hq32 hkv8 q1 k8192 d128 fp16", 512, false},
        {"nvidia-hopper-h200.facts", "nv_mma", "hq32 hkv8 q1 k65536 d128 fp16", 2048, true},
        {"nvidia-hopper-h200.facts", "nv_mma", "hq32 hkv8 q1 k2048 d128 fp16", 256, true},
        {"nvidia-hopper-h200.facts", "nv_mma", "hq64 hkv8 q1 k8192 d128 fp16", 512, true},
        {"nvidia-hopper-h200.facts", "nv_mma", "hq128 hkv8 q1 k8192 d128 fp16", 512, false}, /* 16 rows */
        {"nvidia-hopper-h200.facts", "simt", "hq2 q1 k8192 d64 dv512 fp16", 256, false},
        {"nvidia-hopper-h200.facts", "reference", "hq32 hkv8 q1 k8192 d128 fp16", 512, false},
        {"amd-rdna2-gfx1030.facts", "simt", "hq32 hkv8 q1 k8192 d128 fp16", 512, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct facts facts;
        clattn_problem problem;
        struct candidates candidates;
        clattn_call call = {.struct_size = sizeof call, .seq_q = 1, .scale = 1.0f};
        struct launch_args args;
        struct launch launches[CLA_MAX_LAUNCHES];
        device_facts_read(cases[i].device, &facts);
        const struct config *config = split_choice(&facts, cases[i].shape, cases[i].engine, &problem, &candidates);
        call.batch = problem.batch;
        call.seq_kv = problem.seq_kv;
        cla_launch_args(&problem, config, &call, &args);
        assert_int_equal(config->chunk, cases[i].chunk);
        assert_int_equal(config->merge_inside, cases[i].inside);
        assert_int_equal(cla_launch_list(config, &args, launches), cases[i].inside ? 1 : 2);
        assert_int_equal(args.call_number, 0);
        const size_t rows = (size_t)(problem.batch * problem.heads_q) * (size_t)args.chunks;
        const size_t floats = rows * (size_t)(problem.head_dim_v + (cases[i].inside ? 4 : 2));
        assert_int_equal(cla_classes_offset(&problem, config), (floats * sizeof(float) + 63) / 64 * 64);
    }
}

/* On CPUs even for one head whose mask bytes are contiguous, elsewhere where four heads share the mask. */
static void masks_are_classified_where_it_pays(void **state)
{
    (void)state;
    static const struct {
        const char *device, *shape;
        bool passes;
    } rows[] = {
        {"pocl-3.1.facts", "q512 k512 d64 mask=qk", true},
        {"pocl-3.1.facts", "q512 k512 d64 mask=bhqk", true},
        {"pocl-3.1.facts", "q512 k512 d64 mask=q", false},
        {"pocl-3.1.facts", "q512 k512 d64 bias=qk", false},
        {"pocl-3.1.facts", "hq4 q512 k512 d64 bias=qk", true},
        {"pocl-3.1.facts", "hq4 q1 k512 d64 mask=qk", false},
        {"pocl-3.1.facts", "q512 k512 d64", false},
        {"nvidia-pascal-gtx1070.facts", "hq2 q512 k512 d64 mask=qk", false},
        {"nvidia-pascal-gtx1070.facts", "hq4 q512 k512 d64 mask=qk", true},
        {"nvidia-pascal-gtx1070.facts", "hq4 q512 k512 d64 mask=hqk", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct facts facts;
        struct candidates candidates = {0};
        const clattn_problem p = shape_of(rows[i].shape);
        device_facts_read(rows[i].device, &facts);
        clattn_plan_options options;
        clattn_plan_options_init(&options);
        assert_ok(cla_decide(&facts, &p, &options, &candidates, &error), &error);
        if ((candidates.list[0].classify_group > 0) != rows[i].passes) {
            fail_msg("%s, \"%s\": %s", rows[i].device, rows[i].shape, rows[i].passes ? "no pass" : "a pass");
        }
        cla_text_free(&candidates.declined);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixtures_are_many_and_complete),
        cmocka_unit_test(every_device_gets_a_working_tile),
        cmocka_unit_test(every_engine_alone_fits_where_it_serves),
        cmocka_unit_test(gpus_get_the_fast_path),
        cmocka_unit_test(intel_gpus_get_tiles_of_few_sums),
        cmocka_unit_test(large_registers_are_asked_of_intels_compiler),
        cmocka_unit_test(causal_ranks_tall_tiles_first),
        cmocka_unit_test(small_devices_get_tiles_that_fit),
        cmocka_unit_test(the_general_rule_refuses_what_does_not_fit),
        cmocka_unit_test(absurd_numbers_of_compute_units_do_not_wrap),
        cmocka_unit_test(the_caller_may_force_and_avoid_engines),
        cmocka_unit_test(no_engine_serves_and_every_reason_is_given),
        cmocka_unit_test(scores_come_from_the_unfused_engine),
        cmocka_unit_test(choosing_is_a_pure_function),
        cmocka_unit_test(chunks_are_merged_in_the_last_group_where_it_pays),
        cmocka_unit_test(masks_are_classified_where_it_pays),
    };
    return cmocka_run_group_tests(tests, list_devices, free_devices);
}
