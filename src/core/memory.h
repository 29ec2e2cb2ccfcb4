/* SPDX-License-Identifier: BSD-3-Clause */
/* Counted memory from the context's allocator, scopes that release it, and an arena for the scratch space of a call. */
#ifndef MRC_CORE_MEMORY_H
#define MRC_CORE_MEMORY_H

#include "core/context.h"

#include <stdbool.h>

enum { MRC_ALIGNMENT = 64 }; /* bytes: a cache line, and the widest vector (AVX-512) */

/* Compute a * b and a + b of sizes >= 0. Return false if the result does not fit an int64_t. */
static inline bool mrc_multiply(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}
static inline bool mrc_add(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

/* Returns the smallest multiple of unit that is >= size. */
static inline int64_t mrc_round_up(int64_t size, int64_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static inline int64_t mrc_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t mrc_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/*
 * Allocates count * size bytes, 64-byte aligned, not cleared. `out` is the address of a pointer of any type. On failure
 * that pointer is NULL and the status is MERCER_ERROR_MEMORY, with `what` in the message. A count of 0 gives a valid
 * pointer. Only the thread inside the Mercer call may allocate, not worker threads.
 */
mercer_status mrc_alloc(mercer_context *context, void *out, int64_t count, int64_t size, const char *what);
/* Like mrc_alloc, with all bytes zero. */
mercer_status mrc_alloc_zero(mercer_context *context, void *out, int64_t count, int64_t size, const char *what);
/* Replaces the block whose pointer is at `block` by a new one of `bytes` bytes and copies the first `used` bytes. On
   failure the old block stays. */
mercer_status mrc_move(mercer_context *context, void *block, int64_t used, int64_t bytes, const char *what);
/* Release one block from mrc_alloc, or a list of blocks in order; NULL is ignored. */
void mrc_free(mercer_context *context, void *memory);
void mrc_free_list(mercer_context *context, void *const *list, size_t count);
#define MRC_FREE_ALL(context, ...)                                              \
    do {                                                                        \
        void *const mrc_list[] = {__VA_ARGS__};                                 \
        mrc_free_list(context, mrc_list, sizeof mrc_list / sizeof mrc_list[0]); \
    } while (0)

/*
 * Marks a pointer variable that owns an object: `release` is called with the variable's address when the function
 * returns. Set the variable to NULL to pass ownership on.
 *
 *     MRC_OWNED(mrc_release_dataset) mercer_dataset *part = NULL;
 */
#define MRC_OWNED(release) __attribute__((cleanup(release)))
/* Defines a `release` function for MRC_OWNED pointers, which passes the pointer to `end`. */
#define MRC_RELEASE(release, type, end)         \
    static inline void release(type **variable) \
    {                                           \
        end(*variable);                         \
    }
/* Functions of other folders, declared here so that any folder can use them with MRC_OWNED. */
void mrc_model_free(mercer_model *model);
void mrc_fitting_free(mercer_fitting *self);
void mrc_dataset_free(mercer_dataset *dataset);
void mrc_preprocess_free(mercer_preprocess *self);
MRC_RELEASE(mrc_release_dataset, mercer_dataset, mrc_dataset_free)
MRC_RELEASE(mrc_release_preprocess, mercer_preprocess, mrc_preprocess_free)
MRC_RELEASE(mrc_release_model, mercer_model, mrc_model_free)
MRC_RELEASE(mrc_release_fitting, mercer_fitting, mrc_fitting_free)

/*
 * The resources of a call, which are released when the enclosing function returns.
 *
 *     MRC_SCOPE(scope, context);
 *     MRC_TRY(mrc_scope_alloc(&scope, &signs, p, sizeof *signs, "random signs"));
 */
enum { MRC_SCOPE_MOST = 48 };
typedef struct mrc_scope {
    mercer_context *context;
    int count;
    struct {
        void (*release)(void *owner, void *thing);
        void *owner, *thing;
    } things[MRC_SCOPE_MOST]; /* in order of creation; released in reverse */
} mrc_scope;
#define MRC_SCOPE(name, of) MRC_OWNED(mrc_scope_close) mrc_scope name = {.context = (of)}

mercer_status mrc_scope_alloc(mrc_scope *scope, void *out, int64_t count, int64_t size, const char *what);
mercer_status mrc_scope_alloc_zero(mrc_scope *scope, void *out, int64_t count, int64_t size, const char *what);
/* Adds any other resource, which `release` frees. If the scope is full, releases the resource and fails. */
mercer_status mrc_scope_add(mrc_scope *scope, void (*release)(void *owner, void *thing), void *owner, void *thing);
void mrc_scope_close(mrc_scope *scope);
/* Empties the scope without releasing its resources: the caller owns them from now on. */
static inline void mrc_scope_disown(mrc_scope *scope)
{
    scope->count = 0;
}

/* Copies a list of strings to one block of memory: pointers first, then the strings. `out` is the address of a pointer;
   the caller frees the block. */
mercer_status mrc_copy_texts(mercer_context *context, void *out, const char *const *texts, int64_t count);
/* Sets *repeated to a string that occurs more than once in the list, or to NULL. Cost: a sort. */
mercer_status mrc_find_repeated(mercer_context *context, const char *const *texts, int64_t count,
                                const char **repeated);

/* Adds device memory to the context's counters: bytes > 0 when allocated, < 0 when released. */
void mrc_count_bytes(mercer_context *context, int64_t bytes);

/* Allocate and release memory without counting and without messages, for example for the context itself. mrc_raw_alloc
   returns NULL on failure. */
void *mrc_raw_alloc(const mercer_allocator *allocator, size_t bytes);
void mrc_raw_free(const mercer_allocator *allocator, void *memory);

/*
 * An arena: one block that grows to the largest size reserved and is reused from call to call, so that hot loops do not
 * allocate. Use: reserve the total once, push pieces, reset when the call ends. The block grows only in reserve (when
 * nothing is pushed), so pieces never move.
 */
typedef struct mrc_arena {
    mercer_context *context;
    char *block;
    int64_t capacity;
    int64_t used;
} mrc_arena;

void mrc_arena_init(mrc_arena *arena, mercer_context *context);
mercer_status mrc_arena_reserve(mrc_arena *arena, int64_t bytes);
/* Returns a piece of the block; its size is rounded up to the alignment. NULL if the reservation was too small, which
   is a programming error. */
void *mrc_arena_push(mrc_arena *arena, int64_t bytes);
void mrc_arena_reset(mrc_arena *arena);
void mrc_arena_destroy(mrc_arena *arena);

enum { MRC_BYTES_TEXT = 24 };
/* Formats a number of bytes for messages ("1.3 GB"); returns text. */
const char *mrc_bytes_text(char text[MRC_BYTES_TEXT], int64_t bytes);

#endif
