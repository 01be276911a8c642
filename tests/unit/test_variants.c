/* SPDX-License-Identifier: Apache-2.0
 * What a plan builds for calls below its bounds is what these calls need, over the facts of real devices. */
#include "support.h"

#include "choose.h"
#include "device_facts.h"
#include "files.h"
#include "kernel_text.h"
#include "random.h"
#include "workspace.h"

enum { MAX_BUILT = 64, CALLS = 60 };

static clattn_error error;
static struct names devices;

static const char *const bounds[] = {
    "q512 k8192 hq8 d64",
    "b4 q2048 k8192 hq32 hkv8 d128 fp16 causal=bottom-right",
    "q8 k32768 hq32 hkv8 d128 bf16",
    "b8 q1 k5000 hq32 hkv4 d64 fp16",
    "q300 k300 hq12 d64 mask=qk",
    "b2 q1024 k4096 hq16 d80 fp16 bias=hqk",
    "b64 q700 k700 hq2 d256 softcap=30",
    "q128 k70000 hq6 hkv1 d192 dv128",
};

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

static clattn_problem sized(const clattn_problem *problem, struct call_size size)
{
    clattn_problem p = *problem;
    p.batch = size.batch, p.seq_q = size.seq_q, p.seq_kv = size.seq_kv;
    return p;
}

static bool first_choice(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                         struct config *config)
{
    static struct candidates candidates;
    const clattn_status status = cla_decide(facts, problem, options, &candidates, &error);
    *config = candidates.list[0];
    cla_text_free(&candidates.declined);
    return status == CLATTN_SUCCESS;
}

static size_t find(const struct config *const *list, size_t count, const struct config *config)
{
    size_t i = 0;
    while (i < count && !cla_same_kernels(list[i], config)) {
        i++;
    }
    return i;
}

/* The first choice at each size that a plan decides for. */
static size_t what_is_built(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                            struct config *configs, const struct config **built)
{
    static struct call_size sizes[CLA_MAX_CALL_SIZES];
    const size_t size_count = cla_call_sizes(problem, sizes);
    size_t count = 0;
    assert_true(size_count >= 1 && size_count <= CLA_MAX_CALL_SIZES);
    assert_true(sizes[0].batch == problem->batch && sizes[0].seq_q == problem->seq_q && sizes[0].seq_kv == problem->seq_kv);
    for (size_t i = 0; i < size_count; i++) {
        const clattn_problem p = sized(problem, sizes[i]);
        assert_true(p.batch >= 1 && p.batch <= problem->batch && p.seq_q >= 1 && p.seq_q <= problem->seq_q && p.seq_kv >= 1 &&
                    p.seq_kv <= problem->seq_kv);
        struct config config;
        if (first_choice(facts, &p, options, &config) && find(built, count, &config) == count) {
            assert_true(count < MAX_BUILT);
            configs[count] = config;
            built[count] = &configs[count];
            count++;
        }
    }
    return count;
}

/* Sizes near 1 as often as large ones. */
static int64_t draw(uint64_t *random, int64_t bound)
{
    const int64_t below = (int64_t)1 << random_below(random, 18);
    return 1 + (int64_t)random_below(random, (uint64_t)(below < bound ? below : bound));
}

/* A call gets the kernels, with the numbers, of a plan made for it, and fits the workspace. */
static void calls_get_what_a_plan_for_them_would_have(void **state)
{
    (void)state;
    static struct config configs[MAX_BUILT];
    const struct config *built[MAX_BUILT];
    uint64_t random = 11;
    size_t most = 0, calls = 0, missing = 0;
    for (size_t d = 0; d < devices.count; d++) {
        struct facts facts;
        device_facts_read(devices.list[d], &facts);
        for (size_t b = 0; b < COUNT_OF(bounds); b++) {
            const clattn_problem problem = shape_of(bounds[b]);
            clattn_plan_options options;
            clattn_plan_options_init(&options);
            const size_t count = what_is_built(&facts, &problem, &options, configs, built);
            size_t workspace = 0;
            most = count > most ? count : most;
            for (size_t i = 0; i < count; i++) {
                const size_t bytes = cla_most_workspace(&facts, &problem, &options, built[i]);
                workspace = bytes > workspace ? bytes : workspace;
            }
            for (int i = 0; i < CALLS; i++, calls++) {
                const struct call_size size = {draw(&random, problem.batch), draw(&random, problem.seq_q),
                                               draw(&random, problem.seq_kv)};
                const clattn_problem p = sized(&problem, size);
                struct config wanted, chosen;
                assert_true(first_choice(&facts, &p, &options, &wanted));
                const size_t at = cla_decide_among(&facts, &p, &options, built, count, &chosen);
                if (find(built, count, &wanted) == count) {
                    missing++;
                    print_message("%s, \"%s\", call b%d q%d k%d: nothing built for %s %dx%d\n", devices.list[d], bounds[b],
                                  (int)size.batch, (int)size.seq_q, (int)size.seq_kv, wanted.engine->name, wanted.block_m,
                                  wanted.block_n);
                    continue;
                }
                assert_true(at < count && cla_same_kernels(built[at], &wanted));
                assert_true(cla_same_kernels(&chosen, &wanted) && chosen.chunk == wanted.chunk);
                assert_true(cla_workspace_bytes(&p, &chosen) <= workspace);
            }
        }
    }
    print_message("%d calls, %d without their first choice, at most %d variants\n", (int)calls, (int)missing, (int)most);
    assert_int_equal(missing, 0);
}

/* Fails when a new field of struct config appears in kernel source and cla_same_kernels does not compare it. */
static void the_same_kernels_have_the_same_source(void **state)
{
    (void)state;
    static struct config configs[MAX_BUILT];
    const struct config *built[MAX_BUILT];
    struct text defines[MAX_BUILT] = {{0}}, again = {0};
    for (size_t d = 0; d < devices.count; d++) {
        struct facts facts;
        device_facts_read(devices.list[d], &facts);
        for (size_t b = 0; b < COUNT_OF(bounds); b++) {
            const clattn_problem problem = shape_of(bounds[b]);
            clattn_plan_options options;
            static struct call_size sizes[CLA_MAX_CALL_SIZES];
            clattn_plan_options_init(&options);
            const size_t count = what_is_built(&facts, &problem, &options, configs, built);
            for (size_t i = 0; i < count; i++) {
                cla_kernel_defines(&facts, &problem, &configs[i], &defines[i]);
                for (size_t j = 0; j < i; j++) {
                    assert_false(configs[i].engine == configs[j].engine && strcmp(defines[i].data, defines[j].data) == 0);
                }
            }
            const size_t size_count = cla_call_sizes(&problem, sizes);
            for (size_t i = 0; i < size_count; i++) {
                struct config config;
                const clattn_problem p = sized(&problem, sizes[i]);
                if (first_choice(&facts, &p, &options, &config)) {
                    cla_kernel_defines(&facts, &p, &config, &again);
                    assert_string_equal(again.data, defines[find(built, count, &config)].data);
                    cla_text_free(&again);
                }
            }
            for (size_t i = 0; i < count; i++) {
                cla_text_free(&defines[i]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_get_what_a_plan_for_them_would_have),
        cmocka_unit_test(the_same_kernels_have_the_same_source),
    };
    return cmocka_run_group_tests(tests, list_devices, free_devices);
}
