/* SPDX-License-Identifier: Apache-2.0
 * The kernel sources that the library would build on a device that is known only by a file of facts, for offline compilers:
 * offline_sources FACTS FOLDER. Writes FOLDER/ENGINE-NUMBER.cl and FOLDER/options, the build options, and
 * prints a line a file: its name, whether the library tries it first, shape, tile, separated by tabs. */
#include "choose.h"
#include "context.h"
#include "files.h"
#include "kernel_text.h"
#include "layout.h"
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Engines for any GPU. The baseline is built for a few shapes only. */
static const char *const engines[] = {"reference", "simt", "unfused"};

/* Kernel source depends on types, head sizes, the contiguous axis, options, split keys, the pass that classifies mask tiles,
 * and the tile. */
static const struct variant {
    const char *shape, *layout;
    bool all_tiles; /* each tile that fits, in addition to the one tried first */
} variants[] = {
    {"b2 h8 q2048 k2048 d64", "bhsd", true},
    {"b2 h8 q2048 k2048 d128", "bhsd", true},
    {"b2 h8 q2048 k2048 d64 fp16", "bhsd", true},
    {"b2 h8 q2048 k2048 d256", "bhsd", true},
    {"b2 h8 q2048 k2048 d64 bf16", "bhsd", false},
    {"b2 h8 q2048 k2048 d128 fp16", "bhsd", false},
    {"b2 h8 q2048 k2048 d128 bf16", "bhsd", false},
    {"b2 h8 q2048 k2048 d64 q=fp32 kv=fp16 o=fp32", "bhsd", false},
    {"b2 h8 q2048 k2048 d64 q=fp16 k=bf16 v=fp32 o=bf16", "bhsd", false},
    {"b2 h8 q2048 k2048 d1", "bhsd", false},
    {"b2 h8 q2048 k2048 d40 fp16", "bhsd", false},
    {"b2 h8 q2048 k2048 d80 fp16", "bhsd", false},
    {"b2 h8 q2048 k2048 d96", "bhsd", false},
    {"b2 h8 q2048 k2048 d160 fp16", "bhsd", false},
    {"b2 h8 q2048 k2048 d512", "bhsd", false},
    {"b2 h8 q2048 k2048 d192 dv128 bf16", "bhsd", false},
    {"b2 h8 q2048 k2048 d33", "bhsd", false},
    {"b2 h8 q2048 k2048 d64 causal", "bhsd", false},
    {"b2 h8 q2048 k2048 d64", "all-transposed", false},
    {"b2 h8 q2048 k2048 d64", "inner2", false},
    {"b2 h8 q2048 k2048 d64 softcap=30", "bhsd", true},
    {"b2 h8 q2048 k2048 d128 fp16 softcap=30", "bhsd", false},
    {"b2 h8 q2048 k2048 d64 mask=qk", "bhsd", false},
    {"b2 h8 q2048 k2048 d128 fp16 bias=qk", "bhsd", false},
    {"b2 h8 q1 k8192 d64", "bhsd", false},
    {"b2 hq32 hkv8 q1 k8192 d128 fp16", "bhsd", false},
    {"b2 h8 q1 k8192 d128 softcap=30", "bhsd", false},
};

/* Sources written so far, since many shapes share one. */
struct written {
    struct source *list;
    size_t count, capacity;
};

static bool is_new(const struct written *written, const struct source *source)
{
    for (size_t i = 0; i < written->count; i++)
        if (strcmp(written->list[i].text.data, source->text.data) == 0)
            return false;
    return true;
}

static bool keep(struct written *written, const struct source *source)
{
    if (written->count == written->capacity) {
        const size_t capacity = written->capacity * 2 + 64;
        struct source *list = realloc(written->list, capacity * sizeof *list);
        if (!list)
            return false;
        written->list = list;
        written->capacity = capacity;
    }
    written->list[written->count++] = *source;
    return true;
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "offline_sources: %s: %s\n", what, why);
    return 1;
}

static int write_config(const struct facts *facts, const clattn_problem *problem, const struct variant *variant,
                        const struct config *config, bool is_first, const char *folder, struct written *written)
{
    struct source source;
    struct text tile = {0};
    clattn_error error;
    char name[64];
    clattn_error_init(&error);
    if (cla_kernel_source(facts, problem, config, NULL, &source, &error) != CLATTN_SUCCESS)
        return fail(variant->shape, error.message);
    if (!is_new(written, &source)) {
        cla_source_free(&source);
        return 0;
    }
    snprintf(name, sizeof name, "%s-%03zu.cl", config->engine->name, written->count);
    char *path = path_join(folder, name);
    const bool ok = path && file_write(path, source.text.data) && keep(written, &source);
    free(path);
    cla_config_print(config, &tile);
    printf("%s\t%d\t%s%s%s\t%s\n", name, is_first, variant->shape, strcmp(variant->layout, "bhsd") == 0 ? "" : " ",
           strcmp(variant->layout, "bhsd") == 0 ? "" : variant->layout, tile.data ? tile.data : "");
    cla_text_free(&tile);
    return ok ? 0 : fail(name, "cannot be written");
}

static int write_variant(const struct facts *facts, const struct variant *variant, const char *engine, const char *folder,
                         struct written *written)
{
    struct candidates *candidates = calloc(1, sizeof *candidates);
    clattn_plan_options options;
    clattn_problem problem;
    clattn_error error;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.engine = engine;
    if (!candidates)
        return fail(variant->shape, "out of memory");
    clattn_status status = clattn_problem_parse(variant->shape, &problem, &error);
    if (status == CLATTN_SUCCESS && !layout_apply(variant->layout, &problem))
        status = CLATTN_INVALID_ARGUMENT;
    if (status == CLATTN_SUCCESS)
        status = cla_decide(facts, &problem, &options, candidates, &error);
    int code = 0;
    if (status == CLATTN_SUCCESS) {
        const size_t count = variant->all_tiles ? candidates->count : 1;
        for (size_t i = 0; i < count && code == 0; i++)
            code = write_config(facts, &problem, variant, &candidates->list[i], i == 0, folder, written);
    } else if (status != CLATTN_UNSUPPORTED) { /* an engine may decline a shape; nothing else may go wrong */
        code = fail(variant->shape, error.message);
    }
    cla_text_free(&candidates->declined);
    free(candidates);
    return code;
}

static int write_options(const struct facts *facts, const char *folder)
{
    struct text options = {0};
    cla_program_options(facts, NULL, &options);
    char *path = path_join(folder, "options");
    const bool ok = path && file_write(path, options.data ? options.data : "");
    free(path);
    cla_text_free(&options);
    return ok ? 0 : fail(folder, "the options cannot be written");
}

int main(int argc, char **argv)
{
    struct written written = {0};
    struct facts facts;
    clattn_error error;
    int code = 0;
    if (argc != 3)
        return fail("usage", "offline_sources FACTS FOLDER");
    clattn_error_init(&error);
    char *text = file_read(argv[1]);
    if (!text || cla_facts_parse(text, &facts, &error) != CLATTN_SUCCESS)
        code = fail(argv[1], text ? error.message : "cannot be read");
    if (code == 0)
        code = write_options(&facts, argv[2]);
    for (size_t e = 0; e < sizeof engines / sizeof *engines && code == 0; e++)
        for (size_t v = 0; v < sizeof variants / sizeof *variants && code == 0; v++)
            if (variants[v].all_tiles || strcmp(engines[e], "unfused") != 0)
                code = write_variant(&facts, &variants[v], engines[e], argv[2], &written);
    if (code == 0 && written.count == 0)
        code = fail(argv[1], "no engine serves any shape");
    for (size_t i = 0; i < written.count; i++)
        cla_source_free(&written.list[i]);
    free(written.list);
    free(text);
    return code;
}
