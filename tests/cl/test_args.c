/* SPDX-License-Identifier: Apache-2.0
 * The twins struct launch_args (src/launch.h) and launch_args (cl/args.cl). Both are read from their files: they must list the
 * same fields in the same order, and a kernel that takes one by value must find every field where the host put it. */
/* ctest: quick */
#include "attend.h"
#include "files.h"
#include "launch.h"
#include "source.h"

#include <ctype.h>

enum { MAX_FIELDS = 256 };

struct field {
    char name[64];
    int size; /* 8 or 4 */
    bool real;
};

struct fields {
    struct field list[MAX_FIELDS];
    int count;
};

static const char *const view_parts[] = {"base", "batch", "head", "seq", "dim"};

static void blank_comments(char *text)
{
    for (char *at; (at = strstr(text, "/*")) != NULL;) {
        char *end = strstr(at, "*/");
        assert_non_null(end);
        memset(at, ' ', (size_t)(end + 2 - at));
    }
}

static void add_field(struct fields *fields, const char *type, const char *name, const char *part)
{
    static const struct {
        const char *type;
        int size;
        bool real;
    } types[] = {{"int64_t", 8, false}, {"long", 8, false}, {"int32_t", 4, false}, {"int", 4, false}, {"float", 4, true}};
    assert_true(fields->count < MAX_FIELDS);
    struct field *field = &fields->list[fields->count++];
    snprintf(field->name, sizeof field->name, "%.40s%s%s", name, part[0] != '\0' ? "." : "", part);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (strcmp(type, types[i].type) == 0) {
            field->size = types[i].size;
            field->real = types[i].real;
        }
    }
    if (field->size == 0) {
        fail_msg("field %s has type %s, which has no twin", name, type);
    }
}

/* One declaration such as "struct tensor_view q, k" or "int corner". */
static void add_declaration(struct fields *fields, char *text)
{
    char *type = strtok(text, " \t\n,");
    if (type != NULL && strcmp(type, "struct") == 0) {
        type = strtok(NULL, " \t\n,");
    }
    if (type == NULL) {
        return;
    }
    for (const char *name; (name = strtok(NULL, " \t\n,")) != NULL;) {
        if (strcmp(type, "tensor_view") != 0) {
            add_field(fields, type, name, "");
            continue;
        }
        for (size_t i = 0; i < COUNT_OF(view_parts); i++) {
            add_field(fields, "long", name, view_parts[i]);
        }
    }
}

/* The fields between the braces, which stand before or after the name of the struct. */
static void read_fields(const char *file, const char *opening, const char *closing, struct fields *fields)
{
    char *path = path_join(CLATTN_SOURCE_DIR, file), *text = file_read(path);
    assert_non_null(text);
    blank_comments(text);
    char *end = strstr(text, closing), *begin = NULL;
    assert_non_null(end);
    *end = '\0';
    for (char *at = text; (at = strstr(at, opening)) != NULL; at++) {
        begin = at + strlen(opening);
    }
    assert_non_null(begin);
    memset(fields, 0, sizeof *fields);
    while (*begin != '\0') {
        char *stop = begin + strcspn(begin, ";");
        const bool last = *stop == '\0';
        *stop = '\0';
        add_declaration(fields, begin);
        begin = last ? stop : stop + 1;
    }
    free(text);
    free(path);
}

static struct fields host, device;

static int read_both(void **state)
{
    read_fields("src/launch.h", "struct launch_args {", "};\n\n#define CLA_OPEN_END", &host);
    read_fields("cl/args.cl", "typedef struct {", "} launch_args;", &device);
    return bench_open(state);
}

static void host_and_kernel_list_the_same_fields(void **state)
{
    (void)state;
    assert_true(host.count >= 40);
    for (int i = 0; i < host.count && i < device.count; i++) {
        if (strcmp(host.list[i].name, device.list[i].name) != 0 || host.list[i].size != device.list[i].size ||
            host.list[i].real != device.list[i].real) {
            fail_msg("field %d is %s on the host and %s in the kernels", i, host.list[i].name, device.list[i].name);
        }
    }
    assert_int_equal(host.count, device.count);
}

/* Wide fields come first and the size is a whole number of words, so that every compiler lays the struct out alike. */
static void the_struct_has_no_padding(void **state)
{
    (void)state;
    int size = 0;
    for (int i = 0; i < host.count; i++) {
        assert_true(i == 0 || host.list[i].size <= host.list[i - 1].size);
        size += host.list[i].size;
    }
    assert_int_equal(size, sizeof(struct launch_args));
    assert_int_equal(size % 8, 0);
}

/* The smallest CL_DEVICE_MAX_PARAMETER_SIZE that OpenCL allows, buffers included. */
static void arguments_fit_the_smallest_parameter_size(void **state)
{
    (void)state;
    assert_true(sizeof(struct launch_args) + 8 * 16 <= 1024);
}

/* Writes each field to its number in the list. */
static void add_kernel(struct text *text)
{
    cla_text_add(text, "__kernel void echo(__global long *out, const launch_args args)\n{\n");
    for (int i = 0; i < device.count; i++) {
        cla_text_add(text, device.list[i].real ? "    out[%d] = as_int(args.%s);\n" : "    out[%d] = args.%s;\n", i,
                     device.list[i].name);
    }
    cla_text_add(text, "    out[%d] = sizeof(launch_args);\n}\n", device.count);
}

static void fill(unsigned char *bytes, int64_t *want)
{
    for (int i = 0, at = 0; i < host.count; at += host.list[i++].size) {
        const int64_t wide = ((int64_t)(i + 1) << 33) + i;
        const int32_t narrow = -1000 - i;
        want[i] = host.list[i].size == 8 ? wide : narrow;
        if (host.list[i].size == 8) {
            memcpy(bytes + at, &wide, sizeof wide);
        } else {
            memcpy(bytes + at, &narrow, sizeof narrow);
        }
    }
    want[host.count] = (int64_t)sizeof(struct launch_args);
}

static void every_field_arrives_in_the_kernel(void **state)
{
    (void)state;
    struct launch_args args;
    int64_t want[MAX_FIELDS + 1], got[MAX_FIELDS + 1];
    clattn_error error;
    struct source source;
    struct text text = {0};
    cl_int code;
    cl_context cl = clattn_context_cl(bench.context);
    cl_device_id one_device = clattn_context_device(bench.context);
    static const char *const files[] = {"cl/args.cl"};
    clattn_error_init(&error);
    assert_ok(cla_source_compose(&source, "", files, 1, NULL, &error), &error);
    /* Only the types: the rest of the file needs other files. */
    const char *const types_end = strstr(source.text.data, "} launch_args;");
    assert_non_null(types_end);
    cla_text_append(&text, source.text.data, (size_t)(types_end - source.text.data));
    cla_text_add(&text, "} launch_args;\n");
    add_kernel(&text);
    const char *data = text.data;
    cl_program program = clCreateProgramWithSource(cl, 1, &data, NULL, &code);
    if (clBuildProgram(program, 1, &one_device, "", NULL, NULL) != CL_SUCCESS) {
        char log[4096] = "";
        clGetProgramBuildInfo(program, one_device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fail_msg("%s", log);
    }
    cl_kernel kernel = clCreateKernel(program, "echo", &code);
    assert_int_equal(code, CL_SUCCESS);
    cl_mem out = clCreateBuffer(cl, 0, sizeof got, NULL, &code);
    fill((unsigned char *)&args, want);
    const size_t one = 1;
    assert_int_equal(clSetKernelArg(kernel, 0, sizeof out, &out), CL_SUCCESS);
    assert_int_equal(clSetKernelArg(kernel, 1, sizeof args, &args), CL_SUCCESS);
    assert_int_equal(clEnqueueNDRangeKernel(bench.queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL), CL_SUCCESS);
    clEnqueueReadBuffer(bench.queue, out, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL);
    for (int i = 0; i <= host.count; i++) {
        if (got[i] != want[i]) {
            fail_msg("%s is %lld, wanted %lld", i < host.count ? host.list[i].name : "the size", (long long)got[i],
                     (long long)want[i]);
        }
    }
    clReleaseMemObject(out);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    cla_text_free(&text);
    cla_source_free(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_kernel_list_the_same_fields),
        cmocka_unit_test(the_struct_has_no_padding),
        cmocka_unit_test(arguments_fit_the_smallest_parameter_size),
        cmocka_unit_test(every_field_arrives_in_the_kernel),
    };
    return cmocka_run_group_tests(tests, read_both, bench_close);
}
