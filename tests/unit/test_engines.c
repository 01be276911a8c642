/* SPDX-License-Identifier: Apache-2.0
 * src/engines.c, and the kernel source and workspace that an engine's host half asks for. */
#include "support.h"

#include "choose.h"
#include "device_facts.h"
#include "files.h"
#include "kernel_text.h"

static clattn_error error;

static int set_up(void **state)
{
    (void)state;
    clattn_error_init(&error);
    return 0;
}

static void engines_are_named_once_and_found(void **state)
{
    (void)state;
    assert_true(cla_engine_count >= 3);
    for (size_t i = 0; i < cla_engine_count; i++) {
        assert_ptr_equal(cla_engine_find(cla_engines[i]->name), cla_engines[i]);
    }
    assert_null(cla_engine_find("warp_drive"));
    assert_null(cla_engine_find(""));
    assert_non_null(cla_engine_find("reference"));
    assert_non_null(cla_engine_find("simt"));
    assert_true(cla_engine_find("unfused")->on_request);
    assert_false(cla_engine_find("reference")->on_request);
}

/* The file's name without folder and ending equals `name`. */
static bool is_named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *stem = slash != NULL ? slash + 1 : path;
    const size_t length = strlen(name);
    return strncmp(stem, name, length) == 0 && stem[length] == '.' && strchr(stem + length + 1, '.') == NULL;
}

/* An engine is a pair of files with one name, found by it; or its device half is another engine's, which is listed here. */
static void engines_are_twin_files(void **state)
{
    (void)state;
    static const struct {
        const char *engine, *device_half_of;
    } shared[] = {{"nv_tf32x3", "nv_mma"}};
    struct names hosts, devices;
    assert_true(folder_tree(CLATTN_SOURCE_DIR "/src/engines", ".c", &hosts));
    assert_true(folder_tree(CLATTN_SOURCE_DIR "/cl/engines", ".cl", &devices));
    for (size_t i = 0; i < cla_engine_count; i++) {
        const char *name = cla_engines[i]->name, *device_name = name;
        for (size_t j = 0; j < COUNT_OF(shared); j++) {
            device_name = strcmp(shared[j].engine, name) == 0 ? shared[j].device_half_of : device_name;
        }
        assert_non_null(cla_engine_find(device_name));
        assert_string_equal(cla_engines[i]->file, cla_engine_find(device_name)->file);
        if (!is_named(cla_engines[i]->file, device_name)) {
            fail_msg("engine %s has the device half %s", name, cla_engines[i]->file);
        }
        size_t host = 0, device = 0;
        for (size_t j = 0; j < hosts.count; j++) {
            host += is_named(hosts.list[j], name);
        }
        for (size_t j = 0; j < devices.count; j++) {
            device += strcmp(cla_engines[i]->file + strlen("cl/engines/"), devices.list[j]) == 0;
        }
        assert_int_equal(host, 1);
        assert_int_equal(device, 1);
        char *kernels = path_join(CLATTN_SOURCE_DIR, cla_engines[i]->kernel_file), *text = file_read(kernels);
        assert_non_null(text);
        free(text);
        free(kernels);
    }
    names_free(&hosts);
    names_free(&devices);
}

static void prefetch_only_where_it_is_known_to_work(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        bool has;
    } cases[] = {{"pocl-3.1.facts", true}, {"mesa-rusticl-llvmpipe.facts", false}};
    const clattn_problem problem = shape_of("hq8 q512 d64");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct facts facts;
        struct candidates candidates;
        struct text defines = {0};
        device_facts_read(cases[i].device, &facts);
        assert_ok(cla_choose(&facts, &problem, "cpu", NULL, &candidates, &error), &error);
        cla_kernel_defines(&facts, &problem, &candidates.list[0], &defines);
        assert_int_equal(strstr(defines.data, "HAS_PREFETCH") != NULL, cases[i].has);
        cla_text_free(&defines);
        cla_text_free(&candidates.declined);
    }
}

static void the_unfused_workspace_holds_the_scores(void **state)
{
    (void)state;
    const struct engine *unfused = cla_engine_find("unfused");
    struct facts facts;
    device_facts_read("nvidia-pascal-gtx1070.facts", &facts);
    clattn_problem problem = shape_of("b3 hq4 q100 k50 d64");
    struct config list[CLA_MAX_CONFIGS];
    assert_true(unfused->configs(&facts, &problem, list) >= 1);
    assert_true(unfused->workspace(&problem, &list[0]) >= 3u * 4 * 100 * 50 * sizeof(float));
    problem.seq_kv = 0;
    assert_true(unfused->workspace(&problem, &list[0]) < 4096);
    problem = shape_of("b64 hq64 q65536 k65536 d64");
    char why[200];
    assert_false(unfused->serves(&facts, &problem, why, sizeof why));
}

/* Each launch says how much a group does, so that long calls can be sliced; groups that claim tiles cannot be sliced. */
static void launches_tell_what_a_slice_is_measured_by(void **state)
{
    (void)state;
    struct facts facts;
    const clattn_problem problem = shape_of("b3 hq4 q100 k50 d64 fp16");
    const clattn_call call = {.struct_size = sizeof call, .batch = 3, .seq_q = 100, .seq_kv = 50, .scale = 1.0f};
    struct config list[CLA_MAX_CONFIGS];
    struct launch launches[CLA_MAX_LAUNCHES];
    struct launch_args args;
    device_facts_read("nvidia-hopper-h200.facts", &facts);
    for (size_t e = 0; e < cla_engine_count; e++) {
        char why[200];
        if (!cla_engines[e]->serves(&facts, &problem, why, sizeof why)) {
            continue;
        }
        assert_true(cla_engines[e]->configs(&facts, &problem, list) >= 1);
        cla_launch_args(&problem, &list[0], &call, &args);
        const size_t count = cla_launch_list(&list[0], &args, launches);
        for (size_t i = 0; i < count; i++) {
            const double scores = (double)launches[i].groups * launches[i].scores;
            assert_true(list[0].resident ? scores == 0.0 : scores >= 3.0 * 4 * 100 * 50);
        }
    }
}

/* Kernel sources differ in types, head sizes and tiles only: lengths, counts, strides and scale do not appear in them. */
static void lengths_never_appear_in_kernel_source(void **state)
{
    (void)state;
    struct facts facts;
    device_facts_read("amd-rdna3-gfx1100.facts", &facts);
    const clattn_problem a = shape_of("b3 hq8 hkv4 q301 k811 d64 scale=0.37 lse causal=5"),
                         b = shape_of("b7 hq6 hkv2 q997 k499 d64 scale=-2.25 lse causal=-17");
    for (size_t e = 0; e < cla_engine_count; e++) {
        char why[200];
        struct config list[CLA_MAX_CONFIGS];
        if (!cla_engines[e]->serves(&facts, &a, why, sizeof why)) {
            continue;
        }
        assert_true(cla_engines[e]->configs(&facts, &a, list) >= 1);
        struct text first = {0}, second = {0};
        cla_kernel_defines(&facts, &a, &list[0], &first);
        cla_kernel_defines(&facts, &b, &list[0], &second);
        assert_string_equal(first.data, second.data);
        assert_contains(first.data, "HEAD_DIM 64");
        cla_text_free(&first);
        cla_text_free(&second);
    }
}

/* The accelerator numbers rows of packed tensors in 32 bits. */
static void nv_wgmma_declines_rows_past_2_to_the_31(void **state)
{
    (void)state;
    struct facts facts;
    device_facts_read("nvidia-hopper-h200.facts", &facts);
    const struct engine *const engine = cla_engine_find("nv_wgmma");
    clattn_problem problem = shape_of("b2 h2 q512 d64 fp16 packed");
    char why[200] = "";
    problem.packed.total_kv = INT32_MAX;
    assert_true(engine->serves(&facts, &problem, why, sizeof why));
    problem.packed.total_kv++;
    assert_false(engine->serves(&facts, &problem, why, sizeof why));
    assert_contains(why, "2^31 rows");
}

/* Tiles depend on the head size and on how much of a tile is masked; docs/notes has the measured limits. */
static void nv_wgmma_takes_other_tiles_for_short_calls(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        int block_m, block_n, kv_slots;
        bool by_bits;
    } rows[] = {
        {"hq8 q512 d64 bf16 causal", 256, 64, 4, true},
        {"hq8 q1024 d64 bf16 causal", 256, 64, 4, true},
        {"hq8 q1025 d64 bf16 causal", 192, 128, 2, true},
        {"hq8 q512 d64 bf16", 192, 128, 2, false},
        {"hq8 q512 d64 bf16 causal softcap=9", 128, 128, 2, false},
        {"hq8 q512 d128 bf16 causal", 192, 64, 4, true},
        {"hq8 q513 d128 bf16 causal", 128, 128, 2, true},
        {"hq8 q512 d128 dv64 bf16 causal", 192, 64, 4, true},
        {"hq8 q512 d64 dv128 bf16 causal", 128, 128, 2, true},
        {"hq8 q512 d256 bf16 causal", 128, 64, 2, true},
        {"hq8 q512 d256 bf16", 128, 80, 2, true},
        {"hq8 q1000 d128 bf16", 128, 128, 2, true},
        {"hq8 q1000 d128 bf16 softcap=9", 128, 128, 2, false},
        {"hq8 q1024 d128 bf16", 128, 128, 2, false},
        {"hq8 q64 k1025 d128 bf16", 128, 128, 2, false},
        {"hq8 q4096 d128 fp16 causal", 128, 128, 2, true},
        {"hq8 q64 k4097 d128 fp16 causal", 128, 128, 2, false},
        {"hq8 q512 d192 dv64 bf16 causal", 192, 128, 2, true},
    };
    const struct engine *const engine = cla_engine_find("nv_wgmma");
    struct facts facts;
    device_facts_read("nvidia-hopper-h200.facts", &facts);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct config list[CLA_MAX_CONFIGS];
        const clattn_problem problem = shape_of(rows[i].shape);
        assert_true(engine->configs(&facts, &problem, list) >= 1);
        const int kv_slots = define_of(&facts, &problem, &list[0], "KV_SLOTS");
        const int by_bits = define_of(&facts, &problem, &list[0], "HIDES_BY_BITS");
        if (list[0].block_m != rows[i].block_m || list[0].block_n != rows[i].block_n || kv_slots != rows[i].kv_slots ||
            by_bits != rows[i].by_bits) {
            fail_msg("\"%s\": %d x %d, %d slots, by bits %d", rows[i].shape, list[0].block_m, list[0].block_n, kv_slots,
                     by_bits);
        }
    }
}

/* nv_mma serves few queries, and strides that the tensor memory accelerator cannot use. */
static void nv_wgmma_names_what_it_declines(void **state)
{
    (void)state;
    const struct engine *const engine = cla_engine_find("nv_wgmma"), *const next = cla_engine_find("nv_mma");
    struct facts facts;
    device_facts_read("nvidia-hopper-h200.facts", &facts);
    char why[200] = "";
    clattn_problem problem = shape_of("hq8 q63 d64 bf16");
    assert_false(engine->serves(&facts, &problem, why, sizeof why));
    assert_contains(why, "fewer than 64 queries");
    problem = shape_of("hq8 q64 d64 bf16");
    assert_true(engine->serves(&facts, &problem, why, sizeof why));
    problem.k.strides.row += 4;
    assert_false(engine->serves(&facts, &problem, why, sizeof why));
    assert_contains(why, "multiples of 16 bytes");
    assert_true(next->serves(&facts, &problem, why, sizeof why));
    problem = shape_of("hq8 q64 d72 dv264 bf16");
    assert_false(engine->serves(&facts, &problem, why, sizeof why));
    assert_contains(why, "head sizes up to 256");
}

/* Where only copies fill a slot and a row stays within a warp; smaller heads are slower with such barriers (docs/notes). */
static void simt_gives_slots_barriers_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *facts, *shape;
        bool given;
    } rows[] = {
        {"nvidia-hopper-h200.facts", "hq8 q512 d256", true},
        {"nvidia-ampere-rtx3060.facts", "hq8 q512 d64 dv160", true},
        {"nvidia-hopper-h200.facts", "hq8 q512 d256 causal window=64,0", true},
        {"nvidia-hopper-h200.facts", "hq8 q512 d128", false},
        {"nvidia-hopper-h200.facts", "hq8 q512 d256 dv128", false},
        {"nvidia-hopper-h200.facts", "hq8 q512 d254 dv254", false},
        {"nvidia-hopper-h200.facts", "hq8 q512 d256 q=fp32 kv=fp16 o=fp32", false},
        {"nvidia-hopper-h200.facts", "hq8 q512 d256 softcap=9", false},
        {"nvidia-pascal-gtx1070.facts", "hq8 q512 d256", false},
        {"amd-rdna3-gfx1100.facts", "hq8 q512 d256", false},
    };
    const struct engine *const engine = cla_engine_find("simt");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct facts facts;
        struct config list[CLA_MAX_CONFIGS];
        const clattn_problem problem = shape_of(rows[i].shape);
        device_facts_read(rows[i].facts, &facts);
        assert_true(engine->configs(&facts, &problem, list) >= 1);
        const int given = define_of(&facts, &problem, &list[0], "SLOT_BARRIERS");
        if (given != rows[i].given) {
            fail_msg("%s, \"%s\": slot barriers %d", rows[i].facts, rows[i].shape, given);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_are_named_once_and_found),
        cmocka_unit_test(engines_are_twin_files),
        cmocka_unit_test(prefetch_only_where_it_is_known_to_work),
        cmocka_unit_test(the_unfused_workspace_holds_the_scores),
        cmocka_unit_test(launches_tell_what_a_slice_is_measured_by),
        cmocka_unit_test(lengths_never_appear_in_kernel_source),
        cmocka_unit_test(nv_wgmma_declines_rows_past_2_to_the_31),
        cmocka_unit_test(nv_wgmma_takes_other_tiles_for_short_calls),
        cmocka_unit_test(nv_wgmma_names_what_it_declines),
        cmocka_unit_test(simt_gives_slots_barriers_of_their_own),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
