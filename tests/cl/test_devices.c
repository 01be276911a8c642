/* SPDX-License-Identifier: Apache-2.0
 * Finding and querying devices: selection by API and environment, agreement with clinfo, no platform, a broken platform,
 * emulated limits. A loader reads its vendor folder once a process, so tests with other vendor folders start this program
 * again. */
/* ctest: quick */
#define _POSIX_C_SOURCE 200809L
#include "attend.h"
#include "facts.h"
#include "files.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static clattn_error error;
static const char *own_path;

static int start(void **state)
{
    (void)state;
    clattn_error_init(&error);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------- this machine's
 * devices */

struct visited {
    int count, stop_after;
    cl_device_id first;
};

static bool visit(void *user, int platform_index, int device_index, cl_platform_id platform, cl_device_id device)
{
    struct visited *visited = user;
    assert_true(platform_index >= 0 && device_index >= 0);
    assert_non_null(platform);
    if (visited->count++ == 0) {
        visited->first = device;
    }
    return visited->count != visited->stop_after;
}

static void every_device_is_visited(void **state)
{
    (void)state;
    struct visited all = {0}, again = {0}, one = {.stop_after = 1};
    assert_ok(clattn_devices(visit, &all, &error), &error);
    assert_true(all.count >= 1);
    assert_ok(clattn_devices(visit, &again, &error), &error);
    assert_int_equal(all.count, again.count);
    assert_ptr_equal(all.first, again.first);
    assert_ok(clattn_devices(visit, &one, &error), &error);
    assert_int_equal(one.count, 1);
}

static void a_device_is_selected_by_the_api(void **state)
{
    (void)state;
    cl_device_id device = NULL, by_index = NULL;
    char name[256] = "", lower[256] = "";
    assert_ok(clattn_device_find(NULL, &device, &error), &error);
    assert_non_null(device);
    assert_ok(clattn_device_find("0:0", &by_index, &error), &error);
    clGetDeviceInfo(by_index, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
    for (size_t i = 0; i < 12 && name[i] != '\0' && name[i] != ':'; i++) {
        lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    }
    assert_ok(clattn_device_find(lower, &device, &error), &error);
    assert_int_equal(clattn_device_find("no such device", &device, &error), CLATTN_NO_DEVICE);
    assert_contains(error.message, "no such device");
    assert_contains(error.message, name); /* the message lists what there is */
    assert_int_equal(clattn_device_find("77:0", &device, &error), CLATTN_NO_DEVICE);
    clattn_context *context = NULL;
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.device = "no such device";
    assert_int_equal(clattn_context_create(NULL, NULL, &options, &context, &error), CLATTN_NO_DEVICE);
    assert_null(context);
    options.device = lower;
    assert_ok(clattn_context_create(NULL, NULL, &options, &context, &error), &error);
    clattn_context_destroy(context);
}

static void a_number_alone_is_refused_with_a_hint(void **state)
{
    (void)state;
    cl_device_id device = NULL;
    assert_int_equal(clattn_device_find("0", &device, &error), CLATTN_NO_DEVICE);
    assert_contains(error.message, "PLATFORM:DEVICE");
    assert_contains(error.message, "0:0");
}

/* A caller's context on many parts of a device, more than a fixed list would hold; PoCL 3.1 lists the whole device instead. */
static void parts_of_a_device_are_served(void **state)
{
    (void)state;
    enum { PARTS = 70 };
    const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id whole = NULL, parts[PARTS];
    cl_int code;
    assert_ok(clattn_device_find("0:0", &whole, &error), &error);
    for (int i = 0; i < PARTS; i++) {
        cl_uint count = 0;
        if (clCreateSubDevices(whole, one, 1, &parts[i], &count) != CL_SUCCESS) {
            assert_int_equal(i, 0);
            skip();
        }
    }
    for (int count = 1; count <= PARTS; count += PARTS - 1) {
        cl_context cl = clCreateContext(NULL, (cl_uint)count, parts, NULL, NULL, &code);
        clattn_context *context = NULL;
        assert_int_equal(code, CL_SUCCESS);
        assert_ok(clattn_context_create(cl, parts[count - 1], NULL, &context, &error), &error);
        assert_ptr_equal(clattn_context_device(context), parts[count - 1]);
        clattn_context_destroy(context);
        assert_ok(clattn_context_create(cl, NULL, NULL, &context, &error), &error);
        clattn_context_destroy(context);
        clReleaseContext(cl);
    }
    for (int i = 0; i < PARTS; i++) {
        clReleaseDevice(parts[i]);
    }
}

static void a_device_is_selected_by_the_environment(void **state)
{
    (void)state;
    cl_device_id device = NULL, first = NULL;
    const char *before = getenv("CLATTN_DEVICE");
    char *kept = before != NULL ? strdup(before) : NULL;
    assert_ok(clattn_device_find("0:0", &first, &error), &error);
    setenv("CLATTN_DEVICE", "0:0", 1);
    assert_ok(clattn_device_find(NULL, &device, &error), &error);
    assert_ptr_equal(device, first);
    setenv("CLATTN_DEVICE", "no such device", 1);
    assert_int_equal(clattn_device_find(NULL, &device, &error), CLATTN_NO_DEVICE);
    /* The caller's selector overrides the variable. */
    assert_ok(clattn_device_find("0:0", &device, &error), &error);
    if (kept != NULL) {
        setenv("CLATTN_DEVICE", kept, 1);
    } else {
        unsetenv("CLATTN_DEVICE");
    }
    free(kept);
}

static void context_facts(const char *overrides, struct facts *facts)
{
    static char text[16384];
    clattn_context *context = NULL;
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.overrides = overrides;
    size_t needed = 0;
    assert_ok(clattn_context_create(NULL, NULL, &options, &context, &error), &error);
    assert_int_equal(clattn_context_facts(context, text, sizeof text, &needed), CLATTN_SUCCESS);
    assert_int_equal(needed, strlen(text) + 1);
    assert_ok(cla_facts_parse(text, facts, &error), &error);
    clattn_context_destroy(context);
}

static void facts_equal_what_the_device_reports(void **state)
{
    (void)state;
    struct facts facts;
    cl_device_id device = NULL;
    size_t work_group = 0;
    cl_ulong local = 0, global = 0;
    cl_uint units = 0;
    context_facts(NULL, &facts);
    assert_ok(clattn_device_find(NULL, &device, &error), &error);
    clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof work_group, &work_group, NULL);
    clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, NULL);
    clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    assert_int_equal(facts.max_work_group, work_group);
    assert_true(facts.local_mem == local && facts.local_mem_static >= local);
    assert_true(facts.global_mem == global);
    assert_int_equal(facts.compute_units, units);
}

static void facts_are_overridden_by_api_and_environment(void **state)
{
    (void)state;
    struct facts facts;
    context_facts("local_mem=16K,max_work_group=64", &facts);
    assert_int_equal(facts.local_mem, 16384);
    assert_int_equal(facts.local_mem_static, 16384);
    assert_int_equal(facts.max_work_group, 64);
    setenv("CLATTN_DEVICE_OVERRIDE", "max_work_group=32", 1);
    context_facts("local_mem=16K,max_work_group=64", &facts);
    assert_int_equal(facts.local_mem, 16384);
    assert_int_equal(facts.max_work_group, 32);
    setenv("CLATTN_DEVICE_OVERRIDE", "max_wrk_group=32", 1);
    clattn_context *context = NULL;
    assert_int_equal(clattn_context_create(NULL, NULL, NULL, &context, &error), CLATTN_INVALID_ARGUMENT);
    assert_contains(error.message, "max_wrk_group");
    unsetenv("CLATTN_DEVICE_OVERRIDE");
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.overrides = "local_mem=lots";
    assert_int_equal(clattn_context_create(NULL, NULL, &options, &context, &error), CLATTN_INVALID_ARGUMENT);
    assert_contains(error.message, "local_mem=lots");
    assert_null(context);
}

/* Runs with small limits and without extensions. */
static void results_are_right_under_emulated_limits(void **state)
{
    (void)state;
    static const char *const limits[] = {"max_work_group=1", "max_work_group=17", "max_work_group=64,local_mem=16K",
                                         "local_mem=1K",     "local_mem=32K",     "extensions=,fma=0,vector_width=1"};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct bench small;
        struct trial trial;
        struct trial_result result;
        bench_context_open(&small, limits[i]);
        assert_ok(trial_parse("hq4 hkv2 q70 k90 d40 fp16 causal=bottom-right lse", &trial, &error), &error);
        trial_run_engine(small.context, small.queue, NULL, &trial, &result);
        if (!result.ok) {
            fail_msg("%s: %s: %s", limits[i], result.engine, result.message);
        }
        bench_context_close(&small);
    }
}

/* The environment can exclude each engine, and the result stays right. */
static void each_engine_can_be_avoided_from_the_environment(void **state)
{
    (void)state;
    struct bench own;
    struct trial trial;
    struct trial_result result;
    char avoid[256] = "";
    bench_context_open(&own, NULL);
    assert_ok(trial_parse("q20 k30 d40 fp16", &trial, &error), &error);
    FOR_EACH_ENGINE(engine)
    {
        if (strcmp(engine, "reference") != 0 && strcmp(engine, "unfused") != 0) {
            snprintf(avoid + strlen(avoid), sizeof avoid - strlen(avoid), "%s%s", avoid[0] != '\0' ? "," : "", engine);
        }
    }
    setenv("CLATTN_AVOID", avoid, 1);
    trial_run_engine(own.context, own.queue, NULL, &trial, &result);
    unsetenv("CLATTN_AVOID");
    assert_true(result.ok);
    assert_string_equal(result.engine, "reference");
    setenv("CLATTN_ENGINE", "unfused", 1);
    trial_run_engine(own.context, own.queue, "reference", &trial, &result);
    assert_true(result.ok);
    assert_string_equal(result.engine, "unfused");
    setenv("CLATTN_ENGINE", "warp_drive", 1);
    trial_run_engine(own.context, own.queue, NULL, &trial, &result);
    unsetenv("CLATTN_ENGINE");
    assert_int_equal(result.status, CLATTN_INVALID_ARGUMENT);
    bench_context_close(&own);
}

/* ---------------------------------------------------------------------------------------------------------------------- clinfo
 */

/* The value of `name` for the first device in the text of `clinfo --raw`. */
static bool clinfo_value(const char *text, const char *name, char *value, size_t size)
{
    const size_t length = strlen(name);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *at = line + strspn(line, " ");
        if (*at == '[') {
            at += strcspn(at, "]\n");
            at += *at == ']';
            at += strspn(at, " ");
        }
        if (strncmp(at, name, length) == 0 && at[length] == ' ') {
            at += length + strspn(at + length, " ");
            const size_t used = strcspn(at, "\n");
            snprintf(value, size, "%.*s", (int)used, at);
            return true;
        }
    }
    return false;
}

static char *run_clinfo(void)
{
    FILE *pipe = popen("clinfo --raw 2>/dev/null", "r");
    if (pipe == NULL) {
        return NULL;
    }
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    const size_t length = fread(text, 1, (1 << 20) - 1, pipe);
    if (pclose(pipe) != 0 || length == 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void clinfo_reports_the_same_facts(void **state)
{
    (void)state;
    static char printed[16384];
    char *text = run_clinfo();
    struct facts facts;
    cl_device_id first = NULL;
    if (text == NULL) {
        print_message("clinfo is not installed\n");
        return;
    }
    assert_ok(clattn_device_find("0:0", &first, &error), &error);
    assert_ok(clattn_device_facts(first, NULL, printed, sizeof printed, NULL, &error), &error);
    assert_ok(cla_facts_parse(printed, &facts, &error), &error);
    /* The amount of memory may be that which is free at the moment, so it is compared within a factor of two. */
    const struct {
        const char *name;
        uint64_t fact;
        bool about;
    } numbers[] = {
        {"CL_DEVICE_MAX_COMPUTE_UNITS", facts.compute_units, false},
        {"CL_DEVICE_MAX_CLOCK_FREQUENCY", facts.clock_mhz, false},
        {"CL_DEVICE_MAX_WORK_GROUP_SIZE", facts.max_work_group, false},
        {"CL_DEVICE_MAX_WORK_ITEM_SIZES", facts.max_work_item_0, false},
        {"CL_DEVICE_LOCAL_MEM_SIZE", facts.local_mem, false},
        {"CL_DEVICE_GLOBAL_MEM_SIZE", facts.global_mem, true},
        {"CL_DEVICE_MAX_MEM_ALLOC_SIZE", facts.max_alloc, true},
        {"CL_DEVICE_GLOBAL_MEM_CACHE_SIZE", facts.cache, false},
        {"CL_DEVICE_MAX_PARAMETER_SIZE", facts.max_parameters, false},
        {"CL_DEVICE_MEM_BASE_ADDR_ALIGN", facts.base_align_bits, false},
        {"CL_DEVICE_ADDRESS_BITS", facts.address_bits, false},
        {"CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT", facts.vector_width, false},
        {"CL_DEVICE_VENDOR_ID", facts.vendor_id, false},
    };
    const struct {
        const char *name, *fact;
    } strings[] = {
        {"CL_DEVICE_NAME", facts.device_name},       {"CL_DEVICE_VENDOR", facts.device_vendor},
        {"CL_DEVICE_VERSION", facts.device_version}, {"CL_DRIVER_VERSION", facts.driver_version},
        {"CL_PLATFORM_NAME", facts.platform_name},
    };
    char value[4096];
    size_t compared = 0;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (clinfo_value(text, numbers[i].name, value, sizeof value)) {
            const uint64_t there = strtoull(value, NULL, 0), here = numbers[i].fact;
            if (numbers[i].about ? there / 2 > here || here / 2 > there : there != here) {
                fail_msg("%s: clinfo says %s, the facts %llu", numbers[i].name, value, (unsigned long long)numbers[i].fact);
            }
            compared++;
        }
    }
    for (size_t i = 0; i < COUNT_OF(strings); i++) {
        if (clinfo_value(text, strings[i].name, value, sizeof value)) {
            if (strncmp(value, strings[i].fact, strlen(value)) != 0) {
                fail_msg("%s: clinfo says '%s', the facts '%s'", strings[i].name, value, strings[i].fact);
            }
            compared++;
        }
    }
    if (clinfo_value(text, "CL_DEVICE_SINGLE_FP_CONFIG", value, sizeof value)) {
        assert_int_equal(strstr(value, "CL_FP_FMA") != NULL, facts.fma != 0);
        compared++;
    }
    if (clinfo_value(text, "CL_DEVICE_LOCAL_MEM_TYPE", value, sizeof value)) {
        assert_int_equal(strcmp(value, "CL_GLOBAL") == 0, facts.local_mem_is_global != 0);
        compared++;
    }
    assert_true(compared >= 15);
    free(text);
}

/* ------------------------------------------------------------------------------------------------- other vendor folders,
 * elsewhere */

/* What the child process does; exit status 0 when all is as expected. */
static int child_without_platform(void)
{
    clattn_context *context = NULL;
    cl_device_id device = NULL;
    struct visited visited = {0};
    clattn_error_init(&error);
    for (int attempt = 0; attempt < 2; attempt++) {
        if (clattn_context_create(NULL, NULL, NULL, &context, &error) != CLATTN_NO_PLATFORM || context != NULL) {
            return 1;
        }
        /* It says what is missing and what to install. */
        if (strstr(error.message, "install") == NULL || strstr(error.message, "pocl") == NULL ||
            strstr(error.message, "OCL_ICD_VENDORS") == NULL) {
            return 2;
        }
        if (clattn_device_find("gpu", &device, &error) != CLATTN_NO_PLATFORM) {
            return 3;
        }
        if (clattn_devices(visit, &visited, &error) != CLATTN_NO_PLATFORM || visited.count != 0) {
            return 4;
        }
    }
    return 0;
}

static int child_with_devices(void)
{
    struct visited visited = {0};
    clattn_error_init(&error);
    return clattn_devices(visit, &visited, &error) == CLATTN_SUCCESS && visited.count == 1 ? 0 : 5;
}

/* Exits without destroying anything. */
static int child_that_leaves_its_objects(void)
{
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_problem problem;
    clattn_error_init(&error);
    if (clattn_context_create(NULL, NULL, NULL, &context, &error) != CLATTN_SUCCESS ||
        clattn_problem_parse("q3 k4 d8", &problem, &error) != CLATTN_SUCCESS ||
        clattn_plan_create(context, &problem, NULL, &plan, &error) != CLATTN_SUCCESS) {
        return 6;
    }
    return 0;
}

static int run_child(const char *mode, const char *vendors)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (vendors != NULL) {
            setenv("OCL_ICD_VENDORS", vendors, 1);
        }
        unsetenv("OCL_ICD_FILENAMES");
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* one of the children leaves its objects on purpose */
        execl(own_path, own_path, mode, (char *)NULL);
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void no_platform_is_an_error_that_says_so(void **state)
{
    (void)state;
    char *empty = folder_create();
    assert_non_null(empty);
    assert_int_equal(run_child("without-platform", empty), 0);
    assert_int_equal(run_child("without-platform", "/nonexistent/vendors"), 0);
    folder_remove(empty);
}

/* A vendor file that names no library, next to the good ones. */
static void a_broken_vendor_file_does_no_harm(void **state)
{
    (void)state;
    struct names names;
    const char *system = getenv("OCL_ICD_VENDORS") != NULL ? getenv("OCL_ICD_VENDORS") : "/etc/OpenCL/vendors";
    if (!folder_list(system, ".icd", &names) || names.count != 1) {
        print_message("needs a folder with one vendor file\n");
        names_free(&names);
        return;
    }
    char *folder = folder_create();
    assert_non_null(folder);
    char *broken = path_join(folder, "a-broken.icd"), *good = path_join(folder, "b-good.icd"),
         *source = path_join(system, names.list[0]), *text = file_read(source);
    assert_non_null(text);
    assert_true(file_write(broken, "/nonexistent/libbroken.so\n") && file_write(good, text));
    assert_int_equal(run_child("with-devices", folder), 0);
    folder_remove(folder);
    free(broken);
    free(good);
    free(source);
    free(text);
    names_free(&names);
}

static void exit_without_clean_up_does_no_harm(void **state)
{
    (void)state;
    assert_int_equal(run_child("leave-objects", NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_device_is_visited, start),
        cmocka_unit_test_setup(a_device_is_selected_by_the_api, start),
        cmocka_unit_test_setup(a_number_alone_is_refused_with_a_hint, start),
        cmocka_unit_test_setup(parts_of_a_device_are_served, start),
        cmocka_unit_test_setup(a_device_is_selected_by_the_environment, start),
        cmocka_unit_test_setup(facts_equal_what_the_device_reports, start),
        cmocka_unit_test_setup(facts_are_overridden_by_api_and_environment, start),
        cmocka_unit_test_setup(results_are_right_under_emulated_limits, start),
        cmocka_unit_test_setup(each_engine_can_be_avoided_from_the_environment, start),
        cmocka_unit_test_setup(clinfo_reports_the_same_facts, start),
        cmocka_unit_test_setup(no_platform_is_an_error_that_says_so, start),
        cmocka_unit_test_setup(a_broken_vendor_file_does_no_harm, start),
        cmocka_unit_test_setup(exit_without_clean_up_does_no_harm, start),
    };
    own_path = argv[0];
    if (argc > 1) {
        return strcmp(argv[1], "without-platform") == 0 ? child_without_platform()
               : strcmp(argv[1], "with-devices") == 0   ? child_with_devices()
               : strcmp(argv[1], "leave-objects") == 0  ? child_that_leaves_its_objects()
                                                        : 98;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
