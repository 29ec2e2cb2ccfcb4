/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k-means++ seeding (Arthur and Vassilvitskii, 2007), many centers at a time, with the same distribution as one at a
 * time.
 *
 *   first seed: a random row; each further one: row i with probability D_i / sum D,
 *   D_i = min over seeds s of |x_i - s|^2
 *
 * One pass over the rows per seed would be limited by memory bandwidth. Instead b candidates are drawn from the same D
 * and considered in turn: candidate i, with the squared distance D'_i <= D_i to the nearest seed, including seeds of
 * this round, is accepted with probability D'_i / D_i. Accepted candidates are then distributed by D', as if D had been
 * updated after every seed. One search among the accepted candidates updates D for the next round. b grows with the
 * number of seeds: while there are few seeds, each new one changes D a lot, and most candidates would be rejected.
 *
 * X (m, d), p seeds. Cost: 2 m p d flops for the searches, about p b d for the distances among candidates, 2 p / b
 * passes over D. Memory: b (d + b). If D is 0 everywhere, X has fewer than p distinct rows, and random rows become the
 * remaining seeds.
 */
#include "centers/kmeans.h"

#include "core/matrix.h"
#include "core/memory.h"

enum { MOST_CANDIDATES = 240 }; /* candidates of a round; they fit one tile of the fused search */

typedef struct seeding {
    mrc_kmeans_state *all;
    int64_t have;             /* seeds so far */
    uint64_t draws;           /* number of random numbers used */
    mercer_matrix candidates; /* (b, d) of X's dtype */
    int64_t rows[MOST_CANDIDATES];
    double *pairs; /* (b, b) distances among candidates */
} seeding;

int64_t mrc_kmeans_seed_bytes(const mrc_center_selection *selection)
{
    int64_t most = mrc_min(MOST_CANDIDATES, selection->p);
    return most * (selection->x->cols * mrc_dtype_size(selection->x->dtype) + most * 8);
}

/* Updates D and the nearest seeds for the new seeds first .. have - 1, whose rows are in `points`. */
static mercer_status update_distances(seeding *self, const mercer_matrix *points, int64_t first)
{
    mrc_kmeans_state *all = self->all;
    mrc_search search = {.x = &all->on_device, .z = points, .wide = all->selection->wide};
    MRC_TRY(mrc_kmeans_search(all, &search, all->fresh_nearest, all->fresh_distances));
    for (int64_t i = 0; i < all->x.rows; i++) {
        if (first > 0 && !(all->fresh_distances[i] < all->distances[i])) continue;
        all->distances[i] = all->fresh_distances[i];
        all->nearest[i] = (int32_t)(first + all->fresh_nearest[i]);
    }
    return MERCER_OK;
}

/* Considers candidates in turn and appends the accepted candidates to the seeds. Returns the number of accepted
   candidates, at least 1: the first candidate is always accepted. */
static int64_t accept_candidates(seeding *self, int64_t count)
{
    mrc_kmeans_state *all = self->all;
    int64_t accepted[MOST_CANDIDATES] = {0}, taken = 0;
    mrc_rng rng = {all->selection->options->seed, MRC_RANDOM_ACCEPT};
    for (int64_t i = 0; i < count && self->have + taken < all->p; i++) {
        double before = all->distances[self->rows[i]], now = before;
        for (int64_t j = 0; j < taken; j++) {
            double distance = self->pairs[i * count + accepted[j]];
            now = distance * distance < now ? distance * distance : now;
        }
        if (mrc_random_uniform(rng, self->draws + (uint64_t)i) * before < now) accepted[taken++] = i;
    }
    for (int64_t j = 0; j < taken; j++) all->seeds[self->have + j] = self->rows[accepted[j]];
    self->draws += (uint64_t)count;
    return taken;
}

/* Draws `count` candidates, accepts some of them as seeds, and updates D. */
static mercer_status one_round(seeding *self, int64_t count)
{
    mrc_kmeans_state *all = self->all;
    mrc_backend *backend = all->backend;
    mrc_rng rng = {all->selection->options->seed, MRC_RANDOM_DRAW};
    for (int64_t i = 0; i < count; i++)
        self->rows[i] = mrc_draw_row(all->sums, all->x.rows, mrc_random_uniform(rng, self->draws + (uint64_t)i));
    mercer_matrix points = mrc_rows(&self->candidates, 0, count),
                  pairs = mrc_view(self->pairs, count, count, MERCER_F64);
    MRC_TRY(backend->ops->gather_rows(backend, &points, &all->x, self->rows));
    if (count > 1) MRC_TRY(mrc_distances(backend, 2, &points, &points, &pairs));
    int64_t first = self->have, taken = accept_candidates(self, count);
    points = mrc_rows(&self->candidates, 0, taken);
    MRC_TRY(backend->ops->gather_rows(backend, &points, &all->x, all->seeds + first));
    self->have += taken;
    return update_distances(self, &points, first);
}

static mercer_status draw_seeds(seeding *self)
{
    mrc_kmeans_state *all = self->all;
    int64_t m = all->x.rows;
    all->seeds[0] = mrc_random_below((mrc_rng){all->selection->options->seed, MRC_RANDOM_CHOICE}, 0, m);
    mercer_matrix first = mrc_rows(&all->x, all->seeds[0], 1);
    self->have = 1;
    MRC_TRY(update_distances(self, &first, 0));
    while (self->have < all->p && !all->stopped) {
        double sum = mrc_sum_weights(all->distances, m, all->sums);
        MRC_TRY(mrc_kmeans_notify(all, 0, sum / (double)m));
        if (!(sum > 0) || all->stopped) break;
        MRC_TRY(one_round(self, mrc_min(mrc_min(MOST_CANDIDATES, self->have / 2 + 1), all->p - self->have)));
    }
    if (self->have < all->p) {
        mrc_log(all->context, MERCER_LOG_INFO, "k-means: %lld of %lld initial centers are random rows%s",
                (long long)(all->p - self->have), (long long)all->p,
                all->stopped ? ": stopped" : ", because there are no more distinct rows");
        mrc_choose_fill(all->selection->options->seed, m, self->have, all->p, all->seeds, all->fresh_nearest);
    }
    return MERCER_OK;
}

mercer_status mrc_kmeans_seed(mrc_kmeans_state *all)
{
    int64_t most = mrc_min(MOST_CANDIDATES, all->p);
    seeding self = {.all = all, .candidates = mrc_view(NULL, most, all->d, all->x.dtype)};
    MRC_SCOPE(scope, all->context);
    MRC_TRY(mrc_scope_alloc(&scope, &self.candidates.data, most * all->d, mrc_dtype_size(all->x.dtype),
                            "candidates for centers"));
    MRC_TRY(mrc_scope_alloc(&scope, &self.pairs, most * most, sizeof *self.pairs, "distances"));
    return draw_seeds(&self);
}
