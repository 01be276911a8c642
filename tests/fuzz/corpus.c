/* SPDX-License-Identifier: Apache-2.0
 * The main function of a fuzzer without libFuzzer: every input of a corpus, then changes of them from a fixed seed. A corpus is
 * a text: an input a line, \xHH, \n and \\ for bytes that have no character of their own; lines that begin with # and empty
 * ones count for nothing. fuzz_NAME NAME.corpus              runs it fuzz_NAME NAME.corpus FOLDER       writes the inputs as
 * files, as libFuzzer wants them */
#include "fuzz.h"

#include "random.h"

enum { LARGEST = 65536, CHANGES = 400, MOST_INPUTS = 256 };

struct input {
    uint8_t *bytes;
    size_t size;
};

static struct input inputs[MOST_INPUTS];
static size_t input_count;

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    fuzz_require(at != NULL);
    return (int)(at - digits);
}

static void read_line(const char *line, size_t length)
{
    struct input *in = &inputs[input_count++];
    fuzz_require(input_count < MOST_INPUTS);
    in->bytes = malloc(length);
    fuzz_require(in->bytes != NULL);
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)line[i];
        if (byte == '\\') {
            const char kind = line[++i];
            byte = (uint8_t)(kind == 'n' ? '\n' : kind);
            if (kind == 'x') {
                byte = (uint8_t)(digit(line[i + 1]) * 16 + digit(line[i + 2]));
                i += 2;
            }
        }
        in->bytes[in->size++] = byte;
    }
}

static void read_corpus(const char *path)
{
    static char line[LARGEST];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be opened\n", path);
        exit(2);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        const size_t length = strcspn(line, "\n");
        line[length] = '\0';
        if (length > 0 && line[0] != '#')
            read_line(line, length);
    }
    fclose(file);
}

static void write_inputs(const char *folder)
{
    for (size_t i = 0; i < input_count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%03zu", folder, i);
        FILE *file = fopen(path, "wb");
        fuzz_require(file != NULL);
        fuzz_require(fwrite(inputs[i].bytes, 1, inputs[i].size, file) == inputs[i].size);
        fuzz_require(fclose(file) == 0);
    }
}

/* An allocation of exactly that size, so that AddressSanitizer sees a read past its end. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    fuzz_require(copy != NULL);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* One to four changes: a byte, an end, a piece of another input. */
static size_t change(uint64_t *seed, const struct input *from, uint8_t *to)
{
    static const char telling[] = "0123456789-=,.'(){} \n\0\xff\x80";
    size_t size = from->size;
    memcpy(to, from->bytes, size);
    for (uint64_t changes = 1 + random_below(seed, 4); changes > 0; changes--) {
        const size_t at = size > 0 ? (size_t)random_below(seed, size) : 0;
        const struct input *other = &inputs[random_below(seed, input_count)];
        switch (size > 0 ? random_below(seed, 5) : 4) {
        case 0:
            to[at] = (uint8_t)random_next(seed);
            break;
        case 1:
            to[at] = (uint8_t)telling[random_below(seed, sizeof telling - 1)];
            break;
        case 2: /* a byte less */
            memmove(to + at, to + at + 1, --size - at);
            break;
        case 3:
            size = at;
            break;
        default:
            for (size_t i = (size_t)random_below(seed, other->size + 1); i < other->size && size < LARGEST; i++)
                to[size++] = other->bytes[i];
            break;
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    static uint8_t changed[LARGEST];
    uint64_t seed = 1;
    fuzz_require(argc == 2 || argc == 3);
    read_corpus(argv[1]);
    if (argc == 3) {
        write_inputs(argv[2]);
    } else {
        for (size_t i = 0; i < input_count; i++) {
            run(inputs[i].bytes, inputs[i].size);
            for (int n = 0; n < CHANGES; n++)
                run(changed, change(&seed, &inputs[i], changed));
        }
        printf("%zu inputs, %d changes of each\n", input_count, CHANGES);
    }
    for (size_t i = 0; i < input_count; i++)
        free(inputs[i].bytes);
    return 0;
}
