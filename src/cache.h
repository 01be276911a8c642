/* SPDX-License-Identifier: Apache-2.0
 * The persistent program cache: a folder, or the application's store. Nothing here fails: entries that cannot be read are
 * created again, entries that cannot be written are skipped. */
#ifndef CLATTN_CACHE_H
#define CLATTN_CACHE_H

#include "cache_file.h"
#include "log.h"

struct cache {
    struct text folder; /* without a folder and without functions the cache is off */
    clattn_cache_load_fn load;
    clattn_cache_store_fn store;
    void *user;
    struct text identity; /* the parts of a key that identify library, device and driver */
};

/* Opens the cache of the options, or the one that the environment names instead unless the options ignore it, for programs of
 * this device. A folder that another user may write to is not used, and the log says so. */
void cla_cache_open(struct cache *cache, const clattn_context_options *options, cl_device_id device,
                    const struct logger *logger);
void cla_cache_close(struct cache *cache);

/* The key of an entry for this device; `kind` is the kind of content. False: there is no cache. */
bool cla_cache_key_of(const struct cache *cache, const char *kind, const char *options, const struct text *text,
                      struct cache_key *key);

/* Appends the content of an entry; false if it is missing or incomplete. */
bool cla_cache_load(const struct cache *cache, const struct cache_key *key, struct text *content);

void cla_cache_store(const struct cache *cache, const struct cache_key *key, const void *content, size_t size);

#endif
