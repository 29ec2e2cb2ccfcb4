/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/features: sums over all pairs of rows and centers for every feature (feature_sums.c). This is the body
 * for a block of rows in one type, included after
 *
 *   REAL, TYPED(name), LOAD_ROW       the type, names of functions for the type, mrc_load_row_... to the type
 *
 * If a feature is 0 for most rows of the block, as levels of categories are, only its nonzero rows have separate terms:
 * sum_i v_ij t(x_i, z_j) = (sum_i v_ij) t(0, z_j) + sum over x_i != 0 of v_ij (t(x_i, z_j) - t(0, z_j)).
 */

/* Compute the weights of the block's rows for `width` columns, starting at `first` and padded with zeros, and their sum
   over the rows. */
static void TYPED(fill_weights)(const feature_job *self, const space *at, int64_t row, int64_t rows, int64_t first,
                                int64_t width)
{
    const mrc_feature_sums *job = self->job;
    int64_t count = mrc_min(width, job->z->rows - first);
    REAL *v = at->weights, *sum = v + ROWS * STRIP;
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int64_t r = 0; r < rows; r++, v += STRIP) {
        mercer_matrix a = mrc_block(job->a, row + r, first, 1, count), b = mrc_block(job->b, row + r, first, 1, count);
        mrc_load_row_f64(&a, 0, at->left);
        mrc_load_row_f64(&b, 0, at->right);
        for (int64_t j = 0; j < count; j++) v[j] = (REAL)(at->left[j] * at->right[j]);
        memset(v + count, 0, (size_t)(width - count) * sizeof *v);
        for (int64_t j = 0; j < count; j++) sum[j] += v[j];
    }
}

/* Add the partial sums in double and in order, so that the result is the same on every instruction set. */
static double TYPED(add_lanes)(const REAL *sums)
{
    double sum = 0;
    for (int l = 0; l < LANES; l++) sum += (double)sums[l];
    return sum;
}

/* Return the sum for one feature over the pairs of rows x (rows) and centers z (width). If fewer than half of the rows
   are nonzero, a first call computes the terms of x = 0 with the summed weights. A second call then computes the
   corrections for the nonzero rows. */
static double TYPED(sum_feature)(const feature_job *self, const space *at, int64_t rows, const REAL *x, const REAL *z,
                                 int64_t width)
{
    static const int32_t all[ROWS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    static const int32_t of_sum = ROWS;
    static const REAL zero = 0;
    int norm = self->job->norm, count = 0;
    int32_t which[ROWS];
    REAL own[ROWS], sums[LANES];
    for (int32_t r = 0; r < rows; r++)
        if (x[r] != 0) which[count] = r, own[count++] = x[r];
    if (2 * count >= rows) {
        self->uk->TYPED(features)(norm, false, rows, width, all, at->weights, STRIP, x, z, sums);
        return TYPED(add_lanes)(sums);
    }
    self->uk->TYPED(features)(norm, false, 1, width, &of_sum, at->weights, STRIP, &zero, z, sums);
    double sum = TYPED(add_lanes)(sums);
    self->uk->TYPED(features)(norm, true, count, width, which, at->weights, STRIP, own, z, sums);
    return sum + TYPED(add_lanes)(sums);
}

/* Compute the sums of all features for one block of ROWS rows. */
static void TYPED(sum_rows)(void *argument, int64_t piece, int worker)
{
    const feature_job *self = argument;
    int64_t d = self->job->x->cols, row = piece * ROWS, rows = mrc_min(ROWS, self->job->x->rows - row);
    space at = space_of(self, worker);
    REAL *x = at.x, *one = x + d * ROWS;
    double *part = self->parts + piece * d;
    for (int64_t r = 0; r < rows; r++) {
        LOAD_ROW(self->job->x, row + r, one);
        for (int64_t k = 0; k < d; k++) x[k * ROWS + r] = one[k];
    }
    for (int64_t k = 0; k < d; k++) part[k] = 0;
    for (int64_t first = 0; first < self->columns; first += STRIP) {
        int64_t width = mrc_min(STRIP, self->columns - first);
        TYPED(fill_weights)(self, &at, row, rows, first, width);
        for (int64_t k = 0; k < d; k++)
            part[k] += TYPED(sum_feature)(self, &at, rows, x + k * ROWS,
                                          (const REAL *)self->z + k * self->columns + first, width);
    }
}

/* Transpose the centers. Columns after the last center are zeros; their weights are 0, too. */
static void TYPED(turn_centers)(const feature_job *self)
{
    const mercer_matrix *z = self->job->z;
    REAL *to = self->z, *one = space_of(self, 0).x;
    for (int64_t j = 0; j < self->columns; j++) {
        if (j < z->rows) LOAD_ROW(z, j, one);
        for (int64_t k = 0; k < z->cols; k++) to[k * self->columns + j] = j < z->rows ? one[k] : 0;
    }
}

#undef REAL
#undef TYPED
#undef LOAD_ROW
