/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times every row of the list of micro-kernels that this machine supports, on one thread, with operands in the
 * first-level cache. A row added to the list is timed without a change to this program. Each result is first compared
 * with a plain loop in double. A product or difference counts as two operations. The row `panel` is timed with the
 * Laplace function.
 */
#include "bench.h"

#include "backends/cpu/micro/ukernels.h"
#include "kernels/formulas.h"

#include <math.h>

enum { DEPTH = 128, SIDE = 64, ROUNDS = 2000, AREA = 64 * DEPTH, TILE = 2048 };

/* A row of the list; only the fields of one operation are set, as in ukernels.c. */
typedef struct row {
    mrc_isa isa;
    const char *name;
    mrc_ukernels entry;
} row;

#define MRC_UK_GEMM_F32(level, name, mr, nr) {MRC_ISA_##level, #name, {.gemm_f32 = name}},
#define MRC_UK_GEMM_F64(level, name, mr, nr) {MRC_ISA_##level, #name, {.gemm_f64 = name}},
#define MRC_UK_DOT_U8(level, name, mr, nr, group) \
    {MRC_ISA_##level, #name, {.dot_u8 = name, .mr_u8 = mr, .nr_u8 = nr, .group_u8 = group}},
#define MRC_UK_L1_F32(level, name, mr, nr) {MRC_ISA_##level, #name, {.l1_f32 = name}},
#define MRC_UK_L1_F64(level, name, mr, nr) {MRC_ISA_##level, #name, {.l1_f64 = name}},
#define MRC_UK_GROUPS(level, single, wide, cost) \
    {MRC_ISA_##level, #single, {.groups_f32 = single}}, {MRC_ISA_##level, #wide, {.groups_f64 = wide}},
#define MRC_UK_SAD_U8(level, name, mr, nr) {MRC_ISA_##level, #name, {.sad_u8 = name}},
#define MRC_UK_FEW_F32(level, name, l1_name, count) \
    {MRC_ISA_##level, #name, {.few_f32 = name}}, {MRC_ISA_##level, #l1_name, {.few_l1_f32 = l1_name}},
#define MRC_UK_FEW_F64(level, name, l1_name, count) \
    {MRC_ISA_##level, #name, {.few_f64 = name}}, {MRC_ISA_##level, #l1_name, {.few_l1_f64 = l1_name}},
#define MRC_UK_ROWS(level, dots, sums, most, strip) \
    {MRC_ISA_##level, #dots, {.rows_dots = dots}}, {MRC_ISA_##level, #sums, {.rows_sums = sums}},
#define MRC_UK_SIGNS(level, single, wide) \
    {MRC_ISA_##level, #single, {.signs_f32 = single}}, {MRC_ISA_##level, #wide, {.signs_f64 = wide}},
#define MRC_UK_FEATURES(level, single, wide) \
    {MRC_ISA_##level, #single, {.features_f32 = single}}, {MRC_ISA_##level, #wide, {.features_f64 = wide}},
#define MRC_UK_PANEL(level, name) {MRC_ISA_##level, #name, {.panel = &name}},
static const row rows[] = {
#include "backends/cpu/micro/ukernels.inc"
};

/* Operands in one of three types, and the sizes of the instruction set's tiles. */
typedef struct job {
    const mrc_ukernels *row;
    mrc_ukernels sizes;
    int mr, nr;
    float *fa, *fb, *fc;
    double *da, *db, *dc;
    uint8_t *ua, *ub;
    int16_t *sa, *sb;
    int32_t *start, *ic;
    mercer_kernel laplace;
} job;

/* ---- Products and sums of absolute differences of panels ----------------------------------------------------- */

static const int32_t one_run[] = {DEPTH, 0};
static const mrc_runs no_groups = {one_run, 1, DEPTH};

static void run_gemm_f32(job *self)
{
    self->row->gemm_f32(DEPTH, self->fa, self->fb, self->fc);
}

static void run_gemm_f64(job *self)
{
    self->row->gemm_f64(DEPTH, self->da, self->db, self->dc);
}

static void run_l1_f32(job *self)
{
    self->row->l1_f32(DEPTH, self->fa, self->fb, self->fc);
}

static void run_l1_f64(job *self)
{
    self->row->l1_f64(DEPTH, self->da, self->db, self->dc);
}

static void run_groups_f32(job *self)
{
    self->row->groups_f32(false, &no_groups, self->fa, self->fb, self->fc);
}

static void run_groups_f64(job *self)
{
    self->row->groups_f64(false, &no_groups, self->da, self->db, self->dc);
}

static double check_panels(const job *self, bool wide, bool l1)
{
    double worst = 0;
    for (int i = 0; i < self->mr; i++)
        for (int j = 0; j < self->nr; j++) {
            double sum = 0;
            for (int k = 0; k < DEPTH; k++) {
                double a = self->da[k * self->mr + i], b = self->db[k * self->nr + j];
                sum += l1 ? fabs(b - a) : a * b;
            }
            double got = wide ? self->dc[i * self->nr + j] : (double)self->fc[i * self->nr + j];
            worst = fmax(worst, fabs(got - sum) / sum);
        }
    return worst;
}

static double check_products_f32(job *self)
{
    return check_panels(self, false, false);
}

static double check_products_f64(job *self)
{
    return check_panels(self, true, false);
}

static double check_l1_f32(job *self)
{
    return check_panels(self, false, true);
}

static double check_l1_f64(job *self)
{
    return check_panels(self, true, true);
}

/* ---- Bytes --------------------------------------------------------------------------------------------------- */

/* In groups of 2, bytes are stored as int16. In groups of 4, the bytes of a are reduced by 128; `start` adds the
   difference again. */
static void run_dot_u8(job *self)
{
    int group = self->row->group_u8;
    const void *a = group == 2 ? (const void *)self->sa : (const void *)self->ua;
    const void *b = group == 2 ? (const void *)self->sb : (const void *)self->ub;
    self->row->dot_u8(group == 2 ? DEPTH / 2 : DEPTH / 4, a, b, self->start, self->ic);
}

static double check_dot_u8(job *self)
{
    int group = self->row->group_u8, group_b = group == 64 ? 4 : group;
    int64_t differences = 0;
    for (int j = 0; j < self->nr; j++) {
        self->start[j] = 0;
        for (int k = 0; k < DEPTH && group == 4; k++)
            self->start[j] += 128 * self->ub[(k / 4 * self->nr + j) * 4 + k % 4];
    }
    run_dot_u8(self);
    for (int i = 0; i < self->mr; i++)
        for (int j = 0; j < self->nr; j++) {
            int32_t sum = 0;
            for (int k = 0; k < DEPTH; k++) {
                int at = (k / group * self->mr + i) * group + k % group;
                int bt = (k / group_b * self->nr + j) * group_b + k % group_b;
                int a = group == 2 ? self->sa[at] : group == 4 ? (int8_t)self->ua[at] + 128 : self->ua[at];
                sum += a * (group == 2 ? self->sb[bt] : self->ub[bt]);
            }
            differences += sum != self->ic[i * self->nr + j];
        }
    return (double)differences;
}

static void run_sad_u8(job *self)
{
    self->row->sad_u8(DEPTH / 8, self->ua, self->ub, self->fc);
}

static double check_sad_u8(job *self)
{
    int64_t differences = 0;
    for (int i = 0; i < self->mr; i++)
        for (int j = 0; j < self->nr; j++) {
            int sum = 0;
            for (int k = 0; k < DEPTH; k++)
                sum += abs(self->ua[(k / 8 * self->mr + i) * 8 + k % 8] - self->ub[(k / 8 * self->nr + j) * 8 + k % 8]);
            differences += (double)sum != (double)self->fc[i * self->nr + j];
        }
    return (double)differences;
}

/* ---- Few rows: `nr` centers that are not packed, `mr` rows of X ------------------------------------------------ */

static void run_few_f32(job *self)
{
    self->row->few_f32(DEPTH, self->nr, self->fa, DEPTH, self->fb + AREA / 2, self->mr, self->fb, self->fc, SIDE,
                       self->fc + AREA / 2);
}

static void run_few_f64(job *self)
{
    self->row->few_f64(DEPTH, self->nr, self->da, DEPTH, self->db + AREA / 2, self->mr, self->db, self->dc, SIDE,
                       self->dc + AREA / 2);
}

static void run_few_l1_f32(job *self)
{
    self->row->few_l1_f32(DEPTH, self->nr, self->fa, DEPTH, self->mr, self->fb, self->fc, SIDE);
}

static void run_few_l1_f64(job *self)
{
    self->row->few_l1_f64(DEPTH, self->nr, self->da, DEPTH, self->mr, self->db, self->dc, SIDE);
}

static double check_few_of(const job *self, bool wide, bool l1)
{
    double worst = 0;
    for (int i = 0; i < self->mr; i++)
        for (int j = 0; j < self->nr; j++) {
            double sum = 0, size = 0;
            for (int k = 0; k < DEPTH; k++) {
                double z = self->da[j * DEPTH + k], x = self->db[k * self->mr + i];
                double term = l1 ? fabs(z - x) : (z - self->db[AREA / 2 + k]) * x;
                sum += term, size += fabs(term);
            }
            double got = wide ? self->dc[i * SIDE + j] : (double)self->fc[i * SIDE + j];
            worst = fmax(worst, fabs(got - sum) / size);
        }
    return worst;
}

static double check_few_f32(job *self)
{
    return check_few_of(self, false, self->row->few_l1_f32 != NULL);
}

static double check_few_f64(job *self)
{
    return check_few_of(self, true, self->row->few_l1_f64 != NULL);
}

/* ---- Stored rows, with one output ----------------------------------------------------------------------------- */

enum { STORED = 16 };

static void find_rows(const job *self, const void **from)
{
    for (int i = 0; i < STORED; i++) from[i] = self->fa + (int64_t)i * DEPTH;
}

static void run_rows_dots(job *self)
{
    const void *from[STORED];
    find_rows(self, from);
    self->row->rows_dots(false, 1, STORED, DEPTH, from, self->fb, self->fc, 16);
}

static double check_rows_dots(job *self)
{
    double worst = 0;
    memset(self->fc, 0, AREA * sizeof *self->fc); /* the kernel adds to the sums */
    run_rows_dots(self);
    for (int r = 0; r < STORED; r++)
        for (int l = 0; l < 16; l++) {
            double sum = 0;
            for (int k = l; k < DEPTH; k += 16) sum += self->da[r * DEPTH + k] * self->db[k];
            worst = fmax(worst, fabs((double)self->fc[r * 16 + l] - sum) / sum);
        }
    return worst;
}

static void run_rows_sums(job *self)
{
    const void *from[STORED];
    find_rows(self, from);
    self->row->rows_sums(false, 1, STORED, from, 0, self->fb, self->fc);
}

static double check_rows_sums(job *self)
{
    double worst = 0;
    for (int k = 0; k < self->sizes.rows_strip; k++) {
        double sum = 0;
        for (int i = 0; i < STORED; i++) sum += self->da[i * DEPTH + k] * self->db[i];
        worst = fmax(worst, fabs((double)self->fc[k] - sum) / sum);
    }
    return worst;
}

/* ---- Signs, terms of one feature, kernel values ---------------------------------------------------------------- */

static void run_signs_f32(job *self)
{
    self->row->signs_f32(DEPTH, 1, self->fa, self->fb, self->fb, self->fc);
}

static void run_signs_f64(job *self)
{
    self->row->signs_f64(DEPTH, 1, self->da, self->db, self->db, self->dc);
}

/* The panel of X is also used as the list of pair values. */
static double check_signs(job *self)
{
    double worst = 0;
    bool wide = self->row->signs_f64 != NULL;
    for (int k = 0; k < DEPTH; k++)
        for (int i = 0; i < self->nr; i++) {
            double sum = 0, size = 0;
            for (int j = 0; j < self->mr; j++) {
                double x = self->db[k * self->nr + i], z = self->da[k * self->mr + j],
                       value = self->db[j * self->nr + i];
                sum += x > z ? value : x < z ? -value : 0, size += value;
            }
            double got = wide ? self->dc[k * self->nr + i] : (double)self->fc[k * self->nr + i];
            worst = fmax(worst, fabs(got - sum) / size);
        }
    return worst;
}

enum { FEATURE_ROWS = 32, COLUMNS = 64 };

static void run_features_f32(job *self)
{
    self->row->features_f32(1, false, FEATURE_ROWS, COLUMNS, self->ic, self->fa, COLUMNS, self->fb,
                            self->fb + FEATURE_ROWS, self->fc);
}

static void run_features_f64(job *self)
{
    self->row->features_f64(1, false, FEATURE_ROWS, COLUMNS, self->ic, self->da, COLUMNS, self->db,
                            self->db + FEATURE_ROWS, self->dc);
}

static double check_features(job *self)
{
    double worst = 0;
    bool wide = self->row->features_f64 != NULL;
    for (int r = 0; r < FEATURE_ROWS; r++) self->ic[r] = FEATURE_ROWS - 1 - r;
    wide ? run_features_f64(self) : run_features_f32(self);
    for (int l = 0; l < 16; l++) {
        double sum = 0;
        for (int r = 0; r < FEATURE_ROWS; r++)
            for (int j = l; j < COLUMNS; j += 16)
                sum += self->da[self->ic[r] * COLUMNS + j] * fabs(self->db[r] - self->db[FEATURE_ROWS + j]);
        worst = fmax(worst, fabs((wide ? self->dc[l] : (double)self->fc[l]) - sum) / sum);
    }
    return worst;
}

/* The values of a round are the squared distances of the next round; they stay between 0 and 1. */
static void run_panel(job *self)
{
    const mrc_map map = mrc_map_for(&self->laplace);
    self->row->panel->map_f32(&map, TILE, self->fc);
}

static double check_panel(job *self)
{
    double worst = 0;
    memcpy(self->fc, self->fa, TILE * sizeof *self->fc);
    run_panel(self);
    for (int i = 0; i < TILE; i++)
        worst = fmax(worst, fabs((double)self->fc[i] - exp(-sqrt(self->da[i]) / self->laplace.bandwidth)));
    return worst;
}

/* ---- The operations ------------------------------------------------------------------------------------------- */

/* Field of mrc_ukernels, run, check, rows and columns of the result, operations per element of the result. */
#define OPERATIONS(X)                                                                                    \
    X(gemm_f32, run_gemm_f32, check_products_f32, self->sizes.mr_f32, self->sizes.nr_f32, 2 * DEPTH)     \
    X(gemm_f64, run_gemm_f64, check_products_f64, self->sizes.mr_f64, self->sizes.nr_f64, 2 * DEPTH)     \
    X(l1_f32, run_l1_f32, check_l1_f32, self->sizes.mr_l1_f32, self->sizes.nr_f32, 2 * DEPTH)            \
    X(l1_f64, run_l1_f64, check_l1_f64, self->sizes.mr_l1_f64, self->sizes.nr_f64, 2 * DEPTH)            \
    X(groups_f32, run_groups_f32, check_products_f32, self->sizes.mr_f32, self->sizes.nr_f32, 2 * DEPTH) \
    X(groups_f64, run_groups_f64, check_products_f64, self->sizes.mr_f64, self->sizes.nr_f64, 2 * DEPTH) \
    X(dot_u8, run_dot_u8, check_dot_u8, self->row->mr_u8, self->row->nr_u8, 2 * DEPTH)                   \
    X(sad_u8, run_sad_u8, check_sad_u8, self->sizes.mr_sad_u8, self->sizes.nr_f32, 2 * DEPTH)            \
    X(few_f32, run_few_f32, check_few_f32, 2, self->sizes.few_lanes_f32, 2 * DEPTH)                      \
    X(few_f64, run_few_f64, check_few_f64, 2, self->sizes.few_lanes_f64, 2 * DEPTH)                      \
    X(few_l1_f32, run_few_l1_f32, check_few_f32, 2, self->sizes.few_lanes_f32, 2 * DEPTH)                \
    X(few_l1_f64, run_few_l1_f64, check_few_f64, 2, self->sizes.few_lanes_f64, 2 * DEPTH)                \
    X(rows_dots, run_rows_dots, check_rows_dots, STORED, 1, 2 * DEPTH)                                   \
    X(rows_sums, run_rows_sums, check_rows_sums, STORED, 1, 2 * self->sizes.rows_strip)                  \
    X(signs_f32, run_signs_f32, check_signs, self->sizes.mr_l1_f32, self->sizes.nr_f32, 2 * DEPTH)       \
    X(signs_f64, run_signs_f64, check_signs, self->sizes.mr_l1_f64, self->sizes.nr_f64, 2 * DEPTH)       \
    X(features_f32, run_features_f32, check_features, FEATURE_ROWS, COLUMNS, 2)                          \
    X(features_f64, run_features_f64, check_features, FEATURE_ROWS, COLUMNS, 2)                          \
    X(panel, run_panel, check_panel, TILE, 1, 1)

typedef struct operation {
    void (*run)(job *self);
    double (*check)(job *self); /* returns the largest error; for exact results, the number of wrong results */
    double each;                /* operations per element of the result */
} operation;

#define SELECT(field, run_it, check_it, height, width, count)  \
    if (self->row->field) {                                    \
        self->mr = (height), self->nr = (width);               \
        return (operation){run_it, check_it, (double)(count)}; \
    }

/* Return the operation of a row of the list, and set the size of its result. */
static operation select_operation(job *self)
{
    OPERATIONS(SELECT)
    return (operation){0};
}

typedef struct timed {
    job *self;
    operation operation;
} timed;

static void run_rounds(void *argument)
{
    timed *work = argument;
    for (int i = 0; i < ROUNDS; i++) work->operation.run(work->self);
}

static bool run_row(job *self, const row *one, const bench_options *options)
{
    self->row = &one->entry, self->sizes = mrc_ukernels_for(one->isa);
    timed work = {self, select_operation(self)};
    if (!work.operation.run) return fprintf(stderr, "%s: add its operation to OPERATIONS\n", one->name), false;
    memset(self->ic, 0, AREA * sizeof *self->ic); /* used as row numbers by the kernels of features */
    work.operation.run(self);
    double error = work.operation.check(self), limit = 1e-5;
    if (!(error <= limit)) return fprintf(stderr, "%s: INVALID, error %g, limit %g\n", one->name, error, limit), false;
    bench_times times = bench_time(run_rounds, &work, options->repeats);
    double amount = 1e-9 * ROUNDS * work.operation.each * self->mr * self->nr;
    if (options->json) {
        bench_begin_json();
        printf("\"bench\": \"ukernels\", \"case\": \"%s\", \"version\": \"%s\", \"isa\": \"%s\", \"best_s\": %.5g, "
               "\"median_s\": %.5g, \"gops\": %.5g, \"error\": %.3g}\n",
               one->name, mercer_version(), mrc_isa_name(one->isa), times.best / ROUNDS, times.median / ROUNDS,
               amount / times.median, error);
    } else {
        printf("%-36s %9.1f %9.1f %9.1f %9.1e\n", one->name, times.best / ROUNDS * 1e9, times.median / ROUNDS * 1e9,
               amount / times.median, error);
    }
    fflush(stdout);
    return true;
}

static bool prepare(job *self)
{
    void *all[10] = {NULL};
    uint64_t state = 1;
    for (int i = 0; i < 10; i++) {
        if (posix_memalign(&all[i], 64, AREA * sizeof(double))) return false;
        memset(all[i], 0, AREA * sizeof(double));
    }
    self->fa = all[0], self->fb = all[1], self->fc = all[2], self->da = all[3], self->db = all[4], self->dc = all[5];
    self->ua = all[6], self->ub = all[7], self->start = all[8], self->ic = all[9];
    if (posix_memalign(&all[0], 64, 2 * AREA * sizeof(int16_t))) return false;
    self->sa = all[0], self->sb = self->sa + AREA;
    for (int i = 0; i < AREA; i++) {
        self->fa[i] = (float)bench_random(&state), self->fb[i] = (float)bench_random(&state);
        self->da[i] = (double)self->fa[i], self->db[i] = (double)self->fb[i];
        self->ua[i] = (uint8_t)(256 * self->da[i]), self->ub[i] = (uint8_t)(256 * self->db[i]);
        self->sa[i] = self->ua[i], self->sb[i] = self->ub[i];
    }
    self->laplace = (mercer_kernel){.id = MRC_KERNEL_LAPLACE, .bandwidth = 2};
    return true;
}

int main(int argc, char **argv)
{
    bench_options options;
    int leave = bench_read_options(argc, argv, &options);
    if (leave >= 0) return leave;
    job self = {0};
    bool good = prepare(&self);
    if (!options.json) printf("%-36s %9s %9s %9s %9s\n", "micro-kernel", "best ns", "median ns", "Gop/s", "error");
    for (size_t i = 0; good && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].isa <= mrc_isa_best() && (!options.filter || strstr(rows[i].name, options.filter)))
            good = run_row(&self, &rows[i], &options);
    free(self.fa), free(self.fb), free(self.fc), free(self.da), free(self.db), free(self.dc);
    free(self.ua), free(self.ub), free(self.start), free(self.ic), free(self.sa);
    return good ? 0 : 1;
}
