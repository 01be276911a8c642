/* SPDX-License-Identifier: Apache-2.0
 * tools/program/npy.c: what NumPy writes is read, what it cannot have written is refused with a text. */
#include "support.h"

#include "../../tools/program/npy.c"
#include "../../tools/verify/random.h"

static char why[NPY_WHY_SIZE];

/* A file image: version, header text, data. */
struct image {
    unsigned char bytes[4096];
    size_t size;
};

static void put(struct image *image, const void *bytes, size_t size)
{
    assert_true(image->size + size <= sizeof image->bytes);
    memcpy(image->bytes + image->size, bytes, size);
    image->size += size;
}

static struct image make(int version, const char *header, const void *data, size_t size)
{
    struct image image = {.size = 0};
    const size_t length = strlen(header);
    const unsigned char prefix[6] = {(unsigned char)version,       0, (unsigned char)(length & 255),
                                     (unsigned char)(length >> 8), 0, 0};
    put(&image, magic, 6);
    put(&image, prefix, version == 1 ? 4 : 6);
    put(&image, header, length);
    put(&image, data, size);
    return image;
}

static bool parse(const struct image *image, struct npy *array)
{
    why[0] = '\0';
    return npy_parse(image->bytes, image->size, array, why);
}

static void refuses(const char *header, const char *text)
{
    static const char data[64];
    struct npy array;
    const struct image image = make(1, header, data, sizeof data);
    assert_false(parse(&image, &array));
    if (strstr(why, text) == NULL)
        fail_msg("%s\ngave '%s', which lacks '%s'", header, why, text);
}

static void each_version_is_read(void **state)
{
    const float data[6] = {0, 1, 2, 3, 4, 5};
    (void)state;
    for (int version = 1; version <= 3; version++) {
        struct npy array;
        const struct image image =
            make(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n", data, sizeof data);
        assert_true(parse(&image, &array));
        assert_int_equal(array.type, NPY_F4);
        assert_int_equal(array.rank, 2);
        assert_int_equal(array.shape[0], 2);
        assert_int_equal(array.shape[1], 3);
        assert_int_equal(array.count, 6);
        assert_memory_equal(array.data, data, sizeof data);
        npy_free(&array);
    }
}

static void each_type_is_read(void **state)
{
    static const char *const names[] = {"<f4", "<f2", "<f8", "<u2", "<V2", "|V2", "|b1", "|u1", "<i4", "<i8", "=f4"};
    static const char data[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char header[128];
        struct npy array;
        snprintf(header, sizeof header, "{\"descr\": \"%s\", \"shape\": (5,), \"fortran_order\": False}", names[i]);
        const struct image image = make(1, header, data, sizeof data);
        assert_true(parse(&image, &array));
        assert_int_equal(array.count, 5);
        assert_string_equal(npy_type_name(array.type) + 1, names[i] + 1);
        npy_free(&array);
    }
}

static void fortran_order_is_transposed(void **state)
{
    /* element (i, j, k) of a (2, 3, 2) array holds 100 i + 10 j + k; stored with i fastest */
    float data[12];
    struct npy array;
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++)
                data[i + 2 * j + 6 * k] = (float)(100 * i + 10 * j + k);
    const struct image image = make(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 2), }", data, sizeof data);
    assert_true(parse(&image, &array));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++)
                assert_true(((float *)array.data)[(i * 3 + j) * 2 + k] == (float)(100 * i + 10 * j + k));
    npy_free(&array);
}

static void scalars_and_empty_arrays_are_read(void **state)
{
    struct npy array;
    (void)state;
    struct image image = make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "12345678", 8);
    assert_true(parse(&image, &array));
    assert_int_equal(array.rank, 0);
    assert_int_equal(array.count, 1);
    npy_free(&array);
    image = make(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (4611686018427387904, 0, 4611686018427387904)}", "", 0);
    assert_true(parse(&image, &array));
    assert_int_equal(array.count, 0);
    npy_free(&array);
    image = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1L, 2L)}", "12345678", 8); /* from Python 2 */
    assert_true(parse(&image, &array));
    assert_int_equal(array.shape[1], 2);
    npy_free(&array);
}

static void hostile_headers_are_refused(void **state)
{
    (void)state;
    refuses("", "'{' is missing");
    refuses("{", "quoted word");
    refuses("{}", "'descr' is missing");
    refuses("{'descr': '<f4', 'fortran_order': False}", "'shape' is missing");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "'}' is missing");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "after its closing brace");
    refuses("{'descr': '<f4', 'descr': '<f4'}", "there twice");
    refuses("{'describe': '<f4'}", "unknown");
    refuses("{'descr: 1}", "quote is not closed");
    refuses("{'descr': '>f4'}", "big-endian");
    refuses("{'descr': '<c8'}", "'<c8' is not supported");
    refuses("{'descr': 'O'}", "'O' is not supported");
    refuses("{'descr': ''}", "'' is not supported");
    refuses("{'descr': [('a', '<f4')]}", "structured");
    refuses("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", "fortran_order");
    refuses("{'descr': '<f4', 'fortran_order': Tru", "fortran_order");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': 4}", "'(' is missing");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "whole number");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}", "')' is missing");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "63 bits");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8 dimensions");
    refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "more bytes than memory");
    refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807,)}", "more bytes than memory");
    refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}", "cut off");
}

static void bad_prefixes_are_refused(void **state)
{
    static const unsigned char huge[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 255, 255, 255, 255};
    struct image image = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "1234", 4);
    struct npy array;
    (void)state;
    image.bytes[6] = 4;
    assert_false(parse(&image, &array));
    assert_non_null(strstr(why, "version 4"));
    image.bytes[6] = 1;
    image.bytes[1] = 'n';
    assert_false(parse(&image, &array));
    assert_non_null(strstr(why, "not a .npy file"));
    assert_false(npy_parse(huge, sizeof huge, &array, why));
    assert_non_null(strstr(why, "not plausible"));
    assert_false(npy_parse("", 0, &array, why));
}

static void every_truncation_is_refused(void **state)
{
    const float data[4] = {1, 2, 3, 4};
    const struct image image = make(2, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", data, sizeof data);
    (void)state;
    for (size_t size = 0; size < image.size; size++) {
        struct npy array;
        why[0] = '\0';
        assert_false(npy_parse(image.bytes, size, &array, why));
        assert_true(why[0] != '\0' && array.data == NULL);
    }
}

/* With a few bytes changed, the result is a consistent array or a message; the sanitizers watch for errors. */
static void changed_bytes_do_no_harm(void **state)
{
    const float data[4] = {1, 2, 3, 4};
    uint64_t seed = 42;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct image image =
            make(1 + round % 3, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", data, sizeof data);
        struct npy array;
        for (int changes = 1 + round % 4; changes > 0; changes--) {
            const size_t at = 6 + random_below(&seed, image.size - 6);
            image.bytes[at] = (unsigned char)random_next(&seed);
        }
        if (parse(&image, &array)) {
            const size_t bytes = array.count * npy_item_size(array.type);
            assert_true(bytes <= sizeof data);
            memset(array.data, 0, bytes);
            npy_free(&array);
        } else {
            assert_true(why[0] != '\0');
        }
    }
}

static const char *scratch(void) { return "test_npy_scratch.npy"; }

static void write_scratch(const struct npy *array)
{
    FILE *file = fopen(scratch(), "wb");
    assert_non_null(file);
    assert_true(npy_write(file, array));
    assert_int_equal(fclose(file), 0);
}

static void written_arrays_read_back(void **state)
{
    static const int64_t shapes[][3] = {{4, 3, 2}, {24, 1, 1}, {0, 5, 7}};
    double data[24];
    (void)state;
    for (int i = 0; i < 24; i++)
        data[i] = i / 7.0;
    for (int rank = 0; rank <= 3; rank++) {
        for (int which = 0; which < 3; which++) {
            struct npy out = {.type = NPY_F8, .rank = rank, .count = 1, .data = data}, in;
            for (int d = 0; d < rank; d++) {
                out.shape[d] = shapes[which][d];
                out.count *= (size_t)out.shape[d];
            }
            write_scratch(&out);
            assert_true(npy_read(scratch(), &in, why));
            assert_int_equal(in.type, NPY_F8);
            assert_int_equal(in.rank, rank);
            assert_memory_equal(in.shape, out.shape, sizeof in.shape);
            assert_memory_equal(in.data, data, in.count * sizeof data[0]);
            npy_free(&in);
        }
    }
    remove(scratch());
}

static void data_are_aligned_as_numpy_does(void **state)
{
    float one = 1;
    struct npy out = {.type = NPY_F4, .rank = 1, .shape = {1}, .count = 1, .data = &one};
    unsigned char bytes[256];
    (void)state;
    write_scratch(&out);
    FILE *file = fopen(scratch(), "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    remove(scratch());
    assert_int_equal((size - 4) % 64, 0);
    assert_int_equal(bytes[size - 5], '\n');
    assert_int_equal(bytes[8] + 10, size - 4);
}

static void cut_off_files_are_refused(void **state)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }";
    const struct image image = make(1, header, "1234", 4);
    struct npy array;
    (void)state;
    FILE *file = fopen(scratch(), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(image.bytes, 1, image.size, file), image.size);
    fclose(file);
    assert_false(npy_read(scratch(), &array, why));
    assert_non_null(strstr(why, "needs 4000000000000 bytes of data, 4 are there"));
    remove(scratch());
    assert_false(npy_read("no/such/file.npy", &array, why));
    assert_non_null(strstr(why, "No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version_is_read),        cmocka_unit_test(each_type_is_read),
        cmocka_unit_test(fortran_order_is_transposed), cmocka_unit_test(scalars_and_empty_arrays_are_read),
        cmocka_unit_test(hostile_headers_are_refused), cmocka_unit_test(bad_prefixes_are_refused),
        cmocka_unit_test(every_truncation_is_refused), cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(written_arrays_read_back),    cmocka_unit_test(data_are_aligned_as_numpy_does),
        cmocka_unit_test(cut_off_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
