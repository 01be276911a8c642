/* SPDX-License-Identifier: Apache-2.0
 * Trial texts of `clattn check` and `clattn bench`: what a trial prints is a trial, and the same one. */
#include "fuzz.h"

#include "session.h"
#include "trial.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trial trial, again;
    clattn_error error;
    char printed[2048], second[2048], cut[40];
    char *const text = fuzz_text(data, size);
    clattn_error_init(&error);
    if (trial_parse(text, &trial, &error) != CLATTN_SUCCESS) {
        fuzz_require(error.message[0] != '\0');
    } else if (session_problem_is_valid(&trial.problem, &error)) {
        (void)trial_work(&trial);
        trial_print(&trial, cut, sizeof cut);
        trial_print(&trial, printed, sizeof printed);
        fuzz_require(trial_parse(printed, &again, &error) == CLATTN_SUCCESS);
        trial_print(&again, second, sizeof second);
        fuzz_require(strcmp(printed, second) == 0);
    }
    free(text);
    return 0;
}
