/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without libFuzzer: DRIVER CORPUS COUNT [FIRST]. Runs each file of the folder CORPUS, then COUNT
 * mutations with numbers from FIRST (default 0). Mutation k of a corpus is deterministic, so a failure can be repeated.
 * With FUZZ_TRACE set, each number is printed before the run of its mutation; the last number is that of the failed
 * run.
 */
#define _GNU_SOURCE

#include "core/numbers/random.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_SEEDS = 256, MOST_BYTES = 1 << 16 };

typedef struct seed {
    uint8_t *data;
    size_t size;
} seed;

static seed seeds[MOST_SEEDS];
static int seed_count;

/* ---- Seeds --------------------------------------------------------------------------------------------------- */

static void load_seed(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(MOST_BYTES);
    if (!file || !data || seed_count == MOST_SEEDS) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    seeds[seed_count++] = (seed){data, fread(data, 1, MOST_BYTES, file)};
    fclose(file);
}

static void load_seeds(const char *folder)
{
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.') load_seed(folder, names[i]->d_name);
        free(names[i]);
    }
    if (count >= 0) free(names);
    if (seed_count == 0) {
        fprintf(stderr, "%s: no seeds\n", folder);
        exit(1);
    }
}

/* ---- Mutations ----------------------------------------------------------------------------------------------- */

/* Random numbers of one mutation. */
typedef struct dice {
    mrc_rng rng;
    uint64_t thrown;
} dice;

static size_t throw_below(dice *self, size_t sides)
{
    return sides ? (size_t)(mrc_random_uniform(self->rng, self->thrown++) * (double)sides) : 0;
}

/* Byte strings with a meaning in the file formats. */
static const struct {
    const char *bytes;
    size_t size;
} words[] = {{"\0", 1},
             {"\xff", 1},
             {"\x7f", 1},
             {"\x80", 1},
             {"\0\0\0\0", 4},
             {"\xff\xff\xff\xff", 4},
             {"\x7f\xff\xff\xff", 4},
             {"\n", 1},
             {"\r\n", 2},
             {"\"", 1},
             {"\"\"", 2},
             {",", 1},
             {";", 1},
             {"\t", 1},
             {" ", 1},
             {":", 1},
             {"#", 1},
             {"-", 1},
             {"0", 1},
             {"1e999", 5},
             {"1e-999", 6},
             {"nan", 3},
             {"inf", 3},
             {"9999999999", 10},
             {"4294967296", 10},
             {"9223372036854775807", 19},
             {"'", 1},
             {"(", 1},
             {")", 1},
             {"True", 4}};

static size_t insert(uint8_t *data, size_t size, size_t at, const void *bytes, size_t count)
{
    if (size + count > MOST_BYTES) return size;
    uint8_t copy[MOST_BYTES]; /* `bytes` may point into `data` */
    memcpy(copy, bytes, count);
    memmove(data + at + count, data + at, size - at);
    memcpy(data + at, copy, count);
    return size + count;
}

static size_t change(uint8_t *data, size_t size, dice *random)
{
    size_t at = throw_below(random, size), rest = size - at, length = 1 + throw_below(random, rest < 16 ? rest : 16);
    size_t word = throw_below(random, sizeof words / sizeof *words);
    if (length > rest) length = rest;
    switch (throw_below(random, 8)) {
        case 0:
            if (size) data[at] ^= (uint8_t)(1 << throw_below(random, 8));
            return size;
        case 1:
            if (size) data[at] = (uint8_t)throw_below(random, 256);
            return size;
        case 2: memmove(data + at, data + at + length, rest - length); return size - length;
        case 3: return insert(data, size, at, data + throw_below(random, size - length + 1), length);
        case 4: return insert(data, size, at, words[word].bytes, words[word].size);
        case 5:
            if (words[word].size <= rest) memcpy(data + at, words[word].bytes, words[word].size);
            return size;
        case 6: return throw_below(random, 4) ? size : at;
        default: {
            const seed *other = &seeds[throw_below(random, (size_t)seed_count)];
            size_t from = throw_below(random, other->size);
            return insert(data, at, at, other->data + from, other->size - from);
        }
    }
}

/* Run the target on a copy in a buffer of exactly that size, so that a sanitizer detects reads past its end. */
static void run_target(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) exit(1);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int count, char **arguments)
{
    static uint8_t data[MOST_BYTES];
    if (count < 3) {
        fprintf(stderr, "usage: %s CORPUS COUNT [FIRST]\n", arguments[0]);
        return 2;
    }
    long first = count > 3 ? strtol(arguments[3], NULL, 10) : 0, end = first + strtol(arguments[2], NULL, 10);
    load_seeds(arguments[1]);
    for (int i = 0; i < seed_count; i++) run_target(seeds[i].data, seeds[i].size);
    for (long k = first; k < end; k++) {
        dice random = {.rng = {(uint64_t)k, 77}};
        const seed *from = &seeds[throw_below(&random, (size_t)seed_count)];
        size_t size = from->size;
        memcpy(data, from->data, size);
        for (size_t changes = 1 + throw_below(&random, 6); changes > 0; changes--) size = change(data, size, &random);
        if (getenv("FUZZ_TRACE")) fprintf(stderr, "%ld\n", k);
        run_target(data, size);
    }
    for (int i = 0; i < seed_count; i++) free(seeds[i].data);
    return 0;
}
