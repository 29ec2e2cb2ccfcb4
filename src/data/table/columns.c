/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching of column names. Both lists are sorted, because tables may have thousands of columns. Cost: O(n log n)
   comparisons of names. */
#include "data/table/columns.h"

#include "core/memory.h"
#include "core/spec.h"
#include "data/files/input.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct entry {
    const char *name;
    int64_t index; /* index in its list; -1: already matched */
} entry;

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Sorts names; equal names keep their order. */
static mercer_status sort_names(mrc_scope *scope, const char *const *names, int64_t count, entry **out)
{
    MRC_TRY(mrc_scope_alloc(scope, out, count, sizeof **out, "names of columns"));
    for (int64_t i = 0; i < count; i++) (*out)[i] = (entry){names[i], i};
    qsort(*out, (size_t)count, sizeof(entry), compare_entries);
    return MERCER_OK;
}

/* Returns the end of the run of equal names that begins at `first`. */
static int64_t end_of_run(const entry *list, int64_t count, int64_t first)
{
    int64_t end = first + 1;
    while (end < count && strcmp(list[end].name, list[first].name) == 0) end++;
    return end;
}

/* Returns the unmatched name that was probably meant, because it differs only in case or in a few letters; NULL if
   there is none. */
static const char *nearest_left(const char *name, const entry *have, int64_t count)
{
    const char *best = NULL;
    int fewest = INT_MAX;
    for (int64_t i = 0; i < count; i++) {
        if (have[i].index < 0) continue;
        if (strcasecmp(name, have[i].name) == 0) return have[i].name;
        mrc_consider_name(name, have[i].name, &best, &fewest);
    }
    return best;
}

static mercer_status fail_missing(mercer_context *context, const char *what, const char *name, const entry *have,
                                  int64_t count)
{
    char excerpt[MRC_EXCERPT_CHARS], other[MRC_EXCERPT_CHARS];
    const char *near = nearest_left(name, have, count);
    mrc_excerpt(excerpt, name, (int64_t)strlen(name));
    if (!near)
        return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: has no column '%s', which the model was trained on", what,
                        excerpt);
    return mrc_fail(context, MERCER_ERROR_MISMATCH,
                    "%s: has no column '%s', which the model was trained on; did you mean '%s'?", what, excerpt,
                    mrc_excerpt(other, near, (int64_t)strlen(near)));
}

/* Matches two sorted lists. Matched entries get index = -1, so that nearest_left finds only unmatched names. places[j]
   is -1 for a wanted name that is missing. */
static mercer_status match_sorted(mercer_context *context, const char *what, entry *have, int64_t have_count,
                                  const entry *want, int64_t want_count, int64_t *places)
{
    for (int64_t j = 0, i = 0, end; j < want_count; j = end) {
        end = end_of_run(want, want_count, j);
        while (i < have_count && strcmp(have[i].name, want[j].name) < 0) i++;
        bool found = i < have_count && strcmp(have[i].name, want[j].name) == 0;
        int64_t most = found ? end_of_run(have, have_count, i) - i : 0;
        if (most > end - j) {
            char excerpt[MRC_EXCERPT_CHARS];
            mrc_excerpt(excerpt, want[j].name, (int64_t)strlen(want[j].name));
            return mrc_fail(context, MERCER_ERROR_MISMATCH,
                            "%s: has %lld columns named '%s', but the model was trained on %lld", what, (long long)most,
                            excerpt, (long long)(end - j));
        }
        for (int64_t k = 0; k < end - j; k++) {
            places[want[j + k].index] = k < most ? have[i + k].index : -1;
            if (k < most) have[i + k].index = -1;
        }
        i += most;
    }
    return MERCER_OK;
}

mercer_status mrc_columns_match(mercer_context *context, const char *what, const char *const *found,
                                int64_t found_count, const char *const *wanted, int64_t wanted_count, int64_t *places)
{
    entry *have, *want;
    int64_t *matched;
    MRC_SCOPE(scope, context);
    MRC_TRY(sort_names(&scope, found, found_count, &have));
    MRC_TRY(sort_names(&scope, wanted, wanted_count, &want));
    MRC_TRY(mrc_scope_alloc(&scope, &matched, wanted_count, sizeof *matched, "columns"));
    MRC_TRY(match_sorted(context, what, have, found_count, want, wanted_count, matched));
    for (int64_t j = 0; j < wanted_count; j++)
        if (matched[j] < 0) return fail_missing(context, what, wanted[j], have, found_count);
    memcpy(places, matched, (size_t)wanted_count * sizeof *places);
    return MERCER_OK;
}
