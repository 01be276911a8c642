/* SPDX-License-Identifier: Apache-2.0
 * What a cache entry is called and what it looks like on disk. Pure functions of their inputs.
 *
 *     bytes  0 ...  7   "CLATTN" 0x1a 0x0a: no text, and told apart from a file whose line ends were changed
 *            8 ... 11   format number, least byte first, as all numbers here
 *           12 ... 15   length of the header, 56
 *           16 ... 31   key
 *           32 ... 39   length of the content
 *           40 ... 55   the first 16 bytes of SHA-256 of bytes 0 ... 39 and that of the content
 *           56 ...      content
 *
 * The checksum finds damage, not forgery: who can write to the folder can run code as its user. */
#ifndef CLATTN_CACHE_FILE_H
#define CLATTN_CACHE_FILE_H

#include "text.h"

#define CLA_CACHE_FORMAT 2
#define CLA_CACHE_HEADER 56
/* More is neither written nor read. */
#define CLA_CACHE_MAX_CONTENT ((size_t)64 << 20)

struct cache_key {
    unsigned char bytes[16];
};

/* One part of a key's text: its length, then itself, so that two lists of parts never read alike. */
void cla_cache_key_part(struct text *parts, const char *bytes, size_t length);

/* The key of parts so written. */
void cla_cache_key(const struct text *parts, struct cache_key *key);

/* "0123...ef.clb", with its closing zero. */
#define CLA_CACHE_NAME_SIZE (32 + 4 + 1)
void cla_cache_name(const struct cache_key *key, char name[CLA_CACHE_NAME_SIZE]);

/* Whether a file of this name was written by the cache; *temporary: before it was whole. */
bool cla_cache_owns(const char *name, bool *temporary);

/* The file of a content; false when it is too large or memory is short. */
bool cla_cache_encode(const struct cache_key *key, const void *content, size_t size, struct text *file);

/* The content of a file, within it; false unless it is whole, undamaged and of this key. */
bool cla_cache_decode(const struct cache_key *key, const struct text *file, const char **content, size_t *size);

#endif
