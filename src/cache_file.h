/* SPDX-License-Identifier: Apache-2.0
 * The name and file format of a cache entry. Pure functions of their inputs.
 *
 *     bytes  0 ...  7   "CLATTN" 0x1a 0x0a: not text, and detects changed line ends
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
/* Larger content is neither written nor read. */
#define CLA_CACHE_MAX_CONTENT ((size_t)64 << 20)

struct cache_key {
    unsigned char bytes[16];
};

/* Appends one part of a key: its length, then its bytes, so that different lists of parts are never equal. */
void cla_cache_key_part(struct text *parts, const char *bytes, size_t length);

/* The key of these parts. */
void cla_cache_key(const struct text *parts, struct cache_key *key);

/* "0123...ef.clb", with its terminating zero. */
#define CLA_CACHE_NAME_SIZE (32 + 4 + 1)
void cla_cache_name(const struct cache_key *key, char name[CLA_CACHE_NAME_SIZE]);

/* Whether the cache wrote a file of this name; *temporary: the file was not yet complete. */
bool cla_cache_owns(const char *name, bool *temporary);

/* Makes the file for a content; false if it is too large or memory runs out. */
bool cla_cache_encode(const struct cache_key *key, const void *content, size_t size, struct text *file);

/* Finds the content within a file; false unless it is complete, undamaged and of this key. */
bool cla_cache_decode(const struct cache_key *key, const struct text *file, const char **content, size_t *size);

#endif
