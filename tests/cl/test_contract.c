/* SPDX-License-Identifier: Apache-2.0
 * cl/contract.cl: a build without a required name says which one is missing, and the algorithm files use only names that the
 * contract lists. */
/* ctest: quick */
#include "attend.h"
#include "files.h"
#include "kernel_text.h"

#include <ctype.h>

static char *root;
static struct facts facts;
static clattn_problem problem;
static struct config config;

static int open_all(void **state)
{
    char text[16384];
    clattn_error error;
    struct config list[CLA_MAX_CONFIGS];
    root = sources_copy();
    if (root == NULL || bench_open(state) != 0) {
        return -1;
    }
    clattn_error_init(&error);
    if (clattn_context_facts(bench.context, text, sizeof text, NULL) != CLATTN_SUCCESS ||
        cla_facts_parse(text, &facts, &error) != CLATTN_SUCCESS ||
        clattn_problem_parse("q4 d4", &problem, &error) != CLATTN_SUCCESS ||
        cla_engine_reference.configs(&facts, &problem, list) < 1) {
        return -1;
    }
    config = list[0];
    return 0;
}

static int close_all(void **state)
{
    sources_remove(root);
    return bench_close(state);
}

/* Builds the reference engine without one of its names and returns the build log. */
static cl_int build_without(const char *name, char *log, size_t log_size)
{
    clattn_error error;
    cl_int code;
    char undefine[128];
    struct source source;
    struct text defines = {0};
    cl_device_id device = clattn_context_device(bench.context);
    clattn_error_init(&error);
    snprintf(undefine, sizeof undefine, "#undef %s\n", name);
    char *path = path_join(root, "cl/undefine.cl");
    assert_true(file_write(path, undefine));
    free(path);
    cla_kernel_defines(&facts, &problem, &config, &defines);
    const char *const files[] = {"cl/base.cl",        "cl/args.cl",     "cl/tile.cl",
                                 config.engine->file, "cl/undefine.cl", "cl/contract.cl"};
    assert_ok(cla_source_compose(&source, defines.data, files, COUNT_OF(files), root, &error), &error);
    cla_text_free(&defines);
    const char *text = source.text.data;
    cl_program program = clCreateProgramWithSource(clattn_context_cl(bench.context), 1, &text, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    code = clBuildProgram(program, 1, &device, "", NULL, NULL);
    memset(log, 0, log_size);
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log_size - 1, log, NULL);
    clReleaseProgram(program);
    /* Not every compiler heeds #line. */
    struct text translated = {0};
    cla_source_translate(&source, log, &translated);
    snprintf(log, log_size, "%s", translated.data != NULL ? translated.data : "");
    cla_text_free(&translated);
    cla_source_free(&source);
    return code;
}

static void each_missing_name_is_told(void **state)
{
    (void)state;
    static char log[65536];
    static const char *const names[] = {
        "LANES",        "BLOCK_M",    "BLOCK_N",      "WORK_GROUP",   "TEAM",
        "S_ROWS",       "S_COLS",     "O_COLS",       "FOR_ROWS",     "FOR_S_COLS",
        "FOR_O_COLS",   "S_GET",      "S_SET",        "O_GET",        "O_SET",
        "EXP2",         "ENGINE_ROW", "ENGINE_S_COL", "ENGINE_O_COL", "ENGINE_OWNS_ROWS",
        "ENGINE_LOCAL",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (build_without(names[i], log, sizeof log) == CL_SUCCESS) {
            fail_msg("an engine without %s builds", names[i]);
        }
        assert_contains(log, "engine: ");
        assert_contains(log, names[i]);
        assert_contains(log, "contract.cl");
    }
    assert_int_equal(build_without("NO_SUCH_NAME", log, sizeof log), CL_SUCCESS);
}

/* Whether `name` occurs in the text as a whole word. */
static bool has_word(const char *text, const char *name, size_t length)
{
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        const char before = at == text ? ' ' : at[-1], after = at[length];
        if (!isalnum((unsigned char)before) && before != '_' && !isalnum((unsigned char)after) && after != '_') {
            return true;
        }
    }
    return false;
}

static char *read_source(const char *name)
{
    char *path = path_join(CLATTN_SOURCE_DIR, name);
    char *text = file_read(path);
    free(path);
    assert_non_null(text);
    return text;
}

/* "#ifdef NAME", "#ifndef NAME" or "defined(NAME)": what the algorithm treats as optional. */
static bool is_optional(const char *text, const char *name)
{
    char ifdef[100], ifndef[100], defined[100];
    snprintf(ifdef, sizeof ifdef, "#ifdef %s\n", name);
    snprintf(ifndef, sizeof ifndef, "#ifndef %s\n", name);
    snprintf(defined, sizeof defined, "defined(%s)", name);
    return strstr(text, ifdef) != NULL || strstr(text, ifndef) != NULL || strstr(text, defined) != NULL;
}

/* How many names of engines the file uses; each is asked for by the contract, optional, or the file's own. */
static size_t names_checked(const char *file, const char *contract)
{
    char *text = read_source(file);
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, "ENGINE_")) != NULL; count++) {
        char name[64];
        size_t length = 0;
        while ((isalnum((unsigned char)at[length]) || at[length] == '_') && length < sizeof name - 1) {
            name[length] = at[length];
            length++;
        }
        name[length] = '\0';
        if (!has_word(contract, name, length) && !is_optional(text, name)) {
            fail_msg("%s uses %s, which cl/contract.cl does not ask for", file, name);
        }
        at += length;
    }
    free(text);
    return count;
}

/* All in cl/ and cl/split, found by folder: a new file is checked too. */
static void algorithm_files_use_contracted_names_only(void **state)
{
    (void)state;
    static const char *const folders[] = {"cl", "cl/split"};
    char *contract = read_source("cl/contract.cl");
    size_t seen = 0;
    for (size_t f = 0; f < COUNT_OF(folders); f++) {
        char *folder = path_join(CLATTN_SOURCE_DIR, folders[f]);
        struct names names;
        assert_true(folder_list(folder, ".cl", &names));
        for (size_t i = 0; i < names.count; i++) {
            char *path = path_join(folders[f], names.list[i]);
            seen += names_checked(path, contract);
            free(path);
        }
        names_free(&names);
        free(folder);
    }
    assert_true(seen >= 40);
    free(contract);
}

/* "adding an engine" explains every name that the contract asks for. */
static void the_guide_explains_each_name(void **state)
{
    (void)state;
    char *contract = read_source("cl/contract.cl"), *guide = read_source("docs/adding-an-engine.md");
    static const char *const starts[] = {"#ifndef ", "defined("};
    size_t seen = 0;
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        for (const char *at = contract; (at = strstr(at, starts[i])) != NULL;) {
            char name[64];
            at += strlen(starts[i]);
            const size_t length = strcspn(at, ")\n ");
            assert_true(length < sizeof name);
            memcpy(name, at, length);
            name[length] = '\0';
            if (strstr(guide, name) == NULL) {
                fail_msg("docs/adding-an-engine.md does not explain %s", name);
            }
            seen++;
        }
    }
    assert_true(seen >= 20);
    free(contract);
    free(guide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_missing_name_is_told),
        cmocka_unit_test(algorithm_files_use_contracted_names_only),
        cmocka_unit_test(the_guide_explains_each_name),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
