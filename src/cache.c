/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include "environment.h"

#include <stdlib.h>
#include <string.h>

/* A folder with more bytes loses its least recently used files. */
#define FOLDER_LIMIT ((uint64_t)512 << 20)
/* A file that is unfinished for longer is from a process that was killed. */
#define STALE_SECONDS 600

/* Appends the strings that identify the compiler and its target. They come from the driver, since emulated device facts change
 * the kernel source but not the target. False if one is missing: then entries could not be distinguished. */
static bool add_device(struct text *parts, cl_device_id device)
{
    static const cl_device_info device_strings[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    static const cl_platform_info platform_strings[] = {CL_PLATFORM_NAME, CL_PLATFORM_VERSION};
    cl_platform_id platform = NULL;
    char string[1024];
    for (size_t i = 0; i < sizeof device_strings / sizeof *device_strings; i++) {
        if (clGetDeviceInfo(device, device_strings[i], sizeof string, string, NULL) != CL_SUCCESS)
            return false;
        cla_cache_key_part(parts, string, strlen(string));
    }
    if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) != CL_SUCCESS)
        return false;
    for (size_t i = 0; i < sizeof platform_strings / sizeof *platform_strings; i++) {
        if (clGetPlatformInfo(platform, platform_strings[i], sizeof string, string, NULL) != CL_SUCCESS)
            return false;
        cla_cache_key_part(parts, string, strlen(string));
    }
    return true;
}

static bool identify(struct cache *cache, cl_device_id device)
{
    cla_text_add(&cache->identity, "clattn %s\nformat %d\npointer %zu\n", clattn_version(), CLA_CACHE_FORMAT,
                 8 * sizeof(void *));
    return add_device(&cache->identity, device) && !cache->identity.failed;
}

static bool default_folder(struct text *folder)
{
    if (!cla_cache_home(folder))
        return false;
    cla_text_add(folder, "/clattn");
    return true;
}

/* A folder that another user may write to could make this process run any code, so it is not used. A folder that does not
 * exist yet is accepted. */
static bool is_safe(const char *path, const struct logger *logger)
{
    struct cla_folder folder;
    struct text said = {0};
    switch (cla_folder_open(path, &folder)) {
    case CLA_FOLDER_OPEN:
        cla_folder_close(&folder);
        return true;
    case CLA_FOLDER_ABSENT:
        return true;
    case CLA_FOLDER_FOREIGN:
        cla_text_add(&said,
                     "the cache folder %s is not used: it belongs to another user, who could make this program run any code",
                     path);
        break;
    case CLA_FOLDER_SHARED:
        cla_text_add(&said,
                     "the cache folder %s is not used: other users may write to it and make this program run any code; "
                     "`chmod go-w` makes it this user's alone",
                     path);
        break;
    }
    cla_log(logger, CLATTN_LOG_WARNING, said.data ? said.data : "the cache folder is not used: other users may write to it");
    cla_text_free(&said);
    return false;
}

void cla_cache_open(struct cache *cache, const clattn_context_options *options, cl_device_id device,
                    const struct logger *logger)
{
    const bool ignored = options->ignore_environment;
    bool on = !cla_variable_is(ignored, VARIABLE_CACHE, "off") && identify(cache, device);
    if (on && cla_variable_path(ignored, VARIABLE_CACHE_DIR, &cache->folder)) {
        on = !cache->folder.failed;
    } else if (on && options->cache_off) {
        on = false;
    } else if (on && (options->cache_load || options->cache_store)) {
        cache->load = options->cache_load;
        cache->store = options->cache_store;
        cache->user = options->cache_user;
    } else if (on && options->cache_folder && *options->cache_folder) {
        cla_text_add(&cache->folder, "%s", options->cache_folder);
        on = !cache->folder.failed;
    } else if (on) {
        on = default_folder(&cache->folder) && !cache->folder.failed;
    }
    /* A privileged program must not use a folder that its user can write: the user's code would run with the program's rights.
     */
    if (!on || (cache->folder.data && (cla_is_privileged() || !is_safe(cache->folder.data, logger))))
        cla_cache_close(cache);
}

void cla_cache_close(struct cache *cache)
{
    cla_text_free(&cache->folder);
    cla_text_free(&cache->identity);
    memset(cache, 0, sizeof *cache);
}

bool cla_cache_key_of(const struct cache *cache, const char *kind, const char *options, const struct text *text,
                      struct cache_key *key)
{
    struct text parts = {0};
    if (!cache->identity.data)
        return false;
    cla_text_append(&parts, cache->identity.data, cache->identity.length);
    cla_cache_key_part(&parts, kind, strlen(kind));
    cla_cache_key_part(&parts, options, strlen(options));
    cla_cache_key_part(&parts, text->data ? text->data : "", text->length);
    const bool made = !parts.failed;
    if (made)
        cla_cache_key(&parts, key);
    cla_text_free(&parts);
    return made;
}

/* An entry that was used becomes young again; the oldest are removed first. */
static bool load_from_folder(const char *path, const char *name, struct text *file)
{
    struct cla_folder folder;
    if (cla_folder_open(path, &folder) != CLA_FOLDER_OPEN)
        return false;
    const bool loaded = cla_folder_read(&folder, name, CLA_CACHE_HEADER + CLA_CACHE_MAX_CONTENT, file);
    if (loaded)
        cla_folder_touch(&folder, name);
    cla_folder_close(&folder);
    return loaded;
}

static bool load_from_application(const struct cache *cache, const char *name, struct text *file)
{
    const size_t size = cache->load ? cache->load(cache->user, name, NULL, 0) : 0;
    if (size == 0 || size > CLA_CACHE_HEADER + CLA_CACHE_MAX_CONTENT)
        return false;
    char *bytes = malloc(size);
    /* The entry may have been replaced meanwhile; the checksum detects a partial one. */
    const bool loaded = bytes && cache->load(cache->user, name, bytes, size) == size;
    if (loaded)
        cla_text_append(file, bytes, size);
    free(bytes);
    return loaded;
}

bool cla_cache_load(const struct cache *cache, const struct cache_key *key, struct text *content)
{
    char name[CLA_CACHE_NAME_SIZE];
    struct text file = {0};
    const char *bytes = NULL;
    size_t size = 0;
    cla_cache_name(key, name);
    const bool found =
        (cache->folder.data ? load_from_folder(cache->folder.data, name, &file) : load_from_application(cache, name, &file)) &&
        cla_cache_decode(key, &file, &bytes, &size);
    if (found)
        cla_text_append(content, bytes, size);
    cla_text_free(&file);
    return found && !content->failed;
}

struct sweep {
    const struct cla_folder *folder;
    uint64_t total, oldest;
    char oldest_name[CLA_CACHE_NAME_SIZE];
};

static void sweep_entry(void *user, const char *name, uint64_t size, uint64_t age)
{
    struct sweep *sweep = user;
    bool temporary = false;
    if (!cla_cache_owns(name, &temporary))
        return;
    if (temporary) {
        if (age > STALE_SECONDS)
            cla_folder_remove(sweep->folder, name);
        return;
    }
    sweep->total += size;
    if (age >= sweep->oldest && strlen(name) < sizeof sweep->oldest_name) {
        sweep->oldest = age;
        memcpy(sweep->oldest_name, name, strlen(name) + 1);
    }
}

/* Removes files that killed processes left, and the least recently used files while the folder is too large. */
static void tidy(const struct cla_folder *folder)
{
    for (int i = 0; i < 64; i++) {
        struct sweep sweep = {.folder = folder};
        cla_folder_visit(folder, sweep_entry, &sweep);
        if (sweep.total <= FOLDER_LIMIT || !sweep.oldest_name[0])
            break;
        cla_folder_remove(folder, sweep.oldest_name);
    }
}

static void store_in_folder(const char *path, const char *name, const struct text *file)
{
    struct cla_folder folder;
    if (!cla_make_folder(path) || cla_folder_open(path, &folder) != CLA_FOLDER_OPEN)
        return;
    if (cla_folder_replace(&folder, name, file->data, file->length))
        tidy(&folder);
    cla_folder_close(&folder);
}

void cla_cache_store(const struct cache *cache, const struct cache_key *key, const void *content, size_t size)
{
    char name[CLA_CACHE_NAME_SIZE];
    struct text file = {0};
    cla_cache_name(key, name);
    if (cla_cache_encode(key, content, size, &file)) {
        if (cache->folder.data) {
            store_in_folder(cache->folder.data, name, &file);
        } else if (cache->store) {
            cache->store(cache->user, name, file.data, file.length);
        }
    }
    cla_text_free(&file);
}
