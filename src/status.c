/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STRING_OF_(x) #x
#define STRING_OF(x) STRING_OF_(x)
#define VERSION_TEXT(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *clattn_version(void) { return VERSION_TEXT(CLATTN_VERSION_MAJOR, CLATTN_VERSION_MINOR, CLATTN_VERSION_PATCH); }

static const struct {
    clattn_status status;
    const char *name, *text;
} statuses[] = {
#define ROW(name, number, text) {CLATTN_##name, #name, text},
    CLATTN_STATUS_LIST(ROW)
#undef ROW
};

const char *clattn_status_name(clattn_status status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].name;
    return "UNKNOWN";
}

const char *clattn_status_text(clattn_status status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "not a status of this library";
}

/* The size of the first version of the struct; it never changes. */
#define FIRST_ERROR_SIZE (offsetof(clattn_error, message) + 1400)

void clattn_error_init_sized(clattn_error *error, size_t size)
{
    if (error) {
        memset(error, 0, size);
        error->struct_size = size;
    }
}

/* How many bytes of the caller's struct both versions have. 0 means the first version, so that `= {0}` works. */
static size_t reach_of(const clattn_error *error)
{
    return !error                               ? 0
           : error->struct_size == 0            ? FIRST_ERROR_SIZE
           : error->struct_size < sizeof *error ? error->struct_size
                                                : sizeof *error;
}

#define HAS(error, member) (reach_of(error) >= offsetof(clattn_error, member) + sizeof(error)->member)

static void set_codes(clattn_error *error, clattn_status status, int32_t cl_code)
{
    if (HAS(error, status))
        error->status = status;
    if (HAS(error, cl_code))
        error->cl_code = cl_code;
}

/* The part of the message that both versions have; the last member may be truncated. */
static size_t message_room(const clattn_error *error)
{
    const size_t reach = reach_of(error), start = offsetof(clattn_error, message);
    return reach > start ? reach - start : 0;
}

void cla_clear(clattn_error *error)
{
    set_codes(error, CLATTN_SUCCESS, 0);
    if (HAS(error, field))
        error->field[0] = '\0';
    if (message_room(error) > 0)
        error->message[0] = '\0';
}

void cla_set_cl_code(clattn_error *error, int32_t code)
{
    if (HAS(error, cl_code))
        error->cl_code = code;
}

void cla_hand_on(const clattn_error *from, clattn_error *to)
{
    cla_fail(to, from->status, from->field, "%s", from->message);
    cla_set_cl_code(to, from->cl_code);
}

clattn_status cla_fail(clattn_error *error, clattn_status status, const char *field, const char *format, ...)
{
    set_codes(error, status, 0);
    if (HAS(error, field))
        snprintf(error->field, sizeof error->field, "%s", field ? field : "");
    if (message_room(error) > 0) {
        va_list list;
        va_start(list, format);
        vsnprintf(error->message, message_room(error), format, list);
        va_end(list);
    }
    return status;
}

static bool is_device_loss(int32_t code) { return code == CL_INVALID_COMMAND_QUEUE; }

clattn_status cla_fail_cl(clattn_error *error, int32_t code, const char *call)
{
    const clattn_status status = code == CL_OUT_OF_HOST_MEMORY ? CLATTN_OUT_OF_HOST_MEMORY
                                 : is_device_loss(code)        ? CLATTN_DEVICE_LOST
                                                               : CLATTN_OPENCL;
    cla_fail(error, status, "", "%s: %s (%d)", call, cla_cl_name(code), (int)code);
    cla_set_cl_code(error, code);
    return status;
}

/* A size that exceeds ours by more than this is uninitialized memory, not a newer header. */
enum { MAX_GROWTH = 4096 };

static bool is_zero(const unsigned char *bytes, size_t count)
{
    size_t i = 0;
    while (i < count && bytes[i] == 0)
        i++;
    return i == count;
}

clattn_status cla_struct_take(const char *name, const void *given, size_t first, void *own, size_t own_size,
                              clattn_error *error)
{
    char field[64];
    size_t size = 0;
    if (!given)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, name, "%s is NULL", name);
    memcpy(&size, given, sizeof size);
    snprintf(field, sizeof field, "%s.struct_size", name);
    if (size < first || size > own_size + MAX_GROWTH)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                        "%s is %zu: call the struct's _init function before setting fields", field, size);
    if (size > own_size && !is_zero((const unsigned char *)given + own_size, size - own_size))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                        "%s is %zu, from a newer clattn.h, and a field is set that this library (%s) does not know: "
                        "use a newer library, or leave that field as _init sets it",
                        field, size, clattn_version());
    memcpy(own, given, size < own_size ? size : own_size);
    memcpy(own, &own_size, sizeof own_size);
    return CLATTN_SUCCESS;
}

static const struct {
    int32_t code;
    const char *name;
} cl_codes[] = {
    {0, "CL_SUCCESS"},
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

const char *cla_cl_name(int32_t code)
{
    for (size_t i = 0; i < sizeof cl_codes / sizeof *cl_codes; i++)
        if (cl_codes[i].code == code)
            return cl_codes[i].name;
    return "unknown code";
}
