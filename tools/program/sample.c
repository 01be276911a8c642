/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

#include "arrays.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative to the program's folder: the program holds no path of the build or the installation, so both may be moved. */
#ifndef CLATTN_DATA
#define CLATTN_DATA "../share/clattn/minilm"
#endif

static void path_of(const struct sample *sample, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", sample->folder, name);
}

static int damaged(const struct sample *sample, const char *what)
{
    return cli_fail("run", CLI_FAILED, "--data", "%s: %s; take the folder tests/data/minilm of the sources", sample->folder,
                    what);
}

static int load_array(const struct sample *sample, const char *name, struct npy *array)
{
    char path[1100];
    path_of(sample, name, path, sizeof path);
    return array_read("run", "--data", path, array);
}

static int take_sizes(struct sample *s)
{
    const struct npy *const same[3] = {&s->k, &s->v, &s->expected};
    if (s->q.rank != 4 || s->q.shape[0] > SAMPLE_MAX_SENTENCES || s->q.shape[2] > SAMPLE_MAX_TOKENS || s->q.shape[1] > 1024 ||
        s->q.shape[3] > 1024 || s->q.count == 0)
        return damaged(s, "q.npy is not of the sample's shape");
    for (int i = 0; i < 3; i++)
        if (same[i]->rank != 4 || memcmp(same[i]->shape, s->q.shape, sizeof s->q.shape) != 0)
            return damaged(s, "its arrays differ in shape");
    s->sentences = (int)s->q.shape[0];
    s->heads = (int)s->q.shape[1];
    s->longest = (int)s->q.shape[2];
    s->head_dim = (int)s->q.shape[3];
    return CLI_OK;
}

static int load_lengths(struct sample *s)
{
    struct npy array;
    int code = load_array(s, "lengths.npy", &array);
    if (code != CLI_OK)
        return code;
    if (array.count != (size_t)s->sentences)
        code = damaged(s, "lengths.npy has not one number a sentence");
    for (int i = 0; i < s->sentences && code == CLI_OK; i++) {
        s->lengths[i] = (int)array_get(&array, (size_t)i);
        if (s->lengths[i] < 1 || s->lengths[i] > s->longest)
            code = damaged(s, "lengths.npy has a number out of range");
    }
    npy_free(&array);
    return code;
}

/* Cuts the text at blanks and ends of lines; a sentence is a line. */
static int cut_tokens(struct sample *s)
{
    char *at = s->text;
    for (int i = 0; i < s->sentences; i++) {
        for (int n = 0; n < s->lengths[i]; n++) {
            const size_t length = strcspn(at, " \n");
            const char end = at[length];
            if (length == 0 || (end == '\n') != (n + 1 == s->lengths[i]))
                return damaged(s, "tokens.txt does not fit lengths.npy");
            s->tokens[i][n] = at;
            at[length] = '\0';
            at += length + 1;
        }
    }
    return CLI_OK;
}

static int load_tokens(struct sample *s)
{
    enum { LARGEST = 65536 };
    char path[1100];
    path_of(s, "tokens.txt", path, sizeof path);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return damaged(s, "tokens.txt cannot be opened");
    s->text = malloc(LARGEST + 2);
    size_t length = s->text != NULL ? fread(s->text, 1, LARGEST, file) : 0;
    fclose(file);
    if (s->text == NULL)
        return damaged(s, "out of memory");
    if (length == 0 || s->text[length - 1] != '\n')
        s->text[length++] = '\n';
    s->text[length] = '\0';
    cli_clean(s->text);
    return cut_tokens(s);
}

static bool is_there(const char *folder)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/tokens.txt", folder);
    FILE *file = fopen(path, "rb");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

static bool find_folder(char *folder, size_t size)
{
    static const char *const places[] = {"minilm", CLATTN_DATA};
    char program[900];
    bool found = false;
    if (!system_program_folder(program, sizeof program))
        return false;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        snprintf(folder, size, "%s/%s", program, places[i]);
        found = is_there(folder);
    }
    return found;
}

int sample_load(struct sample *s, const char *folder)
{
    struct npy *const arrays[4] = {&s->q, &s->k, &s->v, &s->expected};
    static const char *const names[4] = {"q.npy", "k.npy", "v.npy", "expected.npy"};
    int code = CLI_OK;
    memset(s, 0, sizeof *s);
    if (folder != NULL)
        snprintf(s->folder, sizeof s->folder, "%s", folder);
    else if (!find_folder(s->folder, sizeof s->folder))
        return cli_fail("run", CLI_FAILED, "--demo",
                        "the sample data is neither next to the program nor in " CLATTN_DATA
                        " from there: --data names its folder");
    for (int i = 0; i < 4 && code == CLI_OK; i++)
        code = load_array(s, names[i], arrays[i]);
    code = code != CLI_OK ? code : take_sizes(s);
    code = code != CLI_OK ? code : load_lengths(s);
    code = code != CLI_OK ? code : load_tokens(s);
    if (code != CLI_OK)
        sample_free(s);
    return code;
}

void sample_free(struct sample *s)
{
    npy_free(&s->q);
    npy_free(&s->k);
    npy_free(&s->v);
    npy_free(&s->expected);
    free(s->text);
    s->text = NULL;
}
