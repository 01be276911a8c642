/* SPDX-License-Identifier: Apache-2.0
 * Rules for the kernel source under cl/ that need no compiler: OpenCL C 1.1 without extensions, on devices without fp64. */
/* ctest: posix */
#include "support.h"

#include "files.h"

#include <ctype.h>

struct kernel_file {
    char name[64];
    char *text; /* comments and strings blanked */
};

static struct kernel_file files[256];
static size_t file_count;

static void blank(char *at, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (at[i] != '\n') {
            at[i] = ' ';
        }
    }
}

/* Replaces comments and the insides of string literals by blanks, so that words in them are ignored. */
static void blank_comments(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        if (at[0] == '/' && at[1] == '*') {
            char *end = strstr(at + 2, "*/");
            const size_t length = end != NULL ? (size_t)(end + 2 - at) : strlen(at);
            blank(at, length);
            at += length - 1;
        } else if (at[0] == '/' && at[1] == '/') {
            const size_t length = strcspn(at, "\n");
            blank(at, length);
            at += length - 1;
        } else if (at[0] == '"') {
            size_t length = 1;
            while (at[length] != '"' && at[length] != '\0') {
                length += at[length] == '\\' ? 2 : 1;
            }
            blank(at + 1, length - 1);
            at += length;
        }
    }
}

static int load(void **state)
{
    (void)state;
    char *path = path_join(CLATTN_SOURCE_DIR, "cl");
    struct names names;
    assert_true(folder_tree(path, ".cl", &names));
    for (size_t i = 0; i < names.count; i++) {
        assert_true(file_count < COUNT_OF(files));
        char *file = path_join(path, names.list[i]);
        snprintf(files[file_count].name, sizeof files[file_count].name, "cl/%s", names.list[i]);
        files[file_count].text = file_read(file);
        assert_non_null(files[file_count].text);
        blank_comments(files[file_count].text);
        file_count++;
        free(file);
    }
    names_free(&names);
    free(path);
    return file_count >= 9 ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    for (size_t i = 0; i < file_count; i++) {
        free(files[i].text);
    }
    return 0;
}

static bool is_word_character(char c) { return isalnum((unsigned char)c) || c == '_'; }

static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (const char *c = text; c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

/* The next place where `word` is a whole word, or NULL. */
static const char *find_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == text || !is_word_character(at[-1])) && !is_word_character(at[length])) {
            return at;
        }
    }
    return NULL;
}

/* A literal without suffix is a double. */
static void float_literals_have_a_suffix(void **state)
{
    (void)state;
    for (size_t i = 0; i < file_count; i++) {
        const char *text = files[i].text;
        for (const char *at = text; *at != '\0'; at++) {
            const bool starts = (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) &&
                                (at == text || (!is_word_character(at[-1]) && at[-1] != '.'));
            if (!starts) {
                continue;
            }
            const bool hexadecimal = at[0] == '0' && tolower((unsigned char)at[1]) == 'x';
            bool fraction = false;
            const char *end = at;
            while (is_word_character(*end) || *end == '.' ||
                   ((*end == '+' || *end == '-') && !hexadecimal && tolower((unsigned char)end[-1]) == 'e') ||
                   ((*end == '+' || *end == '-') && hexadecimal && tolower((unsigned char)end[-1]) == 'p')) {
                fraction = fraction || *end == '.' || (!hexadecimal && tolower((unsigned char)*end) == 'e') ||
                           (hexadecimal && tolower((unsigned char)*end) == 'p');
                end++;
            }
            if (fraction && tolower((unsigned char)end[-1]) != 'f') {
                fail_msg("%s:%d: %.*s has no f", files[i].name, line_of(text, at), (int)(end - at), at);
            }
            at = end - 1;
        }
    }
}

static void no_kernel_file_uses_double(void **state)
{
    (void)state;
    static const char *const words[] = {"double", "double2", "double4", "double8", "double16", "cl_khr_fp64"};
    for (size_t i = 0; i < file_count; i++) {
        for (size_t j = 0; j < COUNT_OF(words); j++) {
            const char *at = find_word(files[i].text, words[j]);
            if (at != NULL) {
                fail_msg("%s:%d: %s", files[i].name, line_of(files[i].text, at), words[j]);
            }
        }
    }
}

/* Some compilers know only the spellings with underscores. */
static void qualifiers_have_underscores(void **state)
{
    (void)state;
    static const char *const words[] = {"kernel", "global", "local", "constant", "private"};
    for (size_t i = 0; i < file_count; i++) {
        for (size_t j = 0; j < COUNT_OF(words); j++) {
            const char *at = find_word(files[i].text, words[j]);
            if (at != NULL) {
                fail_msg("%s:%d: %s without underscores", files[i].name, line_of(files[i].text, at), words[j]);
            }
        }
    }
}

/* Kernels have no parameters of illegal types. A kernel takes KERNEL_PARAMETERS, or has a list of its own. */
static void kernel_parameters_have_legal_types(void **state)
{
    (void)state;
    static const char *const words[] = {"size_t", "ptrdiff_t", "intptr_t", "uintptr_t", "bool", "event_t"};
    size_t kernels = 0;
    for (size_t i = 0; i < file_count; i++) {
        const char *at = files[i].text;
        while ((at = find_word(at, "__kernel")) != NULL) {
            const char *end = strpbrk(at, "{;");
            assert_non_null(end);
            char *list = strndup(at, (size_t)(end - at));
            assert_non_null(list);
            for (size_t j = 0; j < COUNT_OF(words); j++) {
                if (find_word(list, words[j]) != NULL) {
                    fail_msg("%s:%d: a kernel parameter of type %s", files[i].name, line_of(files[i].text, at), words[j]);
                }
            }
            /* half only as the target of a pointer. */
            const char *half = find_word(list, "half");
            assert_true(half == NULL || strchr(half, '*') != NULL);
            free(list);
            kernels++;
            at = end;
        }
    }
    assert_true(kernels >= 1);
    const char *args = NULL;
    for (size_t i = 0; i < file_count; i++) {
        if (strcmp(files[i].name, "cl/args.cl") == 0) {
            args = files[i].text;
        }
    }
    assert_non_null(args);
    for (size_t j = 0; j < COUNT_OF(words); j++) {
        assert_null(find_word(args, words[j]));
    }
    assert_null(find_word(args, "half"));
}

/* Nothing beyond OpenCL C 1.1: no extension switched on, no call that came later, no program-scope variable in __global. */
static void no_extension_is_assumed(void **state)
{
    (void)state;
    static const char *const words[] = {
        "sub_group_reduce_max", "get_sub_group_size", "work_group_reduce_max", "printf", "goto", "generic"};
    for (size_t i = 0; i < file_count; i++) {
        for (size_t j = 0; j < COUNT_OF(words); j++) {
            const char *at = find_word(files[i].text, words[j]);
            if (at != NULL) {
                fail_msg("%s:%d: %s", files[i].name, line_of(files[i].text, at), words[j]);
            }
        }
        const char *pragma = strstr(files[i].text, "OPENCL EXTENSION");
        assert_null(pragma);
    }
}

/* In one implementation fma() does not link: only the macro that chooses between it and mad() names it. */
static void only_base_says_fma(void **state)
{
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < file_count; i++) {
        for (const char *at = files[i].text; (at = find_word(at, "fma")) != NULL; at++) {
            if (strcmp(files[i].name, "cl/base.cl") != 0) {
                fail_msg("%s:%d: fma", files[i].name, line_of(files[i].text, at));
            }
            seen++;
        }
    }
    assert_int_equal(seen, 1);
}

/* No build option may tell the compiler that NaN and infinity do not happen. */
static void no_build_option_relaxes_math(void **state)
{
    (void)state;
    static const char *const options[] = {"-cl-fast-relaxed-math", "-cl-finite-math-only", "-cl-unsafe-math-optimizations",
                                          "-cl-no-signed-zeros"};
    char *folder = path_join(CLATTN_SOURCE_DIR, "src");
    struct names names;
    assert_true(folder_tree(folder, ".c", &names));
    for (size_t i = 0; i < names.count; i++) {
        char *path = path_join(folder, names.list[i]);
        char *text = file_read(path);
        assert_non_null(text);
        for (size_t j = 0; j < COUNT_OF(options); j++) {
            assert_null(strstr(text, options[j]));
        }
        free(text);
        free(path);
    }
    assert_true(names.count >= 40);
    names_free(&names);
    free(folder);
}

/* Files of the algorithm are those directly in cl/ and in cl/split; engines lie in folders of their own. */
static bool is_algorithm(const char *name)
{
    return strchr(name + strlen("cl/"), '/') == NULL || !strncmp(name, "cl/split/", 9);
}

/* A vector comparison gives -1 for true, a scalar one 1. Algorithm files test conditions of a row so that both work, and they
 * name neither the work-item that runs them nor a vendor. */
static void algorithm_files_name_no_lane_and_no_vendor(void **state)
{
    (void)state;
    static const char *const words[] = {"any",
                                        "all",
                                        "fmax",
                                        "fmin",
                                        "asm",
                                        "barrier",
                                        "get_local_id",
                                        "mem_fence",
                                        "get_local_size",
                                        "get_global_size",
                                        "get_sub_group_local_id"};
    /* Parts of names. */
    static const char *const vendors[] = {"nvidia", "nv_",    "ptx",  "cuda", "amd", "intel",
                                          "apple",  "adreno", "mali", "x86",  "avx", "pocl"};
    static const struct {
        const char *file, *word;
    } exceptions[] = {
        {"cl/attention.cl", "get_local_id"}, /* to find the work-item's team */
        {"cl/classify.cl", "get_local_id"},  /* a kernel of its own, without an engine */
        {"cl/classify.cl", "barrier"},
        {"cl/elem.cl", "any"},                      /* where PICK and any_row are made of it */
        {"cl/split/last_chunk.cl", "get_local_id"}, /* what a group does together, once its tile is done */
        {"cl/split/last_chunk.cl", "barrier"},
        {"cl/split/last_chunk.cl", "mem_fence"},
        {"cl/split/merge.cl", "get_local_id"},
    };
    size_t checked = 0, excepted = 0;
    for (size_t i = 0; i < file_count; i++) {
        if (!is_algorithm(files[i].name)) {
            continue;
        }
        checked++;
        for (size_t j = 0; j < COUNT_OF(words); j++) {
            const char *at = find_word(files[i].text, words[j]);
            bool is_exception = false;
            for (size_t e = 0; e < COUNT_OF(exceptions); e++) {
                is_exception =
                    is_exception || (!strcmp(files[i].name, exceptions[e].file) && !strcmp(words[j], exceptions[e].word));
            }
            if (at != NULL && !is_exception) {
                fail_msg("%s:%d: %s", files[i].name, line_of(files[i].text, at), words[j]);
            } else if (at == NULL && is_exception) {
                fail_msg("%s no longer needs the exception for %s", files[i].name, words[j]);
            }
            excepted += is_exception;
        }
        for (char *c = files[i].text; *c != '\0'; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
        for (size_t j = 0; j < COUNT_OF(vendors); j++) {
            const char *at = strstr(files[i].text, vendors[j]);
            if (at != NULL) {
                fail_msg("%s:%d: %s", files[i].name, line_of(files[i].text, at), vendors[j]);
            }
        }
    }
    assert_true(checked >= 15);
    assert_int_equal(excepted, COUNT_OF(exceptions));
}

/* Some compilers refuse long string literals. Files are embedded as bytes, and none is so large that it needs splitting. */
static void files_stay_small(void **state)
{
    (void)state;
    for (size_t i = 0; i < file_count; i++) {
        int lines = 0;
        for (const char *c = files[i].text; *c != '\0'; c++) {
            lines += *c == '\n';
        }
        if (lines > 600) {
            fail_msg("%s has %d lines", files[i].name, lines);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_literals_have_a_suffix),
        cmocka_unit_test(no_kernel_file_uses_double),
        cmocka_unit_test(qualifiers_have_underscores),
        cmocka_unit_test(kernel_parameters_have_legal_types),
        cmocka_unit_test(no_extension_is_assumed),
        cmocka_unit_test(only_base_says_fma),
        cmocka_unit_test(no_build_option_relaxes_math),
        cmocka_unit_test(algorithm_files_name_no_lane_and_no_vendor),
        cmocka_unit_test(files_stay_small),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
