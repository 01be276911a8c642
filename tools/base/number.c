/* SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <errno.h>
#include <stdlib.h>

bool number_read(const char **text, int64_t *value)
{
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(*text, &end, 10);
    if (end == *text || errno == ERANGE || number < INT64_MIN || number > INT64_MAX)
        return false;
    *value = number;
    *text = end;
    return true;
}
