/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 against the examples of the standard and those at the borders of a block. */
#include "support.h"

#include "sha256.h"

static void assert_hash(const void *bytes, size_t size, const char *wanted)
{
    unsigned char hash[CLA_SHA256_SIZE];
    char text[2 * CLA_SHA256_SIZE + 1];
    cla_sha256(bytes, size, hash);
    for (size_t i = 0; i < sizeof hash; i++) {
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    }
    assert_string_equal(text, wanted);
}

static void examples_of_the_standard_have_their_digests(void **state)
{
    (void)state;
    static char million[1000000];
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    memset(million, 'a', sizeof million);
    assert_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash(two, sizeof two - 1, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_hash(million, sizeof million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Lengths around those where the padding takes another block. */
static void lengths_at_the_borders_of_a_block_have_their_digests(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *hash;
    } rows[] = {{1, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},
                {54, "45f316e10b2c99abf374b22bda893cf3300d77263f1e272349ed414680522952"},
                {55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
                {56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
                {57, "ae14a2563ccf969d99aca69ce6bb74981f734bbf9f655f73b8f06db68cab5217"},
                {63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
                {64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
                {65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
                {119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
                {120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"},
                {128, "24da1b81d0b16df6428eee73c69fcb2a93c76bc6df706f0c6670fe6bfe800464"}};
    char text[200];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_hash(text, rows[i].size, rows[i].hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_of_the_standard_have_their_digests),
        cmocka_unit_test(lengths_at_the_borders_of_a_block_have_their_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
