/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams over datasets: every row once per pass, orders, prefetch, skip, restart, blocks of mapped files, virtual
   samples. */
#include "support/counted.h"

#include "support/data.h"
#include "support/fitted.h"
#include "support/folder.h"

#include "data/stream/order.h"

/* A context with counted memory, and a folder for files. */
static int open_both(void **state)
{
    folder_open();
    return set_up(state);
}

static int close_both(void **state)
{
    folder_close();
    return tear_down(state);
}

enum { D = 6 };

/* Row i of the data: i in four bytes, then two bytes that depend on i; the target is i mod 5. */
static void row_bytes(int64_t i, uint8_t out[D])
{
    for (int k = 0; k < 4; k++) out[k] = (uint8_t)(i >> 8 * k);
    out[4] = (uint8_t)(7 * i), out[5] = (uint8_t)(i / 3);
}

static int64_t row_number(const mercer_matrix *x, int64_t i)
{
    const uint8_t *row = mrc_row(x, i);
    return row[0] | row[1] << 8 | row[2] << 16 | (int64_t)row[3] << 24;
}

/* Opens a dataset of u8 rows in a mapped NPY file, with labels. */
static mercer_dataset *open_rows(mercer_context *context, int64_t rows)
{
    mercer_matrix x = data_matrix(rows, D, 0, MERCER_U8), y = data_matrix(rows, 1, 0, MERCER_U8);
    for (int64_t i = 0; i < rows; i++) row_bytes(i, mrc_row(&x, i)), ((uint8_t *)y.data)[i] = (uint8_t)(i % 5);
    assert_succeeds(context, mercer_matrix_write_npy(context, &x, in_folder("x.npy")));
    assert_succeeds(context, mercer_matrix_write_npy(context, &y, in_folder("y.npy")));
    static const char *const names[] = {"0", "1", "2", "3", "4"};
    mercer_dataset_options options = {.struct_size = sizeof options,
                                      .x = in_folder("x.npy"),
                                      .y = in_folder("y.npy"),
                                      .labels = names,
                                      .label_count = 5,
                                      .task = MERCER_TASK_CLASSIFICATION};
    mercer_dataset *out = NULL;
    assert_succeeds(context, mercer_dataset_open(&out, context, &options));
    free(x.data), free(y.data);
    return out;
}

static mercer_source open_source(mercer_context *context, mercer_dataset *data, mercer_stream_options options)
{
    mercer_source out;
    options.struct_size = sizeof options;
    assert_succeeds(context, mercer_source_from_dataset(&out, data, &options));
    return out;
}

/* ---- One pass ------------------------------------------------------------------------------------------------- */

/* All samples of a pass, copied together: bytes of X and Y, and row numbers if the source reports them. */
typedef struct pass {
    int64_t rows;
    mercer_matrix x, y;
    int64_t *numbers;
    bool numbered;
} pass;

static pass read_pass(const mercer_source *source, int64_t epoch, int64_t skipped, int64_t most)
{
    mercer_batch batch = {0};
    pass out = {.numbers = calloc((size_t)source->rows + 1, sizeof(int64_t)), .numbered = true};
    assert_non_null(out.numbers);
    assert_int_equal(source->restart(source->user, epoch), 0);
    if (skipped) assert_int_equal((source->skip)(source->user, skipped), 0);
    for (;;) {
        assert_int_equal(source->next(source->user, most, &batch), 0);
        if (batch.X.rows == 0) break;
        assert_true(batch.X.rows <= most && batch.Y.rows == batch.X.rows && batch.X.dtype == source->dtype);
        if (!out.x.data) {
            out.x = data_matrix(source->rows, batch.X.cols, 0, batch.X.dtype);
            out.y = data_matrix(source->rows, batch.Y.cols, 0, batch.Y.dtype);
        }
        assert_true(out.rows + batch.X.rows <= source->rows);
        for (int64_t i = 0; i < batch.X.rows; i++, out.rows++) {
            memcpy(mrc_row(&out.x, out.rows), mrc_row(&batch.X, i), (size_t)(out.x.cols * mrc_dtype_size(out.x.dtype)));
            memcpy(mrc_row(&out.y, out.rows), mrc_row(&batch.Y, i), (size_t)(out.y.cols * mrc_dtype_size(out.y.dtype)));
            if (batch.rows) out.numbers[out.rows] = batch.rows[i];
        }
        if (!batch.rows) out.numbered = false;
    }
    assert_int_equal(out.rows, source->rows - skipped);
    return out;
}

static void free_pass(pass *self)
{
    free(self->x.data), free(self->y.data), free(self->numbers);
}

/* Checks that b has the same bytes as a from row `offset` of a on. */
static void assert_same_pass(const pass *a, const pass *b, int64_t offset)
{
    assert_int_equal(a->rows - offset, b->rows);
    for (int64_t i = 0; i < b->rows; i++) {
        assert_memory_equal(mrc_row(&a->x, i + offset), mrc_row(&b->x, i),
                            (size_t)(b->x.cols * mrc_dtype_size(b->x.dtype)));
        assert_memory_equal(mrc_row(&a->y, i + offset), mrc_row(&b->y, i),
                            (size_t)(b->y.cols * mrc_dtype_size(b->y.dtype)));
        assert_true(a->numbers[i + offset] == b->numbers[i]);
    }
}

/* ---- Orders ---------------------------------------------------------------------------------------------------- */

/* Checks that every row occurs once, with its own bytes, target and number. */
static void check_each_once(const pass *self, int64_t rows)
{
    char *seen = calloc((size_t)rows, 1);
    assert_non_null(seen);
    assert_true(self->numbered && self->rows == rows);
    for (int64_t i = 0; i < rows; i++) {
        uint8_t wanted[D];
        int64_t number = row_number(&self->x, i);
        assert_true(number >= 0 && number < rows);
        row_bytes(number, wanted);
        assert_memory_equal(mrc_row(&self->x, i), wanted, D);
        assert_true(self->numbers[i] == number);
        assert_that(!seen[number], "row %lld comes twice", (long long)number);
        seen[number] = 1;
        for (int64_t j = 0; j < 5; j++) assert_true(mrc_load(&self->y, i, j) == (number % 5 == j));
    }
    free(seen);
}

static int64_t places_shared(const pass *a, const pass *b)
{
    int64_t same = 0;
    for (int64_t i = 0; i < a->rows; i++) same += row_number(&a->x, i) == row_number(&b->x, i);
    return same;
}

static void check_orders(mercer_context *context, int64_t rows, int64_t block, mercer_switch prefetch)
{
    mercer_dataset *data = open_rows(context, rows);
    mercer_source a =
        open_source(context, data, (mercer_stream_options){.seed = 1, .block = block, .prefetch = prefetch});
    mercer_source b =
        open_source(context, data, (mercer_stream_options){.seed = 2, .block = block, .prefetch = prefetch});
    pass first = read_pass(&a, 0, 0, 97), second = read_pass(&a, 1, 0, 97), sample = read_pass(&a, -1, 0, 97);
    pass again = read_pass(&a, 0, 0, 33), other = read_pass(&b, 0, 0, 97);
    pass *all[] = {&first, &second, &sample, &again, &other};
    for (int i = 0; i < 5; i++) check_each_once(all[i], rows);
    assert_same_pass(&first, &again, 0);
    if (rows > 100) /* two random orders agree at about one position, with variance 1 */
        assert_true(places_shared(&first, &second) < 10 && places_shared(&first, &other) < 10 &&
                    places_shared(&first, &sample) < 10 && places_shared(&second, &sample) < 10);
    for (int i = 0; i < 5; i++) free_pass(all[i]);
    mercer_source_free(&a), mercer_source_free(&b);
    mercer_dataset_free(data);
}

static void test_each_row_once(void **state)
{
    fixture *self = *state;
    const int64_t rows[] = {1, 2, 7, 1000, 5003}, blocks[] = {0, 1, 2, 10, 64, 5000};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            check_orders(self->context, rows[r], blocks[b], b % 2 ? MERCER_ON : MERCER_OFF);
}

/* Matrices in memory are read in the order of the permutation: sample k is row permutation(k). */
static void test_rows_are_permuted_one_by_one(void **state)
{
    fixture *self = *state;
    mercer_dataset *data = open_rows(self->context, 500);
    mercer_source source = open_source(self->context, data, (mercer_stream_options){.seed = 11});
    pass all = read_pass(&source, 3, 0, 64);
    for (int64_t k = 0; k < 500; k++)
        assert_int_equal(all.numbers[k], mrc_random_permutation((mrc_rng){11, 5}, 500, k));
    free_pass(&all);
    mercer_source_free(&source);
    mercer_dataset_free(data);
}

/* With blocks, reading is local: at any time the rows come from the few blocks of a window, and the windows differ. */
static void test_blocks_are_local(void **state)
{
    fixture *self = *state;
    enum { ROWS = 200000, BLOCK = 20 }; /* ten windows of at most 1024 blocks */
    mercer_dataset *data = open_rows(self->context, ROWS);
    mrc_order order;
    mrc_order_init(&order, data, BLOCK, 5);
    mrc_order_restart(&order, 0);
    assert_true(order.windows == 10 && order.window == 1000);
    int64_t rows[2000], stretch = order.window * BLOCK;
    double away = 0;
    for (int64_t k = 0; k < ROWS;) {
        int64_t found = mrc_order_rows(&order, k, 2000, rows);
        assert_true(found >= 1 && k / stretch == (k + found - 1) / stretch); /* never across windows */
        for (int64_t i = 0; i < found; i++) {
            bool inside = false;
            for (int64_t b = 0; b < order.window && !inside; b++)
                inside = (rows[i] - order.starts[b] + ROWS) % ROWS < BLOCK;
            if (i % 50 == 0) assert_true(inside);
            away += fabs((double)rows[i] / ROWS - (double)(k + i) / ROWS);
        }
        k += found;
    }
    /* The mean distance of two uniform positions is 1/3: position in the file and position in the pass are
       unrelated, up to a deviation of 0.236 / sqrt(10,000 blocks). */
    assert_that(fabs(away / ROWS - 1.0 / 3) < 6 * 0.236 / sqrt(ROWS / BLOCK), "%g", away / ROWS);
    mercer_dataset_free(data);
}

/* The choice of the block size: single rows in memory and in small files. */
static void test_choice_of_blocks(void **state)
{
    fixture *self = *state;
    char nothing[1];
    mercer_dataset data = {.rows = 5000000, .features = 784, .dtype = MERCER_U8, .context = self->context};
    data.x = mrc_view(nothing, data.rows, data.features, data.dtype);
    mrc_order order;
    mrc_order_init(&order, &data, 0, 1);
    assert_int_equal(order.block, 1); /* in memory */
    data.x_map = (mrc_mapping){.data = nothing, .bytes = 1};
    mrc_order_init(&order, &data, 0, 1);
    assert_int_equal(order.block, (256 << 10) / 784); /* mapped and large */
    assert_true(order.window * order.block * 784 <= 16 << 20 && order.window * order.block * 784 > 15 << 20);
    data.rows = 300000;
    mrc_order_init(&order, &data, 0, 1);
    assert_int_equal(order.block, 1); /* mapped, 235 MB */
}

/* ---- The same bytes for every way of reading --------------------------------------------------------------------- */

static const char *const augmentations[] = {NULL, "noise:sigma=10", "shift:pixels=1+flip", "mixup:alpha=0.4",
                                            "flip+mixup:alpha=1+noise:sigma=4"};

#define WIDE "teacher:d=200,centers=1"

static void check_ways(mercer_context *context, mercer_dataset *data, mercer_stream_options options)
{
    options.prefetch = MERCER_OFF;
    mercer_source plain = open_source(context, data, options);
    options.prefetch = MERCER_ON;
    mercer_source ahead = open_source(context, data, options);
    assert_true(plain.rows == ahead.rows && plain.dtype == ahead.dtype);
    pass reference = read_pass(&plain, 2, 0, 100);
    const int64_t sizes[] = {1, 100, 333, 100000};
    for (int i = plain.rows > 3000; i < 4; i++) {
        pass a = read_pass(&plain, 2, 0, sizes[i]), b = read_pass(&ahead, 2, 0, sizes[i]);
        assert_same_pass(&reference, &a, 0);
        assert_same_pass(&reference, &b, 0);
        free_pass(&a), free_pass(&b);
    }
    const int64_t skips[] = {1, plain.rows / 3, plain.rows - 1, plain.rows};
    for (int i = 0; i < 4; i++) {
        pass a = read_pass(&plain, 2, skips[i], 100), b = read_pass(&ahead, 2, skips[i], 64);
        assert_same_pass(&reference, &a, skips[i]);
        assert_same_pass(&reference, &b, skips[i]);
        free_pass(&a), free_pass(&b);
    }
    free_pass(&reference);
    mercer_source_free(&plain), mercer_source_free(&ahead);
}

static void test_ways_of_reading(void **state)
{
    fixture *self = *state;
    mercer_dataset *rows = open_rows(self->context, 2003), *wide;
    mercer_preprocess *standardize;
    assert_succeeds(self->context, mercer_preprocess_fit(&standardize, self->context, "standardize", rows));
    for (size_t a = 0; a < sizeof augmentations / sizeof *augmentations; a++)
        for (int how = SANITIZED ? (int)a % 3 : 0; how < 6; how += SANITIZED ? 5 : 1) {
            mercer_stream_options options = {.seed = 9,
                                             .augment = augmentations[a],
                                             .height = 2,
                                             .width = 3,
                                             .preprocess = how % 2 ? standardize : NULL,
                                             .block = how / 2 == 1 ? 37 : 0,
                                             .samples = how / 2 == 2 ? 4500 : 0};
            check_ways(self->context, rows, options);
        }
    mercer_preprocess_free(standardize);
    mercer_dataset_free(rows);
    /* 800 bytes per row: chunks have fewer rows than the pass, so that the ring buffer wraps around. */
    assert_succeeds(self->context, mercer_dataset_synthesize(&wide, self->context, WIDE, 100, 14000, 1));
    check_ways(self->context, wide, (mercer_stream_options){.seed = 9});
    check_ways(self->context, wide, (mercer_stream_options){.seed = 9, .augment = "mixup:alpha=1", .block = 50});
    mercer_dataset_free(wide);
}

/* After a restart or a skip in the middle, while a thread is working, the next pass is correct. */
static void test_restart_at_any_moment(void **state)
{
    fixture *self = *state;
    mercer_dataset *wide;
    assert_succeeds(self->context, mercer_dataset_synthesize(&wide, self->context, WIDE, 0, 14000, 1));
    mercer_stream_options options = {.seed = 4, .prefetch = MERCER_ON, .augment = "noise:sigma=5"};
    mercer_source source = open_source(self->context, wide, options);
    pass reference[2] = {read_pass(&source, 0, 0, 500), read_pass(&source, 1, 0, 500)};
    for (int round = SANITIZED ? 6 : 0; round < 12; round += SANITIZED ? 3 : 1) {
        mercer_batch batch;
        int64_t at = 0;
        assert_int_equal(source.restart(source.user, round % 2), 0);
        for (int i = 0; i < round; i++) {
            int64_t most = 1 + 97 * i;
            if (i % 3 == 2) {
                assert_int_equal((source.skip)(source.user, 211 * i), 0);
                at += 211 * i;
            }
            assert_int_equal(source.next(source.user, most, &batch), 0);
            for (int64_t j = 0; j < batch.X.rows; j++, at++)
                assert_memory_equal(mrc_row(&batch.X, j), mrc_row(&reference[round % 2].x, at), 200 * sizeof(float));
        }
    }
    free_pass(&reference[0]), free_pass(&reference[1]);
    mercer_source_free(&source); /* while a thread is working */
    mercer_dataset_free(wide);
}

/* Virtual samples: every row `samples / rows` times, in a new order each time; row numbers are not reported. */
static void test_virtual_samples(void **state)
{
    fixture *self = *state;
    enum { ROWS = 300, TIMES = 3 };
    mercer_dataset *data = open_rows(self->context, ROWS);
    for (int64_t block = 0; block <= 16; block += 16) {
        mercer_source source = open_source(self->context, data,
                                           (mercer_stream_options){.seed = 1, .samples = TIMES * ROWS, .block = block});
        assert_int_equal(source.rows, TIMES * ROWS);
        pass all = read_pass(&source, 0, 0, 128);
        assert_false(all.numbered);
        int counts[ROWS] = {0}, same = 0;
        for (int64_t i = 0; i < TIMES * ROWS; i++) {
            int64_t number = row_number(&all.x, i);
            assert_true(counts[number]++ == i / ROWS);
            same += i >= ROWS && number == row_number(&all.x, i - ROWS);
        }
        assert_that(same < 20, "%d places agree between repetitions", same);
        free_pass(&all);
        mercer_source_free(&source);
    }
    mercer_source few = open_source(self->context, data, (mercer_stream_options){.seed = 1, .samples = 10});
    assert_int_equal(few.rows, 10);
    pass ten = read_pass(&few, 0, 0, 3);
    free_pass(&ten);
    mercer_source_free(&few);
    mercer_dataset_free(data);
}

/* ---- Types ------------------------------------------------------------------------------------------------------- */

static void test_types(void **state)
{
    fixture *self = *state;
    mercer_context *context = self->context;
    mercer_dataset *data = open_rows(context, 50), *teacher;
    mercer_preprocess *scale;
    mercer_kernel kernel;
    assert_succeeds(context, mercer_preprocess_fit(&scale, context, "scale", NULL));
    mercer_source source = open_source(context, data, (mercer_stream_options){.preprocess = scale});
    assert_int_equal(source.dtype, MERCER_F32);
    pass all = read_pass(&source, 0, 0, 7);
    for (int64_t i = 0; i < 50; i++) {
        uint8_t row[D];
        row_bytes(all.numbers[i], row);
        for (int j = 0; j < D; j++) assert_true(((float *)mrc_row(&all.x, i))[j] == (float)(row[j] * (1.0 / 255)));
    }
    free_pass(&all);
    mercer_source_free(&source);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=10"));
    assert_true(mrc_preprocess_fold(scale, &kernel));
    source = open_source(context, data, (mercer_stream_options){.preprocess = scale});
    assert_int_equal(source.dtype, MERCER_U8);
    mercer_source_free(&source);
    mercer_preprocess_free(scale);
    mercer_dataset_free(data);
    assert_succeeds(context, mercer_dataset_synthesize(&teacher, context, "teacher:d=3,c=2", 0, 100, 1));
    source = open_source(context, teacher, (mercer_stream_options){.seed = 3});
    assert_true(source.outputs == 2 && source.features == 3 && source.dtype == MERCER_F32);
    all = read_pass(&source, 0, 0, 30);
    for (int64_t i = 0; i < 100; i++) {
        float x[3], y[2];
        mercer_matrix row = mrc_view(x, 1, 3, MERCER_F32), target = mrc_view(y, 1, 2, MERCER_F32);
        mrc_dataset_fetch(teacher, &all.numbers[i], 0, &row, &target, NULL);
        assert_memory_equal(x, mrc_row(&all.x, i), sizeof x);
        assert_memory_equal(y, mrc_row(&all.y, i), sizeof y);
    }
    free_pass(&all);
    mercer_source_free(&source);
    mercer_dataset_free(teacher);
}

/* Buffers stay bounded for any number of rows. */
static void test_memory(void **state)
{
    fixture *self = *state;
    mercer_dataset *digits;
    assert_succeeds(self->context, mercer_dataset_synthesize(&digits, self->context, "digits", 0, 1000000000, 1));
    int64_t before = self->context->bytes_now;
    mercer_source source =
        open_source(self->context, digits, (mercer_stream_options){.prefetch = MERCER_ON, .augment = "mixup:alpha=1"});
    mercer_batch batch;
    assert_int_equal(source.restart(source.user, 0), 0);
    assert_int_equal(source.next(source.user, 1000, &batch), 0);
    int64_t held = self->context->bytes_now - before;
    assert_that(held < 24 << 20, "%lld bytes", (long long)held);
    mercer_source_free(&source);
    mercer_dataset_free(digits);
}

/* ---- Invalid input -------------------------------------------------------------------------------------------- */

static void test_bad_input(void **state)
{
    fixture *self = *state;
    mercer_context *context = self->context;
    mercer_dataset *data = open_rows(context, 20), *bare;
    mercer_source out;
    const struct {
        mercer_stream_options options;
        mercer_status status;
        const char *part;
    } bad[] = {{{.block = -1}, MERCER_ERROR_ARGUMENT, "block is -1"},
               {{.samples = -5}, MERCER_ERROR_ARGUMENT, "samples is -5"},
               {{.height = -5}, MERCER_ERROR_ARGUMENT, "height"},
               {{.prefetch = (mercer_switch)7}, MERCER_ERROR_ARGUMENT, "prefetch"},
               {{.augment = "nose"}, MERCER_ERROR_ARGUMENT, "'noise'?"},
               {{.augment = "flip"}, MERCER_ERROR_ARGUMENT, "height*width*channels"},
               {{.augment = "flip", .height = 2, .width = 2}, MERCER_ERROR_SHAPE, "2 x 2 x 1"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mercer_stream_options options = bad[i].options;
        options.struct_size = sizeof options;
        assert_fails(context, mercer_source_from_dataset(&out, data, &options), bad[i].status, bad[i].part);
    }
    float numbers[4] = {1, 2, 3, 4};
    mercer_matrix x = mrc_view(numbers, 2, 2, MERCER_F32);
    mercer_preprocess *other;
    assert_succeeds(context, fit_to_matrix(&other, context, "minmax", &x));
    mercer_stream_options options = {.struct_size = sizeof options, .preprocess = other};
    assert_fails(context, mercer_source_from_dataset(&out, data, &options), MERCER_ERROR_SHAPE, "fitted to 2");
    mercer_preprocess_free(other);
    assert_fails(context, mercer_source_from_dataset(NULL, data, NULL), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(NULL, mercer_source_from_dataset(&out, NULL, NULL), MERCER_ERROR_ARGUMENT, "dataset");
    mercer_dataset_options unlabeled = {
        .struct_size = sizeof unlabeled, .x = in_folder("x.npy"), .task = MERCER_TASK_UNLABELED};
    assert_succeeds(context, mercer_dataset_open(&bare, context, &unlabeled));
    assert_fails(context, mercer_source_from_dataset(&out, bare, NULL), MERCER_ERROR_ARGUMENT, "no targets");
    mercer_dataset_free(bare);
    assert_succeeds(context, mercer_source_from_dataset(&out, data, NULL));
    assert_int_equal(out.restart(out.user, 0), 0);
    assert_int_not_equal((out.skip)(out.user, 21), 0);
    assert_non_null(strstr(out.last_error(out.user), "20 left"));
    assert_int_not_equal((out.skip)(out.user, -1), 0);
    assert_int_equal((out.skip)(out.user, 20), 0);
    mercer_source_free(&out);
    mercer_dataset_free(data);
}

/* Any allocation may fail, at creation and in a batch, without leaking memory. */
static void test_failing_allocations(void **state)
{
    fixture *self = *state;
    mercer_dataset *digits;
    assert_succeeds(self->context, mercer_dataset_synthesize(&digits, self->context, "digits", 0, 5000, 1));
    mercer_preprocess *unit;
    assert_succeeds(self->context, mercer_preprocess_fit(&unit, self->context, "unit", NULL));
    int64_t live = self->memory.live;
    mercer_stream_options options = {
        .struct_size = sizeof options, .preprocess = unit, .augment = "mixup:alpha=1", .prefetch = MERCER_ON};
    int failures = 0;
    for (int64_t at = 1;; at++) {
        mercer_source out;
        mercer_batch batch;
        self->memory.fail_at = self->memory.requests + at;
        mercer_status status = mercer_source_from_dataset(&out, digits, &options);
        bool done = false;
        if (status == MERCER_OK) {
            assert_int_equal(out.restart(out.user, 0), 0);
            done = out.next(out.user, 100, &batch) == 0;
            if (!done) assert_non_null(strstr(out.last_error(out.user), "a batch"));
            mercer_source_free(&out);
        } else {
            assert_int_equal(status, MERCER_ERROR_MEMORY);
        }
        assert_int_equal(self->memory.live, live);
        if (done) break;
        failures++;
    }
    self->memory.fail_at = 0;
    assert_true(failures > 15);
    mercer_preprocess_free(unit);
    mercer_dataset_free(digits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row_once),
        cmocka_unit_test(test_rows_are_permuted_one_by_one),
        cmocka_unit_test(test_blocks_are_local),
        cmocka_unit_test(test_choice_of_blocks),
        cmocka_unit_test(test_ways_of_reading),
        cmocka_unit_test(test_restart_at_any_moment),
        cmocka_unit_test(test_virtual_samples),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
