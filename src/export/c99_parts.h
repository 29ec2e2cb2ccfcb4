/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of exported C files. This text is not compiled here: it is a part of the library (source_text.h), and
 * c99_points.c copies those functions that a model has a use for, behind the definitions that they refer to. What the
 * library's own code has is copied from there (the math of the micro-kernels, dates, curves, ...); here is what
 * it does with whole matrices, written for one row, in the same order of roundings.
 *
 *   FEATURES, WIDTH   of a sample; of a preprocessed one            real          arithmetic of the kernel
 *   CENTERS, OUTPUTS  p, c                                          stored        type of samples and centers
 *   FMA, ABS, NEAR    of real; see backends/cpu/tile.h
 */

/* Rounded to float. Through memory: gcc 12 forgets the rounding of neighbours that it joins in a vector. */
static double rounded(double value)
{
    volatile float single = (float)value;
    return (double)single;
}

/* ---- Preprocessing ----------------------------------------------------------------------------------------------- */

static void scale_features(double *x)
{
    for (int j = 0; j < FEATURES; j++) x[j] *= scale;
}

static void shift_features(double *x)
{
    for (int j = 0; j < FEATURES; j++) x[j] = (x[j] - shift[j]) * factor[j];
}

/* In 64 chains, which are added up in order. */
static double sum_of_squares(const double *x, double divisor)
{
    double lanes[64] = {0}, sum = 0;
    for (int j = 0; j < FEATURES; j++) {
        double value = x[j] / divisor;
        lanes[j % 64] += value * value;
    }
    for (int j = 0; j < 64; j++) sum += lanes[j];
    return sum;
}

static void unit_features(double *x)
{
    double sum = sum_of_squares(x, 1), largest = 1;
    if (!(sum > 1e-290 && sum < 1e290)) {
        largest = 0;
        for (int j = 0; j < FEATURES; j++) largest = fmax(largest, fabs(x[j]));
        if (largest == 0) return;
        sum = sum_of_squares(x, largest);
    }
    double root = sqrt(sum);
    for (int j = 0; j < FEATURES; j++) x[j] = x[j] / largest / root;
}

static void rank_features(double *x)
{
    for (int j = 0; j < FEATURES; j++) x[j] = factor[j] > 0 ? x[j] * factor[j] : mrc_rank_value(knots[j], normal, x[j]);
}

static void blend_features(double *x)
{
    for (int j = 0; j < FEATURES; j++) {
        double value = (x[j] - shift[j]) * factor[j];
        x[j] = rank_weight[j] > 0 ? value + rank_weight[j] * mrc_rank_value(knots[j], normal, x[j]) : value;
    }
}

static void weigh_features(double *x)
{
    for (int j = 0; j < FEATURES; j++) x[j] *= metric[j];
}

static void map_features(const double *x, double *y)
{
    for (int j = 0; j < WIDTH; j++) {
        y[j] = 0;
        for (int k = 0; k < FEATURES; k++) y[j] += x[k] * metric[k][j];
    }
}

/* ---- What the kernel is a function of ---------------------------------------------------------------------------- */

static double exact_square(const stored *x, const stored *z)
{
    double sum = 0;
    for (int k = 0; k < WIDTH; k++) {
        double difference = (double)x[k] - (double)z[k];
        sum += difference * difference;
    }
    return sum;
}

static real center_point(const stored *x, real *point)
{
    real norm = 0;
    for (int k = 0; k < WIDTH; k++) {
        point[k] = (real)x[k] - origin[k];
        norm = FMA(point[k], point[k], norm);
    }
    return norm;
}

/* |x - z|^2 by products; pairs that are too near for that, from their coordinates in double. */
static real pair_square(const stored *x, const real *point, real x_norm, int j)
{
    real dot = 0;
    for (int k = 0; k < WIDTH; k++) dot = FMA((real)centers[j][k] - origin[k], point[k], dot);
    real sum = x_norm + center_norms[j], square = FMA(-2, dot, sum);
    return square > NEAR * sum ? square : (real)EXACT_SQUARE(x, centers[j]);
}

static real pair_l1(const stored *x, int j)
{
    real sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += ABS((real)x[k] - (real)centers[j][k]);
    return sum;
}

static real pair_powers(const stored *x, int j)
{
    double sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += POWER(fabs((double)x[k] - (double)centers[j][k]), NORM);
    return (real)sum;
}

static real pair_dot(const stored *x, int j)
{
    real dot = 0;
    for (int k = 0; k < WIDTH; k++) dot = FMA((real)x[k], (real)centers[j][k], dot);
    return dot;
}

static int32_t bytes_square(const stored *x, int j)
{
    int32_t sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += (x[k] - centers[j][k]) * (x[k] - centers[j][k]);
    return sum;
}

static int32_t bytes_l1(const stored *x, int j)
{
    int32_t sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += x[k] > centers[j][k] ? x[k] - centers[j][k] : centers[j][k] - x[k];
    return sum;
}

static int32_t bytes_dot(const stored *x, const stored *z)
{
    int32_t sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += x[k] * z[k];
    return sum;
}

static void exact_inner(const stored *x, const stored *z, double *dot, double *xx, double *zz)
{
    *dot = *xx = *zz = 0;
    for (int k = 0; k < WIDTH; k++) {
        double left = (double)x[k], right = (double)z[k];
        *dot += left * right;
        *xx += left * left;
        *zz += right * right;
    }
}

/* ---- Kernel values of inner products and both norms -------------------------------------------------------------- */

/* (a s + b)^degree */
static real power_value(real s)
{
    const real base = FMA(KERNEL_A, s, KERNEL_B);
    real value = base;
    for (int k = 1; k < DEGREE; k++) value *= base;
    return value;
}

static real angle_value(double dot, double xx, double zz)
{
    static const mrc_map map = {DEGREE, KERNEL_A, KERNEL_B};
    double value;
    angular(&map, 1, &dot, &zz, xx, &value);
    return (real)value;
}

/* Nearly parallel rows: products say too little of the angle. */
static real pair_angle(const stored *x, real x_norm, int j)
{
    static const mercer_kernel kernel = {BIAS, DEGREE};
    double dot = (double)pair_dot(x, j), xx = (double)x_norm, zz = (double)center_norms[j];
    if (dot * dot <= (1 - (double)NEAR) * (xx * zz)) return angle_value(dot, xx, zz);
    exact_inner(x, centers[j], &dot, &xx, &zz);
    return (real)mrc_relu_layers(&kernel, dot, xx, zz, KERNEL_B > 0);
}

static real row_norm(const stored *x)
{
    real norm = 0;
    for (int k = 0; k < WIDTH; k++) norm = FMA((real)x[k], (real)x[k], norm);
    return norm;
}

/* ---- Cells of a table -------------------------------------------------------------------------------------------- */

static int is_space(char c)
{
    return c == ' ' || c == '\t';
}

static int small_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static int same_word(const char *word, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (small_letter(word[i]) != small_letter(text[i]) || word[i] == 0) return 0;
    return word[length] == 0;
}

static int is_missing(const char *text, size_t length)
{
    for (int i = 0; missing_words[i]; i++)
        if (same_word(missing_words[i], text, length)) return 1;
    return length == 0;
}

/* A decimal number and nothing else. strtod reads it: the locale's decimal point must be a point. */
static int read_decimal(const char *text, const char *end, double *value)
{
    const char *at = text;
    int digits = 0;
    at += at < end && (*at == '-' || *at == '+');
    for (; at < end && *at >= '0' && *at <= '9'; at++) digits++;
    at += at < end && *at == '.';
    for (; at < end && *at >= '0' && *at <= '9'; at++) digits++;
    if (digits == 0) return 0;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '-' || *at == '+');
        digits = 0;
        for (; at < end && *at >= '0' && *at <= '9'; at++) digits++;
    }
    if (digits == 0 || at != end) return 0;
    *value = strtod(text, NULL);
    return 1;
}

static int is_missing_number(double value)
{
    for (int i = 0; missing_words[i]; i++) {
        double number;
        if (read_decimal(missing_words[i], missing_words[i] + strlen(missing_words[i]), &number) && number == value)
            return 1;
    }
    return 0;
}

/* A decimal number or an ISO date, */
static int read_plain(int c, const char *text, const char *end, double *value)
{
    return columns[c].kind == COLUMN_DATE ? mrc_read_date(text, end, value) : read_decimal(text, end, value);
}

/* or one in the notation of its column. */
static int read_noted(int c, const char *text, const char *end, double *value)
{
    char plain[MRC_AMOUNT_CHARS];
    int unit;
    if (!notations[c].date && !notations[c].decimal) return read_plain(c, text, end, value);
    if (notations[c].date) return mrc_read_date_in(notations[c].date, text, end, value);
    unit = mrc_amount_text(text, end, notations[c].decimal, plain);
    return unit >= 0 && unit_fits(unit, notations[c].unit) && read_decimal(plain, plain + strlen(plain), value);
}

/* A cell as a float, NAN if it is missing; 0: it is nothing of the kind. */
static int read_value(int c, const char *text, const char *end, float *cell)
{
    double value;
    int kind = columns[c].kind;
    size_t length = (size_t)(end - text);
    *cell = NAN;
    if (kind == COLUMN_BOOLEAN && (same_word("true", text, length) || same_word("false", text, length))) {
        *cell = length == 4 ? 1 : 0;
        return 1;
    }
    if (READ(c, text, end, &value)) {
        if (kind != COLUMN_DATE && is_missing_number(value)) return 1;
        *cell = (float)(value - columns[c].origin);
        return !isinf(*cell);
    }
    return is_missing(text, length);
}

static void encode_word(const column *of, const char *text, size_t length, double *to)
{
    int last = of->level_count + of->other;
    for (int i = 0; i < of->level_count; i++)
        if (strlen(of->levels[i]) == length && memcmp(of->levels[i], text, length) == 0) {
            to[i] = 1;
            return;
        }
    if (!is_missing(text, length)) {
        if (of->other) to[of->level_count] = 1;
    } else if (of->has_missing) {
        to[last] = 1;
    }
}

/* What stands for numbers that are missing: their means, */
static void fill_with_means(const float *cells, double *values)
{
    for (int c = 0; c < COLUMNS; c++) values[c] = isnan(cells[c]) ? columns[c].mean : (double)cells[c];
}

/* or what follows from the other numbers of the row, for those that have a deviation. */
static void fill_from_others(const float *cells, double *values)
{
    double z[MRC_GAPS_COLUMNS];
    bool missing[MRC_GAPS_COLUMNS], any = false;
    fill_with_means(cells, values);
    for (int i = 0; i < MRC_GAPS_COLUMNS; i++) {
        int c = filled[i];
        missing[i] = isnan(cells[c]);
        any = any || missing[i];
        z[i] = missing[i] ? 0 : ((double)cells[c] - columns[c].mean) * (1 / deviations[i]);
    }
    if (!any) return;
    mrc_fill_gaps(MRC_GAPS_COLUMNS, precision[0], missing, z);
    for (int i = 0; i < MRC_GAPS_COLUMNS; i++)
        if (missing[i])
            values[filled[i]] = fmin(fmax(columns[filled[i]].mean + deviations[i] * z[i], -FLT_MAX), FLT_MAX);
}

static void encode_value(const column *of, float cell, double value, double *to)
{
    *to++ = rounded(value);
    if (of->kind == COLUMN_DATE) {
        double sine, cosine;
        mrc_date_season(value + of->origin, &sine, &cosine);
        *to++ = rounded(sine);
        *to++ = rounded(cosine);
    }
    if (of->has_missing) *to = isnan(cell) ? 1 : 0;
}

static int encode_cells(const char *const *cells, double *x)
{
    float numbers[COLUMNS];
    double values[COLUMNS];
    for (int j = 0; j < FEATURES; j++) x[j] = 0;
    for (int c = 0; c < COLUMNS; c++) {
        const char *text = cells[c] ? cells[c] : "", *end = text + strlen(text);
        numbers[c] = 0;
        while (is_space(*text)) text++;
        while (end > text && is_space(end[-1])) end--;
        if (columns[c].kind == COLUMN_CATEGORY) {
            encode_word(&columns[c], text, (size_t)(end - text), x + columns[c].first);
            continue;
        }
        if (!read_value(c, text, end, &numbers[c])) return c + 1;
    }
    FILL(numbers, values);
    for (int c = 0; c < COLUMNS; c++)
        if (columns[c].kind != COLUMN_CATEGORY) encode_value(&columns[c], numbers[c], values[c], x + columns[c].first);
    return 0;
}
