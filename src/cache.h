/* SPDX-License-Identifier: Apache-2.0
 * What compiled programs are kept in between processes: a folder, or the application's own store. Nothing here fails: what
 * cannot be read is made again, what cannot be written is left out. */
#ifndef CLATTN_CACHE_H
#define CLATTN_CACHE_H

#include "cache_file.h"
#include "log.h"

struct cache {
    struct text folder; /* with neither folder nor functions, the cache is off */
    clattn_cache_load_fn load;
    clattn_cache_store_fn store;
    void *user;
    struct text identity; /* key parts of the library, the device and its driver */
};

/* The options' cache, or the one that the environment names in its place unless the options have it ignored, for what is built
 * for this device. A folder that another user may write to is not used, and the log says so. */
void cla_cache_open(struct cache *cache, const clattn_context_options *options, cl_device_id device,
                    const struct logger *logger);
void cla_cache_close(struct cache *cache);

/* The key of an entry for this device; `kind` says what it holds. False: there is no cache. */
bool cla_cache_key_of(const struct cache *cache, const char *kind, const char *options, const struct text *text,
                      struct cache_key *key);

/* Appends the content of an entry; false: it is not there, or not whole. */
bool cla_cache_load(const struct cache *cache, const struct cache_key *key, struct text *content);

void cla_cache_store(const struct cache *cache, const struct cache_key *key, const void *content, size_t size);

#endif
