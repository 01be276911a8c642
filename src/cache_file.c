/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_file.h"

#include "sha256.h"

#include <string.h>

#define AT_FORMAT 8
#define AT_HEADER 12
#define AT_KEY 16
#define AT_LENGTH 32
#define AT_CHECKSUM 40
#define SUFFIX ".clb"

static const char magic[8] = {'C', 'L', 'A', 'T', 'T', 'N', 0x1a, 0x0a};

static void put_number(char *at, size_t bytes, uint64_t number)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(unsigned char)(number >> (8 * i));
}

static uint64_t get_number(const char *at, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return number;
}

/* The first bytes of a SHA-256 are a good shorter hash. */
static void short_hash(const void *bytes, size_t size, unsigned char hash[16])
{
    unsigned char whole[CLA_SHA256_SIZE];
    cla_sha256(bytes, size, whole);
    memcpy(hash, whole, 16);
}

/* The header's hash covers the hash of the content, so that neither can change alone. */
static void checksum(const char *header, const void *content, size_t size, unsigned char bytes[16])
{
    unsigned char both[AT_CHECKSUM + 16];
    memcpy(both, header, AT_CHECKSUM);
    short_hash(content, size, both + AT_CHECKSUM);
    short_hash(both, sizeof both, bytes);
}

void cla_cache_key_part(struct text *parts, const char *bytes, size_t length)
{
    cla_text_add(parts, "%zu:", length);
    cla_text_append(parts, bytes, length);
    cla_text_append(parts, "\n", 1);
}

void cla_cache_key(const struct text *parts, struct cache_key *key) { short_hash(parts->data, parts->length, key->bytes); }

void cla_cache_name(const struct cache_key *key, char name[CLA_CACHE_NAME_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof key->bytes; i++) {
        name[2 * i] = digits[key->bytes[i] >> 4];
        name[2 * i + 1] = digits[key->bytes[i] & 15];
    }
    memcpy(name + 32, SUFFIX, sizeof SUFFIX);
}

bool cla_cache_owns(const char *name, bool *temporary)
{
    const size_t length = strlen(name), base = 32 + strlen(SUFFIX);
    if (strspn(name, "0123456789abcdef") != 32 || strncmp(name + 32, SUFFIX, strlen(SUFFIX)) != 0)
        return false;
    *temporary = length > base;
    return length == base || (length > base + 4 && name[base] == '.' && strcmp(name + length - 4, ".tmp") == 0 &&
                              strspn(name + base, ".0123456789") == length - base - 3);
}

bool cla_cache_encode(const struct cache_key *key, const void *content, size_t size, struct text *file)
{
    char header[CLA_CACHE_HEADER];
    if (size == 0 || size > CLA_CACHE_MAX_CONTENT)
        return false;
    memcpy(header, magic, sizeof magic);
    put_number(header + AT_FORMAT, 4, CLA_CACHE_FORMAT);
    put_number(header + AT_HEADER, 4, CLA_CACHE_HEADER);
    memcpy(header + AT_KEY, key->bytes, sizeof key->bytes);
    put_number(header + AT_LENGTH, 8, size);
    checksum(header, content, size, (unsigned char *)header + AT_CHECKSUM);
    cla_text_append(file, header, sizeof header);
    cla_text_append(file, content, size);
    return !file->failed;
}

bool cla_cache_decode(const struct cache_key *key, const struct text *file, const char **content, size_t *size)
{
    const char *header = file->data;
    unsigned char sum[16];
    if (file->failed || file->length <= CLA_CACHE_HEADER || file->length - CLA_CACHE_HEADER > CLA_CACHE_MAX_CONTENT)
        return false;
    if (memcmp(header, magic, sizeof magic) != 0 || get_number(header + AT_FORMAT, 4) != CLA_CACHE_FORMAT ||
        get_number(header + AT_HEADER, 4) != CLA_CACHE_HEADER || memcmp(header + AT_KEY, key->bytes, sizeof key->bytes) != 0 ||
        get_number(header + AT_LENGTH, 8) != file->length - CLA_CACHE_HEADER)
        return false;
    *content = file->data + CLA_CACHE_HEADER;
    *size = file->length - CLA_CACHE_HEADER;
    checksum(header, *content, *size, sum);
    return memcmp(header + AT_CHECKSUM, sum, sizeof sum) == 0;
}
