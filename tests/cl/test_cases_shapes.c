/* SPDX-License-Identifier: Apache-2.0
 * Shapes, strides and sizes on every engine: cases from public bug reports. Where there is no exact answer the oracle judges.
 */
#include "attend.h"

/* Bottom-right with more queries than keys: the first rows see no key, and a block bound becomes negative. */
static void causal_works_with_more_queries_than_keys(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q130 k2 d128 causal=bottom-right lse");
        for (int64_t d = 0; d < 128; d++) {
            trial_set(&a.data.v, 0, 0, 0, d, (float)(d + 1));
            trial_set(&a.data.v, 0, 0, 1, d, -(float)d);
        }
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < 128; i++) {
                assert_true(trial_get(&a.data.o, 0, 0, i, i) == 0.0f);
                assert_true(trial_get(&a.data.lse, 0, 0, i, 0) == -INFINITY);
            }
            assert_true(trial_get(&a.data.o, 0, 0, 128, 40) == 41.0f);
            assert_near(trial_get(&a.data.o, 0, 0, 129, 40), 0.5, 1e-6);
        }
        attend_end(&a);
        attend_check(engine, "q3 k128 d128 causal=bottom-right lse");
    }
}

/* The diagonal can cross two key blocks in one query block. Lengths around every power of two, so that the borders of any tile
 * are among them. */
static void the_diagonal_is_right_for_all_lengths(void **state)
{
    (void)state;
    static const int lengths[] = {1, 2, 7, 16, 17, 31, 33, 64, 65, 96, 128, 129, 193};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            for (size_t j = 0; j < COUNT_OF(lengths); j++) {
                char text[128];
                if ((i + j) % 2 == 0) {
                    snprintf(text, sizeof text, "q%d k%d d8 dv12 causal=bottom-right lse seed=%zu", lengths[i], lengths[j],
                             i * 13 + j);
                } else {
                    snprintf(text, sizeof text, "q%d k%d d8 dv12 causal=%d lse seed=%zu", lengths[i], lengths[j],
                             (int)(i * 37 % 90) - 40, i * 13 + j);
                }
                attend_check(engine, text);
            }
        }
    }
}

/* Rows of V are one-hot, so the output shows which keys are visible and with what weight. */
static void one_hot_values_show_the_weight_of_each_key(void **state)
{
    (void)state;
    enum { QUERIES = 37, KEYS = 53 };
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q37 k53 d8 dv53 causal=bottom-right");
        for (int64_t j = 0; j < KEYS; j++) {
            trial_set(&a.data.v, 0, 0, j, j, 1.0f);
        }
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < QUERIES; i++) {
                const int64_t seen = i + 1 + KEYS - QUERIES;
                for (int64_t j = 0; j < KEYS; j++) {
                    assert_near(trial_get(&a.data.o, 0, 0, i, j), j < seen ? 1.0 / (double)seen : 0.0, 1e-6);
                }
            }
        }
        attend_end(&a);
    }
}

/* No kernel may use only the first half of a head. */
static void every_dimension_of_a_head_counts(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k2 d128 scale=1");
        for (int64_t d = 64; d < 128; d++) {
            trial_set(&a.data.q, 0, 0, 0, d, 1.0f);
            trial_set(&a.data.k, 0, 0, 1, d, logf(3.0f) / 64.0f);
        }
        for (int64_t d = 0; d < 128; d++) {
            trial_set(&a.data.v, 0, 0, 1, d, 1.0f);
        }
        if (attend_run(&a, engine)) {
            assert_near(trial_get(&a.data.o, 0, 0, 0, 0), 0.75, 1e-5);
            assert_near(trial_get(&a.data.o, 0, 0, 0, 127), 0.75, 1e-5);
        }
        attend_end(&a);
        attend_check(engine, "q113 k123 d1 lse");
        attend_check(engine, "q65 k1019 d65 lse");
        attend_check(engine, "q257 k1024 d33 lse");
    }
}

/* Head sizes that are no multiple of anything. The full list is in `clattn check --full`. */
static void any_head_size_is_served(void **state)
{
    (void)state;
    static const int sizes[] = {3, 20, 72, 80, 224};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            char text[64];
            snprintf(text, sizeof text, "q35 k1024 d%d fp16 lse", sizes[i]);
            attend_check(engine, text);
        }
    }
}

static void value_heads_may_have_another_size(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        attend_check(engine, "b2 hq3 q16 d32 dv24 lse repeats=2");
        attend_check(engine, "b2 hq3 q16 d4 dv2 lse repeats=2");
        attend_check(engine, "hq2 q40 k70 d64 dv128 fp16 repeats=2");
        attend_check(engine, "q17 k70 d192 dv128 fp16 repeats=2");
        attend_check(engine, "q9 k70 d576 dv512 fp16 repeats=2");
    }
}

/* V as a view into the first 512 columns of K, as in multi-head latent attention. */
static void values_may_be_a_view_into_keys(void **state)
{
    (void)state;
    static const int rows = 33;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        clattn_error error;
        clattn_plan *plan = NULL;
        clattn_plan_options options;
        clattn_error_init(&error);
        clattn_plan_options_init(&options);
        options.at_bounds = true;
        options.engine = engine;
        attend_begin(&a, "q2 k33 d576 dv512 fp16");
        for (int64_t j = 0; j < rows; j++) {
            for (int64_t d = 0; d < 576; d++) {
                trial_set(&a.data.k, 0, 0, j, d, d < 512 ? (float)(j % 8) : 0.0f);
            }
        }
        a.trial.problem.v = a.trial.problem.k;
        const clattn_status status = clattn_plan_create(bench.context, &a.trial.problem, &options, &plan, &error);
        if (status == CLATTN_SUCCESS) {
            cl_int code;
            clattn_call call;
            uint16_t out[2 * 512];
            cl_context cl = clattn_context_cl(bench.context);
            cl_mem q =
                clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, 2 * 576 * 2, (uint16_t *)a.data.q.data + a.data.q.origin, &code);
            cl_mem kv =
                clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, 33 * 576 * 2, (uint16_t *)a.data.k.data + a.data.k.origin, &code);
            cl_mem o = clCreateBuffer(cl, 0, sizeof out, NULL, &code);
            clattn_call_init(&call, plan);
            call.q = clattn_mem(q, 0);
            call.k = call.v = clattn_mem(kv, 0);
            call.o = clattn_mem(o, 0);
            assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
            assert_int_equal(clEnqueueReadBuffer(bench.queue, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL), CL_SUCCESS);
            /* (4 * (0 + ... + 7) + 0) / 33 = 3.39394 in fp16 */
            assert_int_equal(out[0], 0x42ca);
            assert_int_equal(out[2 * 512 - 1], 0x42ca);
            clReleaseMemObject(q);
            clReleaseMemObject(kv);
            clReleaseMemObject(o);
            clattn_plan_destroy(plan);
        } else {
            assert_int_equal(status, CLATTN_UNSUPPORTED);
        }
        attend_end(&a);
    }
}

/* Decoding must not read past the end when the length is no multiple of 32; in every trial NaN follows K and V. */
static void decoding_reads_nothing_past_the_last_key(void **state)
{
    (void)state;
    static const int keys[] = {1, 31, 33, 38, 39, 70, 1023, 1024, 1025};
    static const int dims[] = {64, 96};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t d = 0; d < COUNT_OF(dims); d++) {
            for (int q = 1; q <= 8; q += 7) {
                for (size_t i = 0; i < COUNT_OF(keys); i++) {
                    char text[96];
                    snprintf(text, sizeof text, "hq32 hkv2 q%d k%d d%d fp16 causal=bottom-right", q, keys[i], dims[d]);
                    attend_check(engine, text);
                }
            }
        }
    }
}

static void short_sequences_are_right(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        for (int q = 1; q <= 17; q++) {
            for (int k = 1 + q % 2; k <= 17; k += 2) { /* every other pair; `clattn check --full` runs them all */
                char text[64];
                snprintf(text, sizeof text, "q%d k%d d5 lse seed=%d", q, k, q * 17 + k);
                attend_check(engine, text);
            }
        }
        attend_check(engine, "q1 k20 d128");
        attend_check(engine, "q17 k16 d128");
    }
}

/* With local arrays of a fixed size, keys after the 512th would be ignored and heads over 256 would be out of bounds. */
static void many_keys_and_large_heads_are_right(void **state)
{
    (void)state;
    static const int keys[] = {513, 5000};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            struct attend a;
            char text[64];
            snprintf(text, sizeof text, "q1 k%d d5", keys[i]);
            attend_begin(&a, text);
            trial_set(&a.data.v, 0, 0, keys[i] - 1, 2, 1000.0f);
            if (attend_run(&a, engine)) {
                assert_near(trial_get(&a.data.o, 0, 0, 0, 2), 1000.0 / keys[i], 1e-4);
            }
            attend_end(&a);
        }
        attend_check(engine, "q3 k40 d257 dv257");
        attend_check(engine, "q3 k40 d1024 dv1024");
    }
}

/* Query heads share key/value heads in runs (repeat), not in turn (tile). */
static void query_heads_share_key_heads_in_runs(void **state)
{
    (void)state;
    static const float want[] = {1.0f, 1.0f, 2.0f, 2.0f};
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "hq4 hkv2 q3 k6 d5");
        for (int64_t j = 0; j < 6; j++) {
            for (int64_t d = 0; d < 5; d++) {
                trial_set(&a.data.v, 0, 0, j, d, 1.0f);
                trial_set(&a.data.v, 0, 1, j, d, 2.0f);
            }
        }
        if (attend_run(&a, engine)) {
            for (int64_t h = 0; h < 4; h++) {
                assert_near(trial_get(&a.data.o, 0, h, 2, 4), want[h], 1e-6);
            }
        }
        attend_end(&a);
        attend_check(engine, "b2 hq28 hkv4 q5 k9 d5 lse");
        attend_check(engine, "hq6 hkv1 q5 k9 d5 lse");
        attend_check(engine, "hq12 hkv4 q1 k9 d5 causal=bottom-right lse");
    }
}

/* More heads or batches than a grid dimension holds on some devices. */
static void more_heads_than_a_grid_dimension_holds_are_served(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        if (strcmp(engine, "unfused") != 0) {
            attend_check(engine, "b1 hq65537 q10 d5");
        }
        attend_check(engine, "b70000 hq1 q2 d5");
    }
}

/* All batch entries are right, not only the first; the output's row stride is not its head size. */
static void every_batch_entry_is_right_in_every_layout(void **state)
{
    (void)state;
    static const char *const layouts[] = {"bhsd", "bshd", "sbhd"};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(layouts); i++) {
            char text[96];
            snprintf(text, sizeof text, "b3 hq3 q4 k7 d5 lse layout=%s", layouts[i]);
            attend_check(engine, text);
        }
    }
}

/* One key/value head for all, by a stride of 0 in place of the GQA option: equals the expanded copy. */
static void a_head_stride_of_zero_shares_one_head(void **state)
{
    (void)state;
    static const int keys[] = {32, 33, 34, 65, 97};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            struct attend shared, grouped;
            char text[96];
            snprintf(text, sizeof text, "hq8 hkv8 q4 k%d d5 bf16", keys[i]);
            attend_begin(&shared, text);
            trial_data_destroy(&shared.data);
            shared.trial.problem.k.strides.head = shared.trial.problem.v.strides.head = 0;
            assert_true(trial_data_create(&shared.data, &shared.trial));
            snprintf(text, sizeof text, "hq8 hkv1 q4 k%d d5 bf16", keys[i]);
            attend_begin(&grouped, text);
            for (int64_t j = 0; j < keys[i]; j++) {
                for (int64_t d = 0; d < 5; d++) {
                    trial_set(&grouped.data.k, 0, 0, j, d, trial_get(&shared.data.k, 0, 0, j, d));
                    trial_set(&grouped.data.v, 0, 0, j, d, trial_get(&shared.data.v, 0, 0, j, d));
                }
                for (int64_t h = 0; h < 8 && j < 4; h++) {
                    for (int64_t d = 0; d < 5; d++) {
                        trial_set(&grouped.data.q, 0, h, j, d, trial_get(&shared.data.q, 0, h, j, d));
                    }
                }
            }
            if (attend_run(&shared, engine) && attend_run(&grouped, engine)) {
                for (int64_t h = 0; h < 8; h++) {
                    for (int64_t row = 0; row < 4; row++) {
                        assert_near(trial_get(&shared.data.o, 0, h, row, 3), trial_get(&grouped.data.o, 0, h, row, 3), 0.02);
                    }
                }
            }
            attend_end(&shared);
            attend_end(&grouped);
        }
    }
}

/* One tensor at a time has another layout, inner strides and mirrored views included; results equal the plain layout's. */
static void one_tensor_in_another_layout_changes_nothing(void **state)
{
    (void)state;
    static const char *const tensors = "qkvo";
    FOR_EACH_ENGINE(engine)
    {
        for (int which = 0; which < 4; which++) {
            for (int way = 0; way < 3; way++) {
                struct trial trial;
                struct trial_result result;
                clattn_error error;
                clattn_error_init(&error);
                assert_ok(trial_parse("b2 hq3 q20 k33 d8 dv12 lse", &trial, &error), &error);
                clattn_tensor *all[] = {&trial.problem.q, &trial.problem.k, &trial.problem.v, &trial.problem.o};
                clattn_tensor *odd = all[which];
                if (way == 0) { /* inner stride 2 */
                    odd->strides.batch *= 2, odd->strides.head *= 2, odd->strides.row *= 2, odd->strides.column = 2;
                } else if (way == 1) { /* mirrored along the sequence */
                    odd->strides.row = -odd->strides.row;
                } else { /* a [batch, seq, heads * dim] view with a row of padding */
                    const int64_t dim = odd->strides.row, heads = 3, seq = odd->strides.head / dim;
                    odd->strides.head = dim;
                    odd->strides.row = heads * dim + 3;
                    odd->strides.batch = seq * odd->strides.row + 5;
                }
                trial_run_engine(bench.context, bench.queue, engine, &trial, &result);
                if (!result.ok && result.status != CLATTN_UNSUPPORTED) {
                    fail_msg("%s, tensor %c, way %d: %s", engine, tensors[which], way, result.message);
                }
            }
        }
    }
}

/* Offsets past 2^31 elements need a buffer over 4 GB in fp16: only devices that allow one are tested. */
static void offsets_past_two_to_the_31_are_right(void **state)
{
    (void)state;
    cl_ulong largest = 0;
    const int64_t far = ((int64_t)1 << 31) + 64;
    clGetDeviceInfo(clattn_context_device(bench.context), CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    if (largest < (cl_ulong)(far + 8) * 2) {
        print_message("no buffer of this device holds 2^31 fp16 elements\n");
        return;
    }
    clattn_problem problem;
    clattn_error error;
    clattn_error_init(&error);
    FOR_EACH_ENGINE(engine)
    {
        if (!engine_serves(engine, "q1 k2 d8 fp16")) {
            continue;
        }
        cl_int code;
        clattn_plan *plan = NULL;
        clattn_plan_options options;
        clattn_call call;
        const uint16_t zero[8] = {0}, one[8] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
        uint16_t out[8];
        cl_context cl = clattn_context_cl(bench.context);
        assert_ok(clattn_problem_parse("q1 k2 d8 fp16", &problem, &error), &error);
        problem.k.strides.row = problem.v.strides.row = far;
        clattn_plan_options_init(&options);
        options.at_bounds = true;
        options.engine = engine;
        assert_ok(clattn_plan_create(bench.context, &problem, &options, &plan, &error), &error);
        cl_mem kv = clCreateBuffer(cl, 0, (size_t)(far + 8) * 2, NULL, &code);
        assert_int_equal(code, CL_SUCCESS);
        cl_mem q = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof zero, (void *)zero, &code);
        cl_mem o = clCreateBuffer(cl, 0, sizeof out, NULL, &code);
        clEnqueueWriteBuffer(bench.queue, kv, CL_TRUE, 0, sizeof zero, zero, 0, NULL, NULL);
        clEnqueueWriteBuffer(bench.queue, kv, CL_TRUE, (size_t)far * 2, sizeof one, one, 0, NULL, NULL);
        clattn_call_init(&call, plan);
        call.q = clattn_mem(q, 0);
        call.k = call.v = clattn_mem(kv, 0);
        call.o = clattn_mem(o, 0);
        assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
        clEnqueueReadBuffer(bench.queue, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL);
        assert_int_equal(out[0], 0x3800);
        clReleaseMemObject(kv);
        clReleaseMemObject(q);
        clReleaseMemObject(o);
        clattn_plan_destroy(plan);
    }
}

/* Vector loads must not assume alignment: every tensor starts 1, 2 and 3 elements inside its buffer. */
static void unaligned_tensors_are_right(void **state)
{
    (void)state;
    static const int dims[] = {5, 33, 64};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(dims); i++) {
            for (int shift = 1; shift <= 3; shift++) {
                char text[96];
                snprintf(text, sizeof text, "hq2 q20 k70 d%d fp16 shift=%d", dims[i], shift);
                attend_check(engine, text);
                snprintf(text, sizeof text, "hq2 q20 k70 d%d shift=%d", dims[i], shift);
                attend_check(engine, text);
            }
        }
    }
}

/* Sizes that no work-group divides. */
static void sizes_that_no_work_group_divides_are_right(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        attend_check(engine, "b3 hq7 q61 k67 d5 lse");
        attend_check(engine, "b1 hq13 q127 k131 d5 causal lse");
    }
}

/* fp32 inputs at 1024 keys stay within 1e-5 of the oracle. */
static void fp32_stays_within_its_bound(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        attend_check(engine, "q200 k1024 d64");
        attend_check(engine, "q200 k1024 d128");
    }
}

/* Weights add up to one in every row: V = 1 gives 1. */
static void values_of_one_give_one(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "hq2 hkv1 q70 k513 d5 causal=bottom-right inputs=ones");
        trial_data_destroy(&a.data);
        assert_true(trial_data_create(&a.data, &a.trial));
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < 70; i++) {
                assert_near(trial_get(&a.data.o, 0, 1, i, 4), 1.0, 2e-6);
            }
        }
        attend_end(&a);
    }
}

/* An argument selects tests as CMocka's filters do, for example `offsets_past*`. */
int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_works_with_more_queries_than_keys),
        cmocka_unit_test(the_diagonal_is_right_for_all_lengths),
        cmocka_unit_test(one_hot_values_show_the_weight_of_each_key),
        cmocka_unit_test(every_dimension_of_a_head_counts),
        cmocka_unit_test(any_head_size_is_served),
        cmocka_unit_test(value_heads_may_have_another_size),
        cmocka_unit_test(values_may_be_a_view_into_keys),
        cmocka_unit_test(decoding_reads_nothing_past_the_last_key),
        cmocka_unit_test(short_sequences_are_right),
        cmocka_unit_test(many_keys_and_large_heads_are_right),
        cmocka_unit_test(query_heads_share_key_heads_in_runs),
        cmocka_unit_test(more_heads_than_a_grid_dimension_holds_are_served),
        cmocka_unit_test(every_batch_entry_is_right_in_every_layout),
        cmocka_unit_test(a_head_stride_of_zero_shares_one_head),
        cmocka_unit_test(one_tensor_in_another_layout_changes_nothing),
        cmocka_unit_test(offsets_past_two_to_the_31_are_right),
        cmocka_unit_test(unaligned_tensors_are_right),
        cmocka_unit_test(sizes_that_no_work_group_divides_are_right),
        cmocka_unit_test(fp32_stays_within_its_bound),
        cmocka_unit_test(values_of_one_give_one),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
