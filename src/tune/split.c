/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rows a search fits to and which it judges on. Rows are drawn without return in a random order that depends on
 * the seed alone, so the first ones of a fold are a random part of it.
 *
 *   HOLDOUT     a fifth is held back, at most half as many as are fitted to
 *   KFOLD       five folds
 *   LOO, GCV    one
 */
#include "tune/tune.h"

#include "core/numbers/random.h"

#include <string.h>

enum { KFOLDS = 5, HELD_SHARE = 5, LOO_ROWS = 50, KFOLD_ROWS = 4000 };
#define RANDOM_SPLIT UINT64_C(0x73706c6974)

static const char *const names[] = {
    [MRC_HOLDOUT] = "holdout", [MRC_KFOLD] = "kfold", [MRC_LOO] = "loo", [MRC_GCV] = "gcv"};

bool mrc_criterion_find(const char *name, const mercer_dataset *data, mrc_criterion *out)
{
    int64_t n = data ? data->rows : KFOLD_ROWS;
    *out = n < LOO_ROWS ? MRC_LOO : n < KFOLD_ROWS ? MRC_KFOLD : MRC_HOLDOUT;
    if (!name || strcmp(name, "auto") == 0) return true;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) {
            if (n >= LOO_ROWS) *out = (mrc_criterion)i;
            return true;
        }
    return false;
}

const char *mrc_criterion_name(mrc_criterion criterion)
{
    return names[criterion];
}

mercer_status mrc_split_make(mrc_split *out, const mercer_dataset *data, mrc_criterion criterion, int64_t most,
                             uint64_t seed)
{
    mrc_rng rng = {seed, RANDOM_SPLIT};
    int64_t n = data->rows, held = criterion == MRC_HOLDOUT ? mrc_min(mrc_max(1, n / HELD_SHARE), most / 2) : 0;
    int64_t fitted = mrc_min(n - held, most), at = 0;
    *out = (mrc_split){.count = fitted + held};
    if (fitted < 1) return mrc_fail(data->context, MERCER_ERROR_DATA, "tune: %lld rows are too few", (long long)n);
    MRC_TRY(mrc_alloc(data->context, &out->rows, out->count, sizeof *out->rows, "row numbers"));
    int folds = criterion == MRC_KFOLD ? (int)mrc_min(KFOLDS, fitted) : 1;
    for (int f = 0; f < folds; f++) {
        int64_t first = at;
        for (int64_t i = f; i < fitted; i += folds) out->rows[at++] = mrc_random_permutation(rng, n, held + i);
        out->folds[f] = (mrc_span){first, at - first};
    }
    out->fold_count = folds;
    if (held == 0) return MERCER_OK;
    for (int64_t i = 0; i < held; i++) out->rows[at + i] = mrc_random_permutation(rng, n, i);
    out->folds[out->fold_count++] = (mrc_span){at, held};
    return MERCER_OK;
}
