/* SPDX-License-Identifier: Apache-2.0
 * SHAPE texts: a valid problem's text reads back as the same problem; a refused one has a message that says why. */
#include "fuzz.h"

#include "clattn/clattn.h"

static void come_back(const clattn_problem *problem)
{
    char printed[1024], again[1024];
    clattn_problem second;
    clattn_error error;
    size_t needed = 0;
    clattn_error_init(&error);
    fuzz_require(clattn_problem_print(problem, printed, sizeof printed, &needed) == CLATTN_SUCCESS && needed <= sizeof printed);
    if (clattn_explain("", problem, NULL, NULL, 0, NULL, &error) == CLATTN_INVALID_ARGUMENT)
        return;
    fuzz_require(clattn_problem_parse(printed, &second, &error) == CLATTN_SUCCESS);
    fuzz_require(clattn_problem_print(&second, again, sizeof again, NULL) == CLATTN_SUCCESS);
    fuzz_require(strcmp(printed, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clattn_problem problem;
    clattn_error error;
    char *const text = fuzz_text(data, size);
    clattn_error_init(&error);
    if (clattn_problem_parse(text, &problem, &error) == CLATTN_SUCCESS)
        come_back(&problem);
    else
        fuzz_require(error.message[0] != '\0');
    free(text);
    return 0;
}
