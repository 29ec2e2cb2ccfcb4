/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k-means: finds p centers z_j with a small mean squared distance between rows and their nearest centers.
 *
 *   E = (1/n) sum_i min_j |x_i - z_j|^2            X (n, d), Z (p, d)
 *
 *   seeds     k-means++ (kmeans_seed.c), which also assigns the rows to the seeds
 *   round     N_j <- f N_j,  z_j <- (N_j z_j + sum of the m_j rows assigned to j) / (N_j + m_j),  N_j += m_j;
 *             then the rows are reassigned: one search for nearest rows on the backend's fused tiles
 *
 *   Lloyd        all rows in each round, f = 0: E never increases. Ends when E decreases by at most 1e-4 of its value.
 *   mini-batch   a new random batch in each round (Sculley, 2010), f = (rows seen before it / rows seen with it)^3. The
 *                weight of a row grows with the cube of the number of rows seen before it: rows that were assigned to
 *                poor early centers are forgotten, and many later rows are averaged. E is measured on batches that have
 *                not been used yet.
 *
 * Centers without rows (N_j < 1/64) are moved to rows, which lowers E. The first such center moves to the row that is
 * farthest from its nearest center, the next to the second farthest row, and so on. If all distances are 0, the center
 * stays where it is.
 *
 * One thread sums the rows of a cluster in double, in their order, so that results are bitwise identical for any number
 * of threads. If X is u8, the search uses centers rounded to u8 as long as rounding is harmless: distances are then
 * exact integers, and the search is several times as fast. Rounding moves a center by a squared distance of d/12 on
 * average, which must be at most 1/1000 of E.
 *
 * Defaults: Lloyd for up to 65,536 rows or 32 rows per center. It makes n / (12 p) rounds, but at least 3 and at most
 * 20, because centers with fewer rows converge sooner. For more rows, 30 mini-batches of 16 rows per center, which
 * reach the same E as Lloyd with far fewer rows.
 *
 * On a device the current rows are stored once for all searches if they take at most a quarter of the device's free
 * memory; means are computed on the host. Centers equal those of a host backend, except if rounding decides between two
 * nearly equidistant centers.
 *
 * Cost of a round with m rows: 2 m p d flops for the search, m d additions. Memory: p d numbers, 32 m bytes, and m d
 * for the rows of a mini-batch.
 */
#include "centers/kmeans.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/stage_progress.h"
#include "core/threads/parallel.h"

#include <string.h>

enum {
    BATCH_ROWS = 16,     /* rows of a mini-batch per center */
    LEAST_BATCH = 16384, /* smallest mini-batch in rows */
    BATCH_ROUNDS = 30,
    LLOYD_ROWS = 65536, /* number of rows up to which every round uses all rows */
    LLOYD_LEAST = 3,
    LLOYD_MOST = 20,
    LLOYD_SHARE = 12, /* rounds: n / (12 p), between 3 and 20 */
    BYTES_PER_ROW = 32
};
/* TOLERANCE: Lloyd ends when E decreases by at most this share. ROUNDING_SHARE: limit of the rounding error relative to
   E. EMPTY: a center with a smaller weight counts as empty. The top of the file explains all three. */
static const double TOLERANCE = 1e-4;
static const double ROUNDING_SHARE = 1e-3;
static const double EMPTY = 1.0 / 64;

mercer_status mrc_kmeans_notify(mrc_kmeans_state *self, int64_t done, double error)
{
    const mercer_center_options *options = self->selection->options;
    bool enough = mrc_progress(options->progress, options->progress_user, "centers", done, self->rounds + 1, error);
    /* also without a callback on this rank: another rank may have a callback */
    if (self->selection->comm) MRC_TRY(mrc_comm_any(self->selection->comm, enough, &enough));
    if (enough) self->stopped = true;
    return MERCER_OK;
}

mercer_status mrc_kmeans_search(mrc_kmeans_state *self, const mrc_search *search, int32_t *nearest, double *distances)
{
    mrc_comm *comm = self->selection->comm;
    if (!comm || comm->ranks == 1) return self->backend->ops->nearest_rows(self->backend, search, nearest, distances);
    int64_t first, rows;
    mrc_piece *numbers = comm->pieces + comm->ranks;
    mrc_share(search->x->rows, comm->ranks, comm->rank, &first, &rows);
    mercer_matrix own = mrc_rows(search->x, first, rows);
    mrc_search part = *search;
    part.x = &own;
    MRC_TRY(self->backend->ops->nearest_rows(self->backend, &part, nearest + first, distances + first));
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < comm->ranks; r++) {
            mrc_share(search->x->rows, comm->ranks, r, &first, &rows);
            numbers[r] = pass == 0 ? (mrc_piece){nearest + first, rows * (int64_t)sizeof *nearest}
                                   : (mrc_piece){distances + first, rows * (int64_t)sizeof *distances};
        }
        MRC_TRY(mrc_comm_gather(comm, MRC_HOST, numbers));
    }
    return MERCER_OK;
}

/* ---- Sizes and memory ---------------------------------------------------------------------------------------- */

/* Returns the type of the centers while they are computed. */
static mercer_dtype real_type(const mrc_center_selection *selection)
{
    return selection->wide || selection->x->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
}

/* Returns the bytes of the buffers whose size does not depend on the number of rows per round. */
static int64_t fixed_bytes(const mrc_kmeans_state *self)
{
    int64_t real = mrc_dtype_size(real_type(self->selection)), bytes = self->selection->x->dtype == MERCER_U8;
    return self->p * (self->d * (real + bytes) + 3 * 8) + self->context->threads * 3 * self->d * 8 +
           mrc_kmeans_seed_bytes(self->selection);
}

/* Chooses Lloyd or mini-batches, and the rows per round: by options->batch or the defaults, but not more than fit into
   memory. */
static mercer_status choose_batch(mrc_kmeans_state *self)
{
    const mercer_center_options *options = self->selection->options;
    int64_t n = self->n, row = self->d * mrc_dtype_size(self->selection->x->dtype) + BYTES_PER_ROW;
    int64_t free_bytes = options->memory - fixed_bytes(self);
    int64_t chosen = mrc_max(LEAST_BATCH, BATCH_ROWS * self->p);
    self->lloyd = options->batch < 0 || options->batch >= n;
    if (options->batch == 0 && n <= mrc_max(LLOYD_ROWS, 2 * chosen)) self->lloyd = n * BYTES_PER_ROW <= free_bytes;
    self->batch = self->lloyd ? n : options->batch > 0 ? options->batch : mrc_min(chosen, n);
    self->capacity = mrc_min(n, mrc_max(self->batch, BATCH_ROWS * self->p));
    if (!self->lloyd) {
        self->capacity = mrc_min(self->capacity, mrc_max(self->p, free_bytes / row));
        self->batch = mrc_min(self->batch, self->capacity);
    }
    int64_t needed = self->capacity * (self->lloyd ? BYTES_PER_ROW : row) + fixed_bytes(self);
    if (needed <= options->memory) return MERCER_OK;
    return mrc_fail(
        self->context, MERCER_ERROR_MEMORY,
        "k-means of %lld centers needs %lld bytes, but the memory limit is %lld; raise the limit or use fewer centers",
        (long long)self->p, (long long)needed, (long long)options->memory);
}

static int64_t chosen_rounds(const mrc_kmeans_state *self)
{
    if (!self->lloyd) return BATCH_ROUNDS;
    return mrc_max(LLOYD_LEAST, mrc_min(LLOYD_MOST, self->n / (LLOYD_SHARE * self->p)));
}

static mercer_status allocate_kmeans(mrc_kmeans_state *self, mrc_scope *scope)
{
    const mercer_matrix *x = self->selection->x;
    int64_t p = self->p, d = self->d, rows = self->capacity;
    struct {
        void *out; /* address of a pointer */
        int64_t count, size;
        bool wanted;
    } const all[] = {
        {&self->sample.data, rows * d, mrc_dtype_size(x->dtype), !self->lloyd},
        {&self->z.data, p * d, mrc_dtype_size(self->z.dtype), true},
        {&self->z_u8.data, p * d, 1, x->dtype == MERCER_U8},
        {&self->nearest, rows, 4, true},
        {&self->fresh_nearest, rows, 4, true},
        {&self->distances, rows, 8, true},
        {&self->fresh_distances, rows, 8, true},
        {&self->order, rows, 8, true},
        {&self->weights, p, 8, true},
        {&self->starts, p + 1, 8, true},
        {&self->seeds, p, 8, true},
        {&self->scratch, self->context->threads * 3 * d, 8, true},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].wanted) MRC_TRY(mrc_scope_alloc(scope, all[i].out, all[i].count, all[i].size, "k-means"));
    self->sums = (double *)(void *)self->order; /* share memory: `order` is not used while seeding */
    mrc_backend *backend = self->backend;
    if (mrc_backend_memory(backend) == MRC_HOST) return MERCER_OK;
    if (rows * d * mrc_dtype_size(x->dtype) > backend->ops->free_memory(backend) / 4) return MERCER_OK;
    return mrc_scope_matrix(scope, backend, &self->buffer, rows, d, x->dtype, "the rows of k-means");
}

/* ---- Rows and their centers ---------------------------------------------------------------------------------- */

/* Copies the current rows to the device, after they have changed. */
static mercer_status bring_rows(mrc_kmeans_state *self)
{
    self->on_device = self->x;
    if (!self->buffer.data) return MERCER_OK;
    self->on_device = mrc_rows(&self->buffer, 0, self->x.rows);
    return self->backend->ops->copy(self->backend, &self->on_device, &self->x);
}

/* Makes the next `count` rows in random order the current rows. When all rows of X have been taken, it continues with
   all rows in another random order. For Lloyd the current rows are always X. */
static mercer_status take_rows(mrc_kmeans_state *self, int64_t count)
{
    uint64_t seed = self->selection->options->seed;
    if (self->lloyd) {
        if (self->x.data) return MERCER_OK;
        self->x = *self->selection->x;
        return bring_rows(self);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at = self->rows_seen + i;
        mrc_rng rng = {seed, MRC_RANDOM_BATCHES + (uint64_t)(at / self->n)};
        self->order[i] = mrc_random_permutation(rng, self->n, at % self->n);
    }
    self->rows_seen += count;
    self->x = mrc_rows(&self->sample, 0, count);
    MRC_TRY(self->backend->ops->gather_rows(self->backend, &self->x, self->selection->x, self->order));
    return bring_rows(self);
}

/* Finds the nearest center of each row; sets *error to the mean squared distance. */
static mercer_status assign(mrc_kmeans_state *self, double *error)
{
    mrc_search search = {.x = &self->on_device,
                         .z = self->rounded ? &self->z_u8 : &self->z,
                         .wide = self->selection->wide && !self->rounded};
    MRC_TRY(mrc_kmeans_search(self, &search, self->nearest, self->distances));
    double sum = 0;
    for (int64_t i = 0; i < self->x.rows; i++) sum += self->distances[i];
    *error = sum / (double)self->x.rows;
    return MERCER_OK;
}

/* Restores the heap from entry `at` down. The farthest row is on top; of equally far rows, the one with the lowest
   number. */
static void sift(const mrc_kmeans_state *self, int64_t *heap, int64_t size, int64_t at)
{
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
        const double *far = self->distances;
        if (child + 1 < size && (far[heap[child + 1]] > far[heap[child]] ||
                                 (far[heap[child + 1]] == far[heap[child]] && heap[child + 1] < heap[child])))
            child++;
        if (far[heap[at]] > far[heap[child]] || (far[heap[at]] == far[heap[child]] && heap[at] < heap[child])) return;
        int64_t swap = heap[at];
        heap[at] = heap[child], heap[child] = swap;
    }
}

/* Gives each center without rows the row that is farthest from its own center. counts (p): rows assigned to each
   center. */
static void reseed_empty(mrc_kmeans_state *self, int64_t *counts)
{
    int64_t *heap = self->order, size = 0;
    for (int64_t j = 0; j < self->p; j++) {
        if (self->weights[j] + (double)counts[j] >= EMPTY) continue;
        if (size == 0) { /* first empty center: build the heap */
            for (size = 0; size < self->x.rows; size++) heap[size] = size;
            for (int64_t i = size / 2; i-- > 0;) sift(self, heap, size, i);
        }
        int64_t row = heap[0];
        if (!(self->distances[row] > 0)) return; /* all other distances are 0 too */
        counts[self->nearest[row]]--;
        counts[j]++;
        self->weights[j] = 0; /* earlier rows belong to the old position of the center */
        self->nearest[row] = (int32_t)j;
        self->distances[row] = 0;
        self->selection->report.reseeded++;
        sift(self, heap, size, 0);
    }
}

/* ---- Means --------------------------------------------------------------------------------------------------- */

/* Moves center j to z + sum of (row - z) / (N + number of rows), or to the mean of its rows if N = 0. This form leaves
   z exactly unchanged if all rows equal it. */
static void update_center(void *argument, int64_t j, int worker)
{
    mrc_kmeans_state *self = argument;
    int64_t d = self->d, first = self->starts[j], end = self->starts[j + 1];
    double *sum = self->scratch + 3 * d * worker, *row = sum + d, *center = row + d;
    if (first == end) return;
    bool fresh = !(self->weights[j] > 0);
    self->weights[j] += (double)(end - first);
    mrc_load_row_f64(&self->z, j, center);
    for (int64_t k = 0; k < d; k++) {
        center[k] = fresh ? 0 : center[k];
        sum[k] = 0;
    }
    for (int64_t i = first; i < end; i++) {
        mrc_load_row_f64(&self->x, self->order[i], row);
        for (int64_t k = 0; k < d; k++) sum[k] += row[k] - center[k];
    }
    for (int64_t k = 0; k < d; k++) center[k] += sum[k] / self->weights[j];
    mrc_store_row_f64(&self->z, j, center);
    if (self->z_u8.data) mrc_store_row_f64(&self->z_u8, j, center);
}

void mrc_kmeans_update(mrc_kmeans_state *self, double keep)
{
    int64_t p = self->p, *starts = self->starts, *counts = starts + 1;
    for (int64_t j = 0; j < p; j++) self->weights[j] *= keep;
    memset(starts, 0, (size_t)(p + 1) * sizeof *starts);
    for (int64_t i = 0; i < self->x.rows; i++) counts[self->nearest[i]]++;
    reseed_empty(self, counts);
    /* Stable counting sort: counts become start positions, which advance with every row. At the end counts[j], which is
       starts[j + 1], is the start of the rows of center j + 1. */
    int64_t sum = 0;
    for (int64_t j = 0; j < p; j++) {
        int64_t count = counts[j];
        counts[j] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < self->x.rows; i++) self->order[counts[self->nearest[i]]++] = i;
    mrc_parallel_for(self->context->threads, p, update_center, self);
}

/* ---- Rounds -------------------------------------------------------------------------------------------------- */

/* Returns whether centers can be rounded to bytes: the rounding error is at most ROUNDING_SHARE of the mean squared
   distance. */
static bool rounding_is_harmless(const mrc_kmeans_state *self, double error)
{
    return self->z_u8.data && (double)self->d / 12 <= ROUNDING_SHARE * error;
}

/* Draws the seeds, and copies them to the centers. Sets *error to E of the seeds. */
static mercer_status begin_kmeans(mrc_kmeans_state *self, double *error)
{
    MRC_TRY(take_rows(self, self->capacity));
    MRC_TRY(mrc_kmeans_seed(self));
    double sum = 0;
    for (int64_t i = 0; i < self->x.rows; i++) sum += self->distances[i];
    *error = sum / (double)self->x.rows;
    for (int64_t j = 0; j < self->p; j++) {
        mrc_load_row_f64(&self->x, self->seeds[j], self->scratch);
        mrc_store_row_f64(&self->z, j, self->scratch);
        if (self->z_u8.data) mrc_store_row_f64(&self->z_u8, j, self->scratch);
        self->weights[j] = 0;
    }
    return MERCER_OK;
}

static mercer_status run_rounds(mrc_kmeans_state *self, double *error)
{
    MRC_TRY(begin_kmeans(self, error));
    if (!self->stopped) MRC_TRY(mrc_kmeans_notify(self, 1, *error));
    for (int64_t t = 1; t <= self->rounds && !self->stopped; t++) {
        double before = *error, old = (double)(self->rows_seen - self->x.rows) / (double)mrc_max(self->rows_seen, 1);
        self->rounded = rounding_is_harmless(self, before);
        mrc_kmeans_update(self, self->lloyd ? 0 : old * old * old);
        MRC_TRY(take_rows(self, self->batch));
        MRC_TRY(assign(self, error));
        self->selection->report.iterations = t;
        mrc_log(self->context, MERCER_LOG_DEBUG, "k-means: round %lld, mean squared distance %g", (long long)t, *error);
        MRC_TRY(mrc_kmeans_notify(self, 1 + t, *error));
        if (self->lloyd && !(before - *error > TOLERANCE * before)) break;
    }
    return MERCER_OK;
}

mercer_status mrc_kmeans(mrc_center_selection *selection, const mercer_matrix *centers)
{
    const mercer_matrix *x = selection->x;
    mrc_kmeans_state self = {.selection = selection,
                             .backend = selection->backend,
                             .context = selection->backend->context,
                             .n = x->rows,
                             .d = x->cols,
                             .p = selection->p};
    MRC_TRY(choose_batch(&self));
    self.rounds = selection->options->iterations > 0 ? selection->options->iterations : chosen_rounds(&self);
    self.sample = mrc_view(NULL, self.capacity, self.d, x->dtype);
    self.z = mrc_view(NULL, self.p, self.d, real_type(selection));
    self.z_u8 = mrc_view(NULL, self.p, self.d, MERCER_U8);
    if (!self.lloyd)
        mrc_log(self.context, MERCER_LOG_INFO, "k-means: %lld of %lld rows per round", (long long)self.batch,
                (long long)self.n);
    MRC_SCOPE(scope, self.context);
    MRC_TRY(allocate_kmeans(&self, &scope));
    MRC_TRY(run_rounds(&self, &selection->report.error));
    for (int64_t j = 0; j < centers->rows; j++) {
        mrc_load_row_f64(&self.z, selection->first + j, self.scratch);
        mrc_store_row_f64(centers, j, self.scratch);
    }
    return MERCER_OK;
}
