/* SPDX-License-Identifier: BSD-3-Clause */
/* Counted allocation, scopes and the arena. Each block has a 64-byte header with the block's size, so that a release
   can subtract it from the count. */
#define _DEFAULT_SOURCE
#include "core/memory.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Blocks of 8 MiB or more request huge pages: with pages of 4 KiB a cache of several GB would cause a million page
   faults, and TLB misses whenever the cache is read. */
enum { LARGE_PAGE = 2 << 20, LARGE_BLOCK = 8 << 20 };

#ifdef MADV_HUGEPAGE
/*
 * In a virtual machine the host may have to supply each huge page at its first use. In one such machine this took 4.3
 * ms per huge page (2.2 s per GB); pages of 4 KiB took 0.3 s per GB. If the page only has to be cleared, the first use
 * takes 0.1 to 0.3 ms. So the first pages of each block are timed, and after a slow page the process requests small
 * pages.
 */
static const double slow_page = 1e-3; /* seconds */
static atomic_bool huge_pages_slow;   /* affects only the speed */

static double thread_seconds(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)) return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Writes to the first two huge pages of a new block. Returns the shorter of the two processor times in seconds, so that
   one interruption does not count. */
static double first_use(volatile char *memory)
{
    double start = thread_seconds();
    memory[0] = 0;
    double middle = thread_seconds();
    memory[LARGE_PAGE] = 0;
    return fmin(middle - start, thread_seconds() - middle);
}

/* Requests huge or small pages for a new block. This is only advice, so failures are ignored. */
static void advise_pages(char *memory, size_t bytes)
{
    bytes = bytes / LARGE_PAGE * LARGE_PAGE;
    if (!huge_pages_slow) {
        madvise(memory, bytes, MADV_HUGEPAGE);
        if (first_use(memory) > slow_page) huge_pages_slow = true;
    }
    if (huge_pages_slow) madvise(memory, bytes, MADV_NOHUGEPAGE);
}
#endif

/* The default allocator, for contexts whose options set none. */
static void *default_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *memory = NULL;
    bool large = bytes >= LARGE_BLOCK;
    if (posix_memalign(&memory, large ? LARGE_PAGE : alignment, bytes)) return NULL;
#ifdef MADV_HUGEPAGE
    if (large) advise_pages(memory, bytes);
#endif
    return memory;
}

static void default_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

void *mrc_raw_alloc(const mercer_allocator *allocator, size_t bytes)
{
    if (!allocator->allocate) return default_allocate(NULL, bytes, MRC_ALIGNMENT);
    return allocator->allocate(allocator->user, bytes, MRC_ALIGNMENT);
}

void mrc_raw_free(const mercer_allocator *allocator, void *memory)
{
    if (!memory) return;
    if (!allocator->release)
        default_release(NULL, memory);
    else
        allocator->release(allocator->user, memory);
}

mercer_status mrc_copy_texts(mercer_context *context, void *out, const char *const *texts, int64_t count)
{
    int64_t bytes = count * (int64_t)sizeof(char *);
    char **list;
    for (int64_t i = 0; i < count; i++) bytes += (int64_t)strlen(texts[i]) + 1;
    MRC_TRY(mrc_alloc(context, &list, bytes, 1, "names"));
    memcpy(out, &list, sizeof list);
    char *at = (char *)(list + count);
    for (int64_t i = 0; i < count; i++) {
        size_t size = strlen(texts[i]) + 1;
        list[i] = memcpy(at, texts[i], size);
        at += size;
    }
    return MERCER_OK;
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

mercer_status mrc_find_repeated(mercer_context *context, const char *const *texts, int64_t count, const char **repeated)
{
    const char **sorted = NULL;
    *repeated = NULL;
    if (count < 2) return MERCER_OK;
    MRC_TRY(mrc_alloc(context, &sorted, count, sizeof *sorted, "names"));
    memcpy((void *)sorted, texts, (size_t)count * sizeof *sorted);
    qsort((void *)sorted, (size_t)count, sizeof *sorted, compare_texts);
    for (int64_t i = 1; i < count && !*repeated; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0) *repeated = sorted[i];
    mrc_free(context, (void *)sorted);
    return MERCER_OK;
}

void mrc_count_bytes(mercer_context *context, int64_t bytes)
{
    context->bytes_now += bytes;
    context->bytes_peak = mrc_max(context->bytes_peak, context->bytes_now);
    context->bytes_high = mrc_max(context->bytes_high, context->bytes_now);
}

/* The first 8 bytes of the header hold the size of the block including the header; the other bytes are unused. The
   header is as large as the alignment, so that the memory after the header is aligned as well. */
mercer_status mrc_alloc(mercer_context *context, void *out, int64_t count, int64_t size, const char *what)
{
    void *memory = NULL;
    /* `out` points to a pointer of any type; all object pointers have the same representation */
    memcpy(out, &memory, sizeof memory);
    int64_t bytes, total;
    if (!mrc_multiply(count, size, &bytes) || !mrc_add(bytes, MRC_ALIGNMENT, &total) || count < 0)
        return mrc_fail(context, MERCER_ERROR_MEMORY, "%s: %lld x %lld bytes exceed the address space", what,
                        (long long)count, (long long)size);
    char *block = mrc_raw_alloc(&context->allocator, (size_t)total);
    if (!block)
        return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory: %lld bytes for %s", (long long)bytes, what);
    memcpy(block, &total, sizeof total);
    mrc_count_bytes(context, total);
    memory = block + MRC_ALIGNMENT;
    memcpy(out, &memory, sizeof memory);
    return MERCER_OK;
}

mercer_status mrc_alloc_zero(mercer_context *context, void *out, int64_t count, int64_t size, const char *what)
{
    void *memory;
    MRC_TRY(mrc_alloc(context, out, count, size, what));
    memcpy(&memory, out, sizeof memory);
    memset(memory, 0, (size_t)(count * size));
    return MERCER_OK;
}

void mrc_free(mercer_context *context, void *memory)
{
    if (!memory) return;
    char *block = (char *)memory - MRC_ALIGNMENT;
    int64_t total;
    memcpy(&total, block, sizeof total);
    mrc_count_bytes(context, -total);
    mrc_raw_free(&context->allocator, block);
}

mercer_status mrc_move(mercer_context *context, void *block, int64_t used, int64_t bytes, const char *what)
{
    void *from, *to;
    memcpy(&from, block, sizeof from);
    MRC_TRY(mrc_alloc(context, &to, bytes, 1, what));
    if (used > 0) memcpy(to, from, (size_t)used);
    mrc_free(context, from);
    memcpy(block, &to, sizeof to);
    return MERCER_OK;
}

void mrc_free_list(mercer_context *context, void *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) mrc_free(context, list[i]);
}

mercer_status mrc_scope_add(mrc_scope *scope, void (*release)(void *owner, void *thing), void *owner, void *thing)
{
    if (scope->count == MRC_SCOPE_MOST) {
        release(owner, thing);
        return mrc_fail(scope->context, MERCER_ERROR_INTERNAL, "a call needs more than %d resources", MRC_SCOPE_MOST);
    }
    scope->things[scope->count].release = release;
    scope->things[scope->count].owner = owner;
    scope->things[scope->count++].thing = thing;
    return MERCER_OK;
}

static void release_memory(void *context, void *memory)
{
    mrc_free(context, memory);
}

static mercer_status add_memory(mrc_scope *scope, const void *out)
{
    void *memory;
    memcpy(&memory, out, sizeof memory);
    return mrc_scope_add(scope, release_memory, scope->context, memory);
}

mercer_status mrc_scope_alloc(mrc_scope *scope, void *out, int64_t count, int64_t size, const char *what)
{
    MRC_TRY(mrc_alloc(scope->context, out, count, size, what));
    return add_memory(scope, out);
}

mercer_status mrc_scope_alloc_zero(mrc_scope *scope, void *out, int64_t count, int64_t size, const char *what)
{
    MRC_TRY(mrc_alloc_zero(scope->context, out, count, size, what));
    return add_memory(scope, out);
}

void mrc_scope_close(mrc_scope *scope)
{
    for (int i = scope->count - 1; i >= 0; i--)
        scope->things[i].release(scope->things[i].owner, scope->things[i].thing);
    scope->count = 0;
}

void mrc_arena_init(mrc_arena *arena, mercer_context *context)
{
    *arena = (mrc_arena){.context = context};
}

mercer_status mrc_arena_reserve(mrc_arena *arena, int64_t bytes)
{
    arena->used = 0;
    if (bytes <= arena->capacity) return MERCER_OK;
    /* Release the old block first: its contents belong to a call that has ended, and holding both would raise the
       peak. */
    mrc_arena_destroy(arena);
    MRC_TRY(mrc_alloc(arena->context, &arena->block, bytes, 1, "scratch tiles"));
    atomic_signal_fence(memory_order_seq_cst);
    arena->capacity = bytes;
    return MERCER_OK;
}

void *mrc_arena_push(mrc_arena *arena, int64_t bytes)
{
    int64_t size = mrc_round_up(bytes, MRC_ALIGNMENT);
    if (size > arena->capacity - arena->used) return NULL;
    void *piece = arena->block + arena->used;
    arena->used += size;
    return piece;
}

/* The block stays allocated for the next call. */
void mrc_arena_reset(mrc_arena *arena)
{
    arena->used = 0;
}

void mrc_arena_destroy(mrc_arena *arena)
{
    /* Clear the pointer first: another thread may fork at any moment, and the child must not see a released block. */
    char *block = arena->block;
    arena->block = NULL;
    arena->capacity = arena->used = 0;
    atomic_signal_fence(memory_order_seq_cst);
    mrc_free(arena->context, block);
}

const char *mrc_bytes_text(char text[MRC_BYTES_TEXT], int64_t bytes)
{
    /* an int64_t holds at most 9.2 EB */
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;
    /* 999.5 would be printed as 1000, and 99.95 as 100.0. */
    while (value >= 999.5) value /= 1000, unit++;
    snprintf(text, MRC_BYTES_TEXT, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}
