/* SPDX-License-Identifier: Apache-2.0
 * The devices of tests/devices, for fuzzers. */
#ifndef CLATTN_TESTS_FUZZ_DEVICES_H
#define CLATTN_TESTS_FUZZ_DEVICES_H

#include "fuzz.h"

#include "device_facts.h"
#include "files.h"

enum { FUZZ_MOST_DEVICES = 64 };

/* One of them, by a number of any size. */
static inline const struct facts *fuzz_device(size_t number)
{
    static struct facts devices[FUZZ_MOST_DEVICES];
    static size_t count;
    struct names names;
    if (count == 0) {
        fuzz_require(folder_list(DEVICE_FACTS, ".facts", &names) && names.count > 0 && names.count <= FUZZ_MOST_DEVICES);
        for (; count < names.count; count++) {
            char *const path = path_join(DEVICE_FACTS, names.list[count]), *const text = file_read(path);
            fuzz_require(text != NULL && cla_facts_parse(text, &devices[count], NULL) == CLATTN_SUCCESS);
            free(text);
            free(path);
        }
        names_free(&names);
    }
    return &devices[number % count];
}

#endif
