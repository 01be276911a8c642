/* SPDX-License-Identifier: Apache-2.0
 * Finds devices and parses selectors. A platform that fails is skipped. */
#ifndef CLATTN_DEVICE_H
#define CLATTN_DEVICE_H

#include "status.h"

/* One device that was found. */
struct device_entry {
    int platform_index, device_index;
    cl_platform_id platform;
    cl_device_id device;
    cl_device_type type;
    char platform_name[128], device_name[128];
};

/* The entry that `selector` names in a list, by the rules in clattn.h; NULL: none. Pure, so that tests need no devices. */
const struct device_entry *cla_device_match(const struct device_entry *list, size_t count, const char *selector);

/* clattn_device_find; without a selector, CLATTN_DEVICE is used unless the environment is ignored. */
clattn_status cla_device_find(bool ignore_environment, const char *selector, cl_device_id *device, clattn_error *error);

/* Whether a selector is a number alone. It matches no device, since it could mean a platform, a device or a part of a name. */
bool cla_selector_is_number(const char *selector);

#endif
