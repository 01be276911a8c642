/* SPDX-License-Identifier: Apache-2.0
 * The format of a cache entry, and that any damage to it is noticed. */
#include "support.h"

#include "cache_file.h"

static const char content[] = "the bytes of a program, \0 zeros included";
static const struct cache_key key = {
    {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}};

static struct text encoded(void)
{
    struct text file = {0};
    assert_true(cla_cache_encode(&key, content, sizeof content, &file));
    return file;
}

static bool decodes(const struct text *file)
{
    const char *bytes = NULL;
    size_t size = 0;
    return cla_cache_decode(&key, file, &bytes, &size);
}

static void an_entry_comes_back(void **state)
{
    (void)state;
    const char *bytes = NULL;
    size_t size = 0;
    struct text file = encoded();
    assert_int_equal(file.length, CLA_CACHE_HEADER + sizeof content);
    assert_true(cla_cache_decode(&key, &file, &bytes, &size));
    assert_int_equal(size, sizeof content);
    assert_memory_equal(bytes, content, size);
    cla_text_free(&file);
}

/* The format is the same on every machine: these are its bytes. */
static void the_byte_order_is_fixed(void **state)
{
    (void)state;
    static const unsigned char start[] = {'C',  'L',  'A',  'T',  'T',  'N',  0x1a, 0x0a, 2,    0,    0,    0,    56,   0,
                                          0,    0,    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb,
                                          0xcc, 0xdd, 0xee, 0xff, 41,   0,    0,    0,    0,    0,    0,    0};
    struct text file = encoded();
    assert_int_equal(sizeof content, 41);
    assert_memory_equal(file.data, start, sizeof start);
    struct text parts = {0};
    struct cache_key made;
    char name[CLA_CACHE_NAME_SIZE];
    cla_cache_key_part(&parts, "a", 1);
    cla_cache_key(&parts, &made);
    cla_cache_name(&made, name);
    assert_string_equal(name, "6a9960c7d65c78b67d9176fe3fdb1ea3.clb");
    cla_text_free(&parts);
    cla_text_free(&file);
}

static void every_changed_byte_is_noticed(void **state)
{
    (void)state;
    struct text file = encoded();
    for (size_t i = 0; i < file.length; i++) {
        for (int change = 1; change < 256; change++) {
            file.data[i] = (char)(file.data[i] ^ change);
            if (decodes(&file)) {
                fail_msg("byte %zu changed by %d is not noticed", i, change);
            }
            file.data[i] = (char)(file.data[i] ^ change);
        }
    }
    assert_true(decodes(&file));
    cla_text_free(&file);
}

static void every_cut_and_every_addition_is_noticed(void **state)
{
    (void)state;
    struct text file = encoded();
    const size_t whole = file.length;
    for (file.length = 0; file.length < whole; file.length++) {
        assert_false(decodes(&file));
    }
    cla_text_append(&file, "x", 1);
    assert_false(decodes(&file));
    struct text empty = {0};
    assert_false(decodes(&empty));
    cla_text_free(&file);
}

static void another_key_is_another_entry(void **state)
{
    (void)state;
    const char *bytes = NULL;
    size_t size = 0;
    struct text file = encoded();
    for (size_t i = 0; i < sizeof key.bytes; i++) {
        struct cache_key other = key;
        other.bytes[i] ^= 1;
        assert_false(cla_cache_decode(&other, &file, &bytes, &size));
    }
    cla_text_free(&file);
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    struct text file = {0};
    assert_false(cla_cache_encode(&key, content, 0, &file));
    assert_false(cla_cache_encode(&key, content, CLA_CACHE_MAX_CONTENT + 1, &file));
    assert_int_equal(file.length, 0);
    cla_text_free(&file);
}

static void make_key(struct cache_key *made, const char *const parts[], size_t count)
{
    struct text text = {0};
    for (size_t i = 0; i < count; i++) {
        cla_cache_key_part(&text, parts[i], strlen(parts[i]));
    }
    cla_cache_key(&text, made);
    cla_text_free(&text);
}

static void parts_keep_their_borders(void **state)
{
    (void)state;
    static const char *const lists[][3] = {
        {"ab", "c", ""}, {"a", "bc", ""},     {"", "ab", "c"}, {"abc", "", ""},
        {"1:a", "", ""}, {"a\n1:b", "c", ""}, {"a", "b", "c"},
    };
    struct cache_key keys[COUNT_OF(lists)], again;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        make_key(&keys[i], lists[i], 3);
        make_key(&again, lists[i], 3);
        assert_memory_equal(&again, &keys[i], sizeof again);
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(&keys[i], &keys[j], sizeof again);
        }
    }
}

static void only_own_files_are_owned(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool owned, temporary;
    } rows[] = {
        {"00112233445566778899aabbccddeeff.clb", true, false},
        {"00112233445566778899aabbccddeeff.clb.123.0.tmp", true, true},
        {"00112233445566778899aabbccddeeff.clb.tmp", false, false},
        {"00112233445566778899aabbccddeeff.clb.x.0.tmp", false, false},
        {"00112233445566778899aabbccddeeff.clb.123.0.tmp2", false, false},
        {"00112233445566778899aabbccddeeff.clbx", false, false},
        {"00112233445566778899aabbccddeeff", false, false},
        {"00112233445566778899AABBCCDDEEFF.clb", false, false},
        {"0112233445566778899aabbccddeeff.clb", false, false},
        {"000112233445566778899aabbccddeeff.clb", false, false},
        {"thesis.tex", false, false},
        {"", false, false},
        {".", false, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool temporary = false;
        const bool owned = cla_cache_owns(rows[i].name, &temporary);
        if (owned != rows[i].owned || (owned && temporary != rows[i].temporary)) {
            fail_msg("%s: owned %d, temporary %d", rows[i].name, owned, temporary);
        }
    }
    char name[CLA_CACHE_NAME_SIZE];
    cla_cache_name(&key, name);
    assert_string_equal(name, rows[0].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_comes_back),           cmocka_unit_test(the_byte_order_is_fixed),
        cmocka_unit_test(every_changed_byte_is_noticed), cmocka_unit_test(every_cut_and_every_addition_is_noticed),
        cmocka_unit_test(another_key_is_another_entry),  cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(parts_keep_their_borders),      cmocka_unit_test(only_own_files_are_owned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
