/* SPDX-License-Identifier: Apache-2.0
 * tools/program/survey.c and src/quirks.c: facts read back from their text, and which quirks belong to which device. */
/* ctest: posix */
#include "support.h"

#include "files.h"
#include "quirks.h"
#include "survey.h"

static const char pocl[] = "platform_name=Portable Computing Language\nplatform_version=OpenCL 3.0 PoCL 3.1+debian\n"
                           "device_name=pthread-x\ndevice_kind=cpu\nmax_work_group=4096\nmax_work_item_0=4096\nlocal_mem=16K\n"
                           "fma=1\nextensions=\n";

static void a_survey_reads_facts(void **state)
{
    char value[64], small[4];
    (void)state;
    assert_string_equal(fact_of(pocl, "device_name", value, sizeof value), "pthread-x");
    assert_string_equal(fact_of(pocl, "platform_name", small, sizeof small), "Por");
    assert_string_equal(fact_of(pocl, "name", value, sizeof value), ""); /* the end of another name */
    assert_string_equal(fact_of(pocl, "extensions", value, sizeof value), "");
    assert_string_equal(fact_of("", "extensions", value, sizeof value), "");
    assert_int_equal(fact_number(pocl, "local_mem"), 16384);
    assert_int_equal(fact_number(pocl, "max_work_group"), 4096);
    assert_int_equal(fact_number(pocl, "absent"), 0);
}

static bool has_quirk(const char *facts, const char *part)
{
    for (size_t i = 0; clattn_device_quirk(facts, i) != NULL; i++)
        if (strstr(clattn_device_quirk(facts, i), part) != NULL)
            return true;
    return false;
}

static void quirks_are_told_apart(void **state)
{
    (void)state;
    assert_true(has_quirk(pocl, "4 GiB"));
    assert_false(has_quirk(pocl, "mad()"));
    assert_false(has_quirk(pocl, "max_work_item_0"));
    assert_false(has_quirk("platform_version=OpenCL 3.0 PoCL 7.1\nfma=1\n", "4 GiB"));
    assert_true(has_quirk("platform_name=rusticl\n", "rusticl does not link fma()"));
    assert_true(has_quirk("platform_name=Clover\n", "no fused multiply-add"));
    assert_true(has_quirk("platform_name=NVIDIA CUDA\nfma=1\n", "#line"));
    assert_true(has_quirk("platform_name=Oclgrind\nfma=1\n", "-cl-opt-disable"));
    assert_true(has_quirk("platform_name=Intel(R) OpenCL\ndevice_kind=cpu\nfma=1\n", "inline assembly"));
    assert_false(has_quirk("platform_name=Intel(R) OpenCL Graphics\ndevice_kind=gpu\nfma=1\n", "inline assembly"));
    assert_true(has_quirk("fma=1\nmax_work_group=1024\nmax_work_item_0=1\n", "first dimension"));
    assert_null(clattn_device_quirk("fma=1\n", 0));
}

/* Where lines of the page are wrapped does not matter. */
static void join_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (!strchr(" \n", *from))
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
}

static void the_portability_page_lists_every_quirk(void **state)
{
    (void)state;
    char *page = file_read(CLATTN_SOURCE_DIR "/docs/portability.md");
    assert_non_null(page);
    join_lines(page);
    for (int i = 0; i < CLA_QUIRK_COUNT; i++) {
        assert_contains(page, cla_quirk_text((enum cla_quirk)i));
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_survey_reads_facts), cmocka_unit_test(quirks_are_told_apart),
                                       cmocka_unit_test(the_portability_page_lists_every_quirk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
