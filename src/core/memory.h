/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory through the context's allocator, counted; and an arena for scratch that lives as long as a call. */
#ifndef MRC_CORE_MEMORY_H
#define MRC_CORE_MEMORY_H

#include "core/context.h"

#include <stdbool.h>

enum { MRC_ALIGNMENT = 64 }; /* a cache line, and the widest vector */

/* a * b and a + b of sizes that are >= 0; false if the result does not fit an int64_t. */
static inline bool mrc_multiply(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}
static inline bool mrc_add(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

/* The smallest multiple of unit that is >= size. */
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
 * count * size bytes, 64-byte aligned, not cleared. `out` is the address of a pointer to whatever lies there. On
 * failure that pointer is NULL and the status is MERCER_ERROR_MEMORY with a message naming `what`. A count of 0 gives a
 * valid pointer. Only the thread inside the Mercer call may allocate.
 */
mercer_status mrc_alloc(mercer_context *context, void *out, int64_t count, int64_t size, const char *what);
/* The same, cleared to zero. */
mercer_status mrc_alloc_zero(mercer_context *context, void *out, int64_t count, int64_t size, const char *what);
/* Moves what the pointer at `block` has to a block of so many bytes, of which the first `used` are copied. Nothing
   changes if that fails. */
mercer_status mrc_move(mercer_context *context, void *block, int64_t used, int64_t bytes, const char *what);
/* Releases what mrc_alloc gave; NULL is fine. And several, in this order. */
void mrc_free(mercer_context *context, void *memory);
void mrc_free_list(mercer_context *context, void *const *list, size_t count);
#define MRC_FREE_ALL(context, ...)                                              \
    do {                                                                        \
        void *const mrc_list[] = {__VA_ARGS__};                                 \
        mrc_free_list(context, mrc_list, sizeof mrc_list / sizeof mrc_list[0]); \
    } while (0)

/*
 * A variable that owns something: `release`, which gets its address, is called when the function returns, whichever way
 * it does. A pointer that was handed on is NULL by then.
 *
 *     MRC_OWNED(mrc_release_dataset) mercer_dataset *part = NULL;
 */
#define MRC_OWNED(release) __attribute__((cleanup(release)))
/* Defines a `release` of pointers, which calls `end`. */
#define MRC_RELEASE(release, type, end)         \
    static inline void release(type **variable) \
    {                                           \
        end(*variable);                         \
    }
/* Of other folders; named here because every folder releases what it owns. */
void mrc_model_free(mercer_model *model);
void mrc_fitting_free(mercer_fitting *self);
void mrc_dataset_free(mercer_dataset *dataset);
void mrc_preprocess_free(mercer_preprocess *self);
MRC_RELEASE(mrc_release_dataset, mercer_dataset, mrc_dataset_free)
MRC_RELEASE(mrc_release_preprocess, mercer_preprocess, mrc_preprocess_free)
MRC_RELEASE(mrc_release_model, mercer_model, mrc_model_free)
MRC_RELEASE(mrc_release_fitting, mercer_fitting, mrc_fitting_free)

/*
 * What a function takes for the time of a call: released when it returns, whichever way it does.
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
    } things[MRC_SCOPE_MOST]; /* released last first */
} mrc_scope;
#define MRC_SCOPE(name, of) MRC_OWNED(mrc_scope_close) mrc_scope name = {.context = (of)}

mercer_status mrc_scope_alloc(mrc_scope *scope, void *out, int64_t count, int64_t size, const char *what);
mercer_status mrc_scope_alloc_zero(mrc_scope *scope, void *out, int64_t count, int64_t size, const char *what);
/* Anything else, which `release` ends. Where the scope is full it does so at once, and the call fails. */
mercer_status mrc_scope_add(mrc_scope *scope, void (*release)(void *owner, void *thing), void *owner, void *thing);
void mrc_scope_close(mrc_scope *scope);
/* What the scope has is somebody else's from now on. */
static inline void mrc_scope_keep(mrc_scope *scope)
{
    scope->count = 0;
}

/* Texts as a list in one block of memory: pointers first, then the texts. `out` is the address of a pointer. */
mercer_status mrc_copy_texts(mercer_context *context, void *out, const char *const *texts, int64_t count);
/* Sets *repeated to a text that occurs more than once in the list, or to NULL. Costs a sort. */
mercer_status mrc_find_repeated(mercer_context *context, const char *const *texts, int64_t count,
                                const char **repeated);

/* Counts bytes of the context that lie on a device: allocated if positive, released if negative. */
void mrc_count_bytes(mercer_context *context, int64_t bytes);

/* The raw form, for making the context itself: no counting, no message. NULL on failure. */
void *mrc_raw_alloc(const mercer_allocator *allocator, size_t bytes);
void mrc_raw_free(const mercer_allocator *allocator, void *memory);

/*
 * An arena: one block that grows to the largest need seen and is reused from call to call, so that hot loops do not
 * allocate. Use: reserve the total once, then push pieces, reset when the call ends. Growing happens only in reserve
 * (when nothing is pushed), so pieces never move.
 */
typedef struct mrc_arena {
    mercer_context *context;
    char *block;
    int64_t capacity;
    int64_t used;
} mrc_arena;

void mrc_arena_init(mrc_arena *arena, mercer_context *context);
mercer_status mrc_arena_reserve(mrc_arena *arena, int64_t bytes);
/* bytes rounded up to the alignment; NULL if the reservation was too small (a programming error). */
void *mrc_arena_push(mrc_arena *arena, int64_t bytes);
void mrc_arena_reset(mrc_arena *arena);
void mrc_arena_destroy(mrc_arena *arena);

enum { MRC_BYTES_TEXT = 24 };
/* "1.3 GB", the form of bytes in all messages; returns text. */
const char *mrc_bytes_text(char text[MRC_BYTES_TEXT], int64_t bytes);

#endif
