/* SPDX-License-Identifier: Apache-2.0
 * Programs kept between contexts: a warm start builds nothing, and whatever happens to the cache, results are right and
 * nothing is printed. */
/* ctest: quick */
#include "attend.h"

#include "cache.h"
#include "files.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIAL "hq2 q5 k7 d8"

static char *root, *folder;

static int set_up(void **state)
{
    (void)state;
    root = folder_create();
    folder = root != NULL ? path_join(root, "cache") : NULL;
    unsetenv("CLATTN_CACHE");
    unsetenv("CLATTN_CACHE_DIR");
    return folder != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(root);
    free(folder);
    return 0;
}

/* Runs one attention in its own context, checks it, and returns how many programs were built. */
static size_t builds_with(const clattn_context_options *options)
{
    struct bench own;
    struct trial trial;
    struct trial_result result;
    clattn_error error;
    cl_int code = CL_SUCCESS;
    clattn_error_init(&error);
    assert_ok(trial_parse(TRIAL, &trial, &error), &error);
    assert_ok(clattn_context_create(NULL, NULL, options, &own.context, &error), &error);
    own.queue = clCreateCommandQueue(clattn_context_cl(own.context), clattn_context_device(own.context), 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    trial_run_engine(own.context, own.queue, "reference", &trial, &result);
    if (!result.ok) {
        fail_msg("%s", result.message);
    }
    const size_t builds = clattn_context_build_count(own.context);
    clattn_context_save(own.context);
    bench_context_close(&own);
    return builds;
}

static size_t builds_in(const char *where)
{
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.cache_folder = where;
    return builds_with(&options);
}

static size_t entries_in(const char *where)
{
    struct names names;
    if (!folder_list(where, ".clb", &names)) {
        return 0;
    }
    const size_t count = names.count;
    names_free(&names);
    return count;
}

static void a_warm_start_builds_nothing(void **state)
{
    (void)state;
    assert_int_equal(builds_in(folder), 1);
    assert_int_equal(entries_in(folder), 1);
    assert_int_equal(builds_in(folder), 0);
    assert_int_equal(builds_in(folder), 0);
    assert_int_equal(entries_in(folder), 1);
}

static bool is_pocl(clattn_context *context)
{
    char facts[8192];
    assert_int_equal(clattn_context_facts(context, facts, sizeof facts, NULL), CLATTN_SUCCESS);
    return strstr(facts, "Portable Computing Language") != NULL;
}

/* A context with a plan of the trial, which is destroyed again, and the cache in the folder. */
static clattn_context *planned(void)
{
    clattn_context_options options;
    clattn_plan_options engine;
    clattn_problem problem;
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_error error;
    clattn_error_init(&error);
    clattn_context_options_init(&options);
    clattn_plan_options_init(&engine);
    options.cache_folder = folder;
    engine.engine = "reference";
    assert_ok(clattn_context_create(NULL, NULL, &options, &context, &error), &error);
    assert_ok(clattn_problem_parse(TRIAL, &problem, &error), &error);
    assert_ok(clattn_plan_create(context, &problem, &engine, &plan, &error), &error);
    clattn_plan_destroy(plan);
    return context;
}

/* Where a driver compiles again to give a binary, neither a plan nor the end of a context waits for it. */
static void a_binary_that_costs_a_build_is_made_on_request_only(void **state)
{
    (void)state;
    clattn_context *context = planned();
    const size_t waiting = is_pocl(context) ? 1 : 0;
    assert_int_equal(entries_in(folder), 1 - waiting);
    clattn_context_destroy(context);
    assert_int_equal(entries_in(folder), 1 - waiting);
    context = planned();
    assert_int_equal(clattn_context_save(context), waiting);
    assert_int_equal(entries_in(folder), 1);
    assert_int_equal(clattn_context_save(context), 0);
    clattn_context_destroy(context);
    context = planned();
    assert_int_equal(clattn_context_build_count(context), 0);
    assert_int_equal(clattn_context_save(context), 0);
    clattn_context_destroy(context);
    assert_int_equal(clattn_context_save(NULL), 0);
}

/* ---------------------------------------------------------------------------------------------------------- the folder */

static void the_environment_overrides_the_cache_folder(void **state)
{
    (void)state;
    char *other = path_join(root, "other");
    setenv("CLATTN_CACHE", "off", 1);
    assert_int_equal(builds_in(folder), 1);
    assert_int_equal(entries_in(folder), 0);
    unsetenv("CLATTN_CACHE");
    setenv("CLATTN_CACHE_DIR", other, 1);
    assert_int_equal(builds_in(folder), 1);
    assert_int_equal(entries_in(folder), 0);
    assert_int_equal(entries_in(other), 1);
    assert_int_equal(builds_with(NULL), 0);
    unsetenv("CLATTN_CACHE_DIR");
    free(other);
}

static void the_cache_can_be_turned_off(void **state)
{
    (void)state;
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.cache_folder = folder;
    options.cache_off = true;
    assert_int_equal(builds_with(&options), 1);
    assert_int_equal(builds_with(&options), 1);
    assert_int_equal(entries_in(folder), 0);
}

static void the_default_is_the_users_cache_folder(void **state)
{
    (void)state;
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    char *used = path_join(root, ".cache/clattn");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", root, 1);
    assert_int_equal(builds_with(NULL), 1);
    assert_int_equal(entries_in(used), 1);
    assert_int_equal(builds_with(NULL), 0);
    unsetenv("HOME"); /* neither: nothing is kept, nothing fails */
    assert_int_equal(builds_with(NULL), 1);
    if (home != NULL) {
        setenv("HOME", home, 1);
    }
    free(used);
    free(home);
}

static void cache_folders_may_have_any_name(void **state)
{
    (void)state;
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    const char *const names[] = {"a b-g/c", "\xc3\xb6 \xe6\xb5\x8b\xe8\xaf\x95/\xd0\xba\xd1\x8d\xd1\x88", name};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char *path = path_join(root, names[i]);
        assert_int_equal(builds_in(path), 1);
        assert_int_equal(builds_in(path), 0);
        free(path);
    }
}

/* Runs with a folder that cannot exist; returns what was written to the standard streams meanwhile. */
static char *said_while_building_in(const char *where)
{
    char *path = path_join(root, "said");
    fflush(NULL);
    const int out = dup(1), err = dup(2), file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(out >= 0 && err >= 0 && file >= 0);
    dup2(file, 1);
    dup2(file, 2);
    const size_t first = builds_in(where), second = builds_in(where);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    close(file);
    assert_int_equal(first, 1);
    assert_int_equal(second, 1);
    char *said = file_read(path);
    assert_non_null(said);
    free(path);
    return said;
}

static size_t warnings;
static char warning[400];

static void count_warnings(void *user, clattn_log_level level, const char *text)
{
    (void)user;
    if (level == CLATTN_LOG_WARNING) {
        warnings++;
        snprintf(warning, sizeof warning, "%s", text);
    }
}

static void a_folder_that_others_may_write_to_is_not_used_and_the_log_says_so_once(void **state)
{
    (void)state;
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.cache_folder = folder;
    options.log = count_warnings;
    assert_int_equal(builds_with(&options), 1);
    assert_int_equal(entries_in(folder), 1);
    assert_int_equal(chmod(folder, 0777), 0);
    warnings = 0;
    assert_int_equal(builds_with(&options), 1);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, folder));
    assert_non_null(strstr(warning, "chmod go-w"));
    assert_int_equal(chmod(folder, 0755), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(builds_with(&options), 1);
        assert_int_equal(warnings, 2);
        assert_non_null(strstr(warning, "another user"));
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    assert_int_equal(builds_with(&options), 0);
    assert_int_equal(entries_in(folder), 1);
}

static void an_impossible_folder_is_no_error(void **state)
{
    (void)state;
    assert_true(file_write(folder, "a file"));
    char *below = path_join(folder, "below");
    const char *const wrong[] = {folder, below, "/proc/self/no such folder"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char *said = said_while_building_in(wrong[i]);
        assert_string_equal(said, "");
        free(said);
    }
    free(below);
}

/* ------------------------------------------------------------------------------------------------------------- damage */

/* The one entry of the folder. */
static char *entry_path(void)
{
    struct names names;
    assert_true(folder_list(folder, ".clb", &names));
    assert_int_equal(names.count, 1);
    char *path = path_join(folder, names.list[0]);
    names_free(&names);
    return path;
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void need_repair(const char *path, const char *damage)
{
    struct stat info;
    if (builds_in(folder) != 1) {
        fail_msg("%s: the entry was used", damage);
    }
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    if (builds_in(folder) != 0) {
        fail_msg("%s: the entry was not repaired", damage);
    }
}

static void a_damaged_entry_is_built_again_and_repaired(void **state)
{
    (void)state;
    struct text whole = {0};
    assert_int_equal(builds_in(folder), 1);
    char *path = entry_path();
    assert_true(cla_read_file(path, SIZE_MAX, &whole));
    for (size_t eighth = 0; eighth < 8; eighth++) {
        write_bytes(path, whole.data, whole.length * eighth / 8);
        need_repair(path, "a part of it");
    }
    const size_t places[] = {0, 9, 20, 36, 45, CLA_CACHE_HEADER, whole.length / 2, whole.length - 1};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        whole.data[places[i]] ^= 0x20;
        write_bytes(path, whole.data, whole.length);
        whole.data[places[i]] ^= 0x20;
        need_repair(path, "a changed byte");
    }
    assert_int_equal(unlink(path), 0);
    need_repair(path, "no file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    need_repair(path, "a folder");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    need_repair(path, "a pipe");
    cla_text_free(&whole);
    free(path);
}

/* A complete entry whose binary this driver refuses. */
static void what_the_driver_refuses_is_built_again(void **state)
{
    (void)state;
    struct text whole = {0}, other = {0};
    struct cache_key key;
    static const char strange[] = "the binary of another compiler";
    assert_int_equal(builds_in(folder), 1);
    char *path = entry_path();
    assert_true(cla_read_file(path, SIZE_MAX, &whole));
    memcpy(key.bytes, whole.data + 16, sizeof key.bytes);
    assert_true(cla_cache_encode(&key, strange, sizeof strange, &other));
    write_bytes(path, other.data, other.length);
    need_repair(path, "another compiler's");
    cla_text_free(&whole);
    cla_text_free(&other);
    free(path);
}

/* ------------------------------------------------------------------------------------------ a store of the application */

struct store {
    char *bytes;
    size_t size;
    char name[64];
    size_t loads, stores;
    clattn_context *context;
};

/* The store's functions call the library, which must hold no lock then. */
static void call_back(const struct store *store)
{
    clattn_problem problem;
    clattn_error error;
    clattn_error_init(&error);
    if (store->context != NULL) {
        assert_ok(clattn_problem_parse("q3 d8", &problem, &error), &error);
        assert_ok(clattn_supported(store->context, &problem, NULL, &error), &error);
        (void)clattn_context_build_count(store->context);
    }
}

static size_t load(void *user, const char *name, void *bytes, size_t size)
{
    struct store *store = user;
    store->loads++;
    call_back(store);
    if (store->bytes == NULL || strcmp(store->name, name) != 0) {
        return 0;
    }
    if (size >= store->size) {
        memcpy(bytes, store->bytes, store->size);
    }
    return store->size;
}

static void keep(void *user, const char *name, const void *bytes, size_t size)
{
    struct store *store = user;
    store->stores++;
    call_back(store);
    free(store->bytes);
    store->bytes = malloc(size);
    assert_non_null(store->bytes);
    memcpy(store->bytes, bytes, size);
    store->size = size;
    snprintf(store->name, sizeof store->name, "%s", name);
}

static void an_application_keeps_programs_itself(void **state)
{
    (void)state;
    struct store store = {0};
    clattn_context_options options;
    clattn_error error;
    clattn_error_init(&error);
    clattn_context_options_init(&options);
    options.cache_load = load;
    options.cache_store = keep;
    options.cache_user = &store;
    options.cache_folder = folder;
    assert_ok(clattn_context_create(NULL, NULL, NULL, &store.context, &error), &error);
    assert_int_equal(builds_with(&options), 1);
    assert_int_equal(store.stores, 1);
    assert_int_equal(strlen(store.name), 36);
    store.loads = 0;
    assert_int_equal(builds_with(&options), 0);
    assert_int_equal(store.stores, 1);
    assert_true(store.loads >= 1);
    store.bytes[store.size / 2] ^= 1;
    assert_int_equal(builds_with(&options), 1);
    assert_int_equal(builds_with(&options), 0);
    assert_int_equal(entries_in(folder), 0);
    options.cache_load = NULL; /* nothing comes back */
    assert_int_equal(builds_with(&options), 1);
    options.cache_load = load;
    options.cache_store = NULL;
    assert_int_equal(builds_with(&options), 0);
    clattn_context_destroy(store.context);
    free(store.bytes);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOT(a_warm_start_builds_nothing),
        WITH_ROOT(a_binary_that_costs_a_build_is_made_on_request_only),
        WITH_ROOT(the_environment_overrides_the_cache_folder),
        WITH_ROOT(the_cache_can_be_turned_off),
        WITH_ROOT(the_default_is_the_users_cache_folder),
        WITH_ROOT(cache_folders_may_have_any_name),
        WITH_ROOT(an_impossible_folder_is_no_error),
        WITH_ROOT(a_folder_that_others_may_write_to_is_not_used_and_the_log_says_so_once),
        WITH_ROOT(a_damaged_entry_is_built_again_and_repaired),
        WITH_ROOT(what_the_driver_refuses_is_built_again),
        WITH_ROOT(an_application_keeps_programs_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
