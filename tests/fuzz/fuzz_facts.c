/* SPDX-License-Identifier: Apache-2.0
 * Texts about devices: overrides of a known device's facts, whole facts, selectors; then the choice for a shape with the
 * resulting facts. Printed facts read back as facts.
 * The first two bytes say which device, which text and which shape. */
#include "fuzz.h"

#include "choose.h"
#include "devices.h"
#include "device.h"
#include "kernel_text.h"
#include "plan_options.h"

static const char *const shapes[] = {
    "b2 hq8 hkv2 q37 k53 d64 fp16 causal",
    "q1 hq32 hkv8 k40000 d128 bf16 lse",
    "b4 h16 q2048 d128 fp16 mask=qk",
    "q5 k0 d3 dv1",
    "h4 q300 d1000 dv1000 fp32",
    "b2 hq8 q1000 k2000 d80 bf16 bias=bhqk scores=softmax softcap=3",
    "b0 q4 d8",
    "h3 q70 k9000 d256 fp32 packed alibi",
};

static void choose(const struct facts *facts, const char *shape)
{
    struct candidates *const list = calloc(1, sizeof *list);
    clattn_problem problem;
    clattn_plan_options options;
    clattn_error error;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    fuzz_require(list != NULL && clattn_problem_parse(shape, &problem, &error) == CLATTN_SUCCESS);
    problem.scale = 1.0f;
    if (cla_decide(facts, &problem, &options, list, &error) == CLATTN_SUCCESS) {
        for (size_t i = 0; i < list->count && i < 3; i++) {
            struct text defines = {0};
            cla_kernel_defines(facts, &problem, &list->list[i], &defines);
            cla_text_free(&defines);
        }
    } else {
        fuzz_require(error.message[0] != '\0');
    }
    cla_text_free(&list->declined);
    free(list);
}

static void match(const char *selector)
{
    struct device_entry list[4];
    memset(list, 0, sizeof list);
    for (int i = 0; i < 4; i++) {
        list[i].platform_index = i / 2;
        list[i].device_index = i % 2;
        snprintf(list[i].platform_name, sizeof list[i].platform_name, "Portable Computing %d", i);
        snprintf(list[i].device_name, sizeof list[i].device_name, "pthread-x %d", i);
    }
    const struct device_entry *const found = cla_device_match(list, 4, selector);
    fuzz_require(found == NULL || (found >= list && found < list + 4));
}

/* What is printed of any facts reads as facts. */
static void read_back(const struct facts *facts)
{
    struct facts *const second = malloc(sizeof *second);
    struct text printed = {0};
    clattn_error error;
    clattn_error_init(&error);
    cla_facts_print(facts, &printed);
    fuzz_require(second != NULL && cla_facts_parse(printed.data, second, &error) == CLATTN_SUCCESS);
    cla_text_free(&printed);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clattn_error error;
    bool right = true;
    if (size < 2)
        return 0;
    clattn_error_init(&error);
    char *const text = fuzz_text(data + 2, size - 2);
    struct facts *const facts = malloc(sizeof *facts); /* its end is the end of an allocation */
    fuzz_require(facts != NULL);
    *facts = *fuzz_device(data[0]);
    if (data[1] % 4 == 0)
        match(text);
    else if (data[1] % 4 == 1)
        right = cla_facts_parse(text, facts, &error) == CLATTN_SUCCESS;
    else
        right = cla_facts_override(facts, text, &error) == CLATTN_SUCCESS;
    fuzz_require(right || error.message[0] != '\0');
    if (right && strpbrk(text, "\n\r") == NULL)
        read_back(facts);
    if (right)
        choose(facts, shapes[data[1] / 4 % 8]);
    free(facts);
    free(text);
    return 0;
}
