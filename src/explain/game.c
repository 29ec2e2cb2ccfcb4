/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums over the centers of the Shapley values of a kernel that is a mixture of products.
 *
 *   phi_k = sum_j alpha_j sum_i w_i (a_ijk - b_ijk) integral_0^1 prod_{l != k} (b_ijl + t (a_ijl - b_ijl)) dt
 *
 * with a_ijk = exp(-v_i |x - z_j|_k), b_ijk the same function for a background row, |.|_k the sum over the features of
 * column k, and the mean over the background rows. A Gauss-Legendre rule with m nodes integrates polynomials of degree
 * 2 m - 1 exactly; the integrand has degree columns - 1. Fewer nodes are used where a bound shows that they are enough:
 * on the ellipse of radius r around [0, 1] the integrand times its missing factor is at most
 *
 *   M = prod_l ((a_l + b_l) / 2 + |a_l - b_l| (r + 1/r) / 4)
 *
 * so the Chebyshev coefficients are at most 2 M r^-n. The rule is exact below n = 2 m, odd n cancel by symmetry, and
 * the error of the term is at most sum_{even n >= 2 m} 2 M r^-n (1/2) (2 + 2/3) < 3.2 M r^(-2 m); the factor
 * |a_k - b_k| is at most 1 / 1.2 of the missing factor. The rule is the smallest with w_i 3 M r^(-2 m) <=
 * MRC_GAME_NEGLIGIBLE, for the best of three radii. A term whose M is that small is left out.
 *
 * The interaction of columns k and l is the second mixed difference of the game, averaged in the same way:
 *
 *   I_kl = sum_j alpha_j sum_i w_i (a_ijk - b_ijk) (a_ijl - b_ijl) integral_0^1 prod_{m != k, l} (...) dt
 *
 * A piece of parallel work is a group of rows and a chunk of centers, whose sizes depend on the sizes of the problem
 * only; sums of chunks are added in order. A row's values depend on that row only, so they are the same for any split
 * of the rows.
 *
 * Cost per row, background row, center and column: about 5 flops per term and node, and an exp per term that is shared
 * by the rows of a group. Scratch space per thread: about 2 MiB, or a few times lanes x features for wide tables.
 */
#include "explain/game_block.h"
#include "explain/shapley.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <math.h>
#include <string.h>

#define FAR 31.0 /* a term of a mixture below exp(-31) < MRC_GAME_NEGLIGIBLE / 2 is left out */

enum {
    LANES = MRC_GAME_LANES,
    GROUP_ROWS = 16,         /* largest number of rows of a group */
    GROUP_BYTES = 256 << 10, /* limit in bytes of the sums of a group of rows; the limit for background rows is four
                                times as large */
    CHUNK_CENTERS = 1024,
    MOST_CHUNKS = 64,
    PARTIAL_BYTES = 16 << 20, /* limit in bytes of `partial` */
};

/* ---- Rules ------------------------------------------------------------------------------------------------------- */

/* Fills a rule of n nodes by Newton's method on the Legendre polynomial. */
static void fill_rule(int64_t n, double *nodes, double *weights)
{
    const double pi = 3.14159265358979323846;
    for (int64_t i = 0; i < n; i++) {
        double x = cos(pi * ((double)i + 0.75) / ((double)n + 0.5)), slope = 1;
        for (int step = 0; step < 100; step++) {
            double before = 1, value = x;
            for (int64_t k = 2; k <= n; k++) {
                double next = ((double)(2 * k - 1) * x * value - (double)(k - 1) * before) / (double)k;
                before = value, value = next;
            }
            slope = (double)n * (x * value - before) / (x * x - 1);
            double change = value / slope;
            x -= change;
            if (fabs(change) < 1e-15) break;
        }
        nodes[i] = (1 + x) / 2;
        weights[i] = 1 / ((1 - x * x) * slope * slope);
    }
}

/* Makes rules with 1, 2, ..., 12 nodes, and then rules with about a quarter more nodes each time. The next larger rule
   therefore costs little more than needed. The last rule has ceil(columns / 2) nodes, which is exact for any row. */
mercer_status mrc_gauss_rules(mercer_shap *shap)
{
    int64_t exact = mrc_max(1, (shap->columns + 1) / 2), total = 0, counts[MRC_GAUSS_RULES], rules = 0;
    double *numbers;
    for (int64_t n = 1; n < exact && rules < MRC_GAUSS_RULES - 1; n = n < 12 ? n + 1 : n + n / 4)
        total += counts[rules++] = n;
    total += counts[rules++] = exact;
    MRC_TRY(mrc_scope_alloc(&shap->scope, &numbers, 2 * total, sizeof *numbers, "quadrature rules"));
    for (int64_t i = 0; i < rules; i++, numbers += 2 * counts[i - 1]) {
        fill_rule(counts[i], numbers, numbers + counts[i]);
        shap->rules[i] = (mrc_gauss_rule){counts[i], numbers, numbers + counts[i]};
    }
    shap->rule_count = rules;
    return MERCER_OK;
}

/* ---- Blocks of centers ------------------------------------------------------------------------------------------- */

typedef struct game_job {
    const mercer_shap *shap;
    const mrc_shap_member *member;
    const mrc_game_ops *ops;
    const mercer_matrix *points;         /* (m, width) f64 */
    int64_t group_rows, background_rows; /* largest numbers of rows that are processed together */
    int64_t chunks, chunk_centers;
    bool pairs;           /* interactions: the values of a row and output are (columns, columns) */
    int64_t size;         /* number of values of a row */
    double *partial;      /* (m, chunks, size) */
    double *scratch;      /* (threads, scratch_size) */
    int64_t scratch_size; /* size of a thread's scratch space, in doubles */
} game_job;

/* A block of centers with the scratch space of a thread. Arrays of sums and factors are (rows, columns, lanes). */
typedef struct game_block {
    const game_job *job;
    int64_t first_row, rows; /* first row and number of rows of the group */
    int64_t chunk;
    double *z, *alpha; /* (width, lanes), (outputs, lanes) */
    double *x_sums, *x_decay, *b_sums, *b_decay;
    double *before, *factor, *integral;
    double *least; /* (group_rows, background_rows) results of least_sum for each pair of rows */
} game_block;

/* Returns the number of doubles that open_block takes from the scratch space of a thread. */
static int64_t scratch_doubles(const game_job *job)
{
    const mercer_shap *shap = job->shap;
    int64_t sums = shap->columns * LANES;
    return (job->member->background.cols + shap->outputs) * LANES +
           (2 * job->group_rows + job->background_rows + 4) * sums + job->group_rows * job->background_rows;
}

/* Takes `count` doubles from the front of the scratch space. */
static double *take(double **from, int64_t count)
{
    double *taken = *from;
    *from += count;
    return taken;
}

/* Returns the block of piece `index`, which is a group of rows and a chunk of centers; consecutive pieces have the same
   rows. worker: index of the thread whose scratch space is used. */
static game_block open_block(const game_job *job, int64_t index, int worker)
{
    int64_t group = index / job->chunks, sums = job->shap->columns * LANES;
    double *space = job->scratch + worker * job->scratch_size;
    game_block block = {.job = job, .first_row = group * job->group_rows, .chunk = index % job->chunks};
    block.rows = mrc_min(job->group_rows, job->points->rows - block.first_row);
    block.z = take(&space, job->member->background.cols * LANES);
    block.alpha = take(&space, job->shap->outputs * LANES);
    block.x_sums = take(&space, job->group_rows * sums), block.x_decay = take(&space, job->group_rows * sums);
    block.b_sums = take(&space, job->background_rows * sums), block.b_decay = take(&space, sums);
    block.before = take(&space, sums), block.factor = take(&space, sums), block.integral = take(&space, sums);
    block.least = take(&space, job->group_rows * job->background_rows);
    return block;
}

/* Loads centers and weights first .. end - 1; the other lanes repeat the last center with weight 0. */
static void load_centers(const game_block *block, int64_t first, int64_t end)
{
    const mercer_model *model = block->job->member->model;
    for (int64_t lane = 0; lane < LANES; lane++) {
        int64_t j = mrc_min(first + lane, end - 1);
        for (int64_t l = 0; l < model->centers.cols; l++) block->z[l * LANES + lane] = mrc_load(&model->centers, j, l);
        for (int64_t c = 0; c < model->weights.cols; c++)
            block->alpha[c * LANES + lane] = first + lane < end ? mrc_load(&model->weights, j, c) : 0;
    }
}

/* Computes the sums of |x - z|^power per column (count, columns, lanes), for rows first .. first + count - 1 and the
   loaded centers. All terms of the mixture use them. */
static void find_sums(const game_block *block, const mercer_matrix *rows, int64_t first, int64_t count, double *sums)
{
    const game_job *job = block->job;
    int64_t columns = job->shap->columns;
    for (int64_t i = 0; i < count; i++)
        job->ops->differences(columns, rows->cols, job->member->owner, job->member->power, mrc_row(rows, first + i),
                              block->z, sums + i * columns * LANES);
}

/* Returns the rule for factors a and b, or NULL if the term is negligible. */
static const mrc_gauss_rule *choose_rule(const game_job *job, double weight, const double *a, const double *b)
{
    static const double radius[MRC_GAME_RADII] = MRC_GAME_RADIUS;
    const mercer_shap *shap = job->shap;
    const mrc_gauss_rule *exact = &shap->rules[shap->rule_count - 1];
    double bounds[MRC_GAME_RADII], needed = (double)exact->count;
    if (exact->count <= 3) return exact;
    job->ops->bound(shap->columns, a, b, bounds);
    for (int i = 0; i < MRC_GAME_RADII; i++) {
        double share = 3 * weight * bounds[i] / MRC_GAME_NEGLIGIBLE(job->member->mixture.count);
        if (share <= 1) return NULL;
        needed = fmin(needed, log(share) / (2 * log(radius[i])));
    }
    const mrc_gauss_rule *rule = shap->rules;
    while (rule < exact && (double)rule->count < needed) rule++;
    return rule;
}

/* Adds the interactions of a term for each pair of a column and a later column. values (outputs, columns, columns). */
static void add_interactions(const game_block *block, double weight, const mrc_gauss_rule *rule, const double *a,
                             const double *b, double *values)
{
    const game_job *job = block->job;
    int64_t columns = job->shap->columns;
    double alpha[LANES];
    for (int64_t k = 0; k + 1 < columns; k++) {
        int64_t next = (k + 1) * LANES;
        job->ops->integrate_pairs(columns, k, rule->count, rule->nodes, rule->weights, a, b, block->before,
                                  block->factor, block->integral);
        for (int64_t c = 0; c < job->shap->outputs; c++) {
            for (int64_t j = 0; j < LANES; j++)
                alpha[j] = block->alpha[c * LANES + j] * (a[k * LANES + j] - b[k * LANES + j]);
            job->ops->collect(columns - k - 1, weight, alpha, a + next, b + next, block->integral + next,
                              values + (c * columns + k) * columns + k + 1);
        }
    }
}

/* Adds a term of the mixture for one row and one background row. */
static void add_term(const game_block *block, int64_t row, int64_t term, const double *a, const double *b)
{
    const game_job *job = block->job;
    const mercer_shap *shap = job->shap;
    double weight = job->member->mixture.weight[term];
    const mrc_gauss_rule *rule = choose_rule(job, weight, a, b);
    if (!rule) return;
    double *values = job->partial + ((block->first_row + row) * job->chunks + block->chunk) * job->size;
    weight /= (double)shap->rows;
    if (job->pairs) {
        add_interactions(block, weight, rule, a, b, values);
        return;
    }
    job->ops->integrate(shap->columns, rule->count, rule->nodes, rule->weights, a, b, block->before, block->factor,
                        block->integral);
    for (int64_t c = 0; c < shap->outputs; c++)
        job->ops->collect(shap->columns, weight, block->alpha + c * LANES, a, b, block->integral,
                          values + c * shap->columns);
}

/* Returns whether a term is not negligible for row i and background row r of the current part. */
static bool is_near(const game_block *block, int64_t term, int64_t i, int64_t r)
{
    const mrc_mixture *mixture = &block->job->member->mixture;
    return mixture->count == 1 || block->least[i * block->job->background_rows + r] * mixture->rate[term] < FAR;
}

/* Adds a term of the mixture for all rows of the group and `count` background rows. The factors of each row and of each
   background row are computed once, and only if a pair needs them. */
static void add_pairs(const game_block *block, int64_t term, int64_t count)
{
    const game_job *job = block->job;
    int64_t columns = job->shap->columns, size = columns * LANES;
    double rate = job->member->mixture.rate[term];
    for (int64_t i = 0; i < block->rows; i++) {
        bool near = false;
        for (int64_t r = 0; r < count; r++) near = near || is_near(block, term, i, r);
        if (near) job->ops->decay(columns, rate, block->x_sums + i * size, block->x_decay + i * size);
    }
    for (int64_t r = 0; r < count; r++) {
        bool ready = false;
        for (int64_t i = 0; i < block->rows; i++) {
            if (!is_near(block, term, i, r)) continue;
            if (!ready) job->ops->decay(columns, rate, block->b_sums + r * size, block->b_decay);
            ready = true;
            add_term(block, i, term, block->x_decay + i * size, block->b_decay);
        }
    }
}

/* Adds a block of centers for all background rows, in parts of up to job->background_rows rows. */
static void add_block(const game_block *block)
{
    const game_job *job = block->job;
    const mrc_shap_member *member = job->member;
    int64_t columns = job->shap->columns, size = columns * LANES;
    find_sums(block, job->points, block->first_row, block->rows, block->x_sums);
    for (int64_t first = 0; first < member->background.rows; first += job->background_rows) {
        int64_t count = mrc_min(job->background_rows, member->background.rows - first);
        find_sums(block, &member->background, first, count, block->b_sums);
        for (int64_t i = 0; i < block->rows && member->mixture.count > 1; i++)
            for (int64_t r = 0; r < count; r++)
                block->least[i * job->background_rows + r] =
                    job->ops->least_sum(columns, block->x_sums + i * size, block->b_sums + r * size);
        for (int64_t term = 0; term < member->mixture.count; term++) add_pairs(block, term, count);
    }
}

/* A task of mrc_parallel_for: a group of rows and a chunk of centers. Tasks write different parts of job->partial. */
static void add_chunk(void *argument, int64_t index, int worker)
{
    const game_job *job = argument;
    game_block block = open_block(job, index, worker);
    int64_t size = job->size;
    int64_t first = block.chunk * job->chunk_centers,
            end = mrc_min(first + job->chunk_centers, job->member->model->centers.rows);
    for (int64_t i = 0; i < block.rows; i++)
        memset(job->partial + ((block.first_row + i) * job->chunks + block.chunk) * size, 0,
               (size_t)size * sizeof *job->partial);
    for (; first < end; first += LANES) {
        load_centers(&block, first, mrc_min(first + LANES, end));
        add_block(&block);
    }
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Adds the values of all chunks, in the order of the chunks, times `share` and the scale of the output, to `values`. */
static void add_partials(const game_job *job, double share, const double *scale, const mercer_matrix *values)
{
    int64_t size = job->size, each = size / job->shap->outputs;
    for (int64_t i = 0; i < values->rows; i++) {
        double *to = mrc_row(values, i);
        for (int64_t k = 0; k < size; k++) {
            double sum = 0;
            for (int64_t h = 0; h < job->chunks; h++) sum += job->partial[(i * job->chunks + h) * size + k];
            to[k] += share * (scale ? scale[k / each] : 1) * sum;
        }
    }
}

mercer_status mrc_game_add(const mercer_shap *shap, const mrc_shap_member *member, const mercer_matrix *points,
                           double share, const double *scale, bool pairs, const mercer_matrix *values)
{
    int64_t p = member->model->centers.rows, sums = shap->columns * LANES * (int64_t)sizeof(double);
    int64_t threads = mrc_max(1, shap->context->threads);
    game_job job = {.shap = shap, .member = member, .ops = mrc_game_ops_for(shap->context), .pairs = pairs};
    job.size = shap->outputs * shap->columns * (pairs ? shap->columns : 1);
    int64_t most_chunks = mrc_max(1, mrc_min(MOST_CHUNKS, PARTIAL_BYTES / (int64_t)sizeof(double) / job.size));
    job.group_rows = mrc_max(1, mrc_min(GROUP_ROWS, GROUP_BYTES / sums));
    job.background_rows = mrc_max(1, mrc_min(shap->rows, 4 * (int64_t)GROUP_BYTES / sums));
    job.chunk_centers = mrc_max(CHUNK_CENTERS, mrc_round_up((p + most_chunks - 1) / most_chunks, LANES));
    job.chunks = (p + job.chunk_centers - 1) / job.chunk_centers;
    job.scratch_size = mrc_round_up(scratch_doubles(&job), 8);
    int64_t row = job.chunks * job.size, most = PARTIAL_BYTES / (int64_t)sizeof(double) / mrc_max(1, row);
    int64_t at_once = mrc_min(points->rows, mrc_max(1, most / job.group_rows) * job.group_rows);
    MRC_SCOPE(scope, shap->context);
    MRC_TRY(mrc_scope_alloc(&scope, &job.scratch, threads * job.scratch_size, sizeof(double), "Shapley values"));
    MRC_TRY(mrc_scope_alloc(&scope, &job.partial, at_once * row, sizeof(double), "Shapley values"));
    for (int64_t first = 0; first < points->rows; first += at_once) {
        mercer_matrix some = mrc_rows(points, first, mrc_min(at_once, points->rows - first)),
                      to = mrc_rows(values, first, some.rows);
        job.points = &some;
        int64_t groups = (some.rows + job.group_rows - 1) / job.group_rows;
        mrc_parallel_for(shap->context->threads, groups * job.chunks, add_chunk, &job);
        add_partials(&job, share, scale, &to);
    }
    return MERCER_OK;
}
