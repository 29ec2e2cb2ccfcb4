/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid input to trainers: the right status, a message that names the argument, unchanged weights. */
#include "support/training.h"

#include "support/info.h"
#include "support/sources.h"

enum { N = 40, P = 10, D = 3, C = 2 };

typedef struct fixture {
    task data;
    mercer_model *model;
    mercer_source source; /* a valid source; tests modify copies of it */
    mercer_train_options options;
} fixture;

static void open_fixture(fixture *f)
{
    f->data = task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F64);
    assert_succeeds(context, mercer_model_create(&f->model, context, NULL, &f->data.kernel, &f->data.z, C, MERCER_F64));
    assert_succeeds(context, source_from_matrices(&f->source, context, &f->data.x, &f->data.y, NULL, 7));
    mercer_matrix weights = model_info(f->model).weights;
    data_fill_normal(&weights, (mrc_rng){51, 1}, 0, 1);
    f->options = options_for("ep4");
    f->options.epochs = 2, f->options.batch = 8;
}

static void close_fixture(fixture *f)
{
    mercer_source_free(&f->source);
    mercer_model_free(f->model);
    task_close(&f->data);
}

static void untouched(fixture *f, const char *what)
{
    mercer_matrix weights = model_info(f->model).weights, fresh = data_matrix(P, C, 0, MERCER_F64);
    data_fill_normal(&fresh, (mrc_rng){51, 1}, 0, 1);
    assert_that(memcmp(weights.data, fresh.data, P * C * sizeof(double)) == 0, "%s: the weights were written", what);
    free(fresh.data);
}

/* Checks that creating a trainer with these options fails. */
static void refuse_options(fixture *f, mercer_status status, const char *part)
{
    mercer_trainer *trainer = (mercer_trainer *)f;
    assert_fails(context, mercer_trainer_create(&trainer, f->model, NULL, &f->options), status, part);
    assert_null(trainer);
}

/* Checks that creating a trainer succeeds, but that fit fails on the source. */
static void refuse_source(fixture *f, const mercer_source *source, mercer_status status, const char *part)
{
    mercer_trainer *trainer;
    mercer_report report = {.struct_size = sizeof report, .epochs = 77};
    assert_succeeds(context, mercer_trainer_create(&trainer, f->model, NULL, &f->options));
    assert_fails(context, mercer_trainer_fit(trainer, source, &report), status, part);
    assert_int_equal(report.epochs, 77);
    untouched(f, part);
    mercer_trainer_free(trainer);
}

static void test_null(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    mercer_model *model;
    mercer_source source;
    mercer_comm *comm;
    mercer_trainer *trainer;
    mercer_report report = {.struct_size = sizeof report};
    const mercer_kernel *kernel = &f.data.kernel;
    assert_fails(context, mercer_model_create(NULL, context, NULL, kernel, &f.data.z, C, 0), MERCER_ERROR_ARGUMENT,
                 "out");
    assert_fails(NULL, mercer_model_create(&model, NULL, NULL, kernel, &f.data.z, C, 0), MERCER_ERROR_ARGUMENT,
                 "context");
    assert_fails(context, mercer_model_create(&model, context, NULL, NULL, &f.data.z, C, 0), MERCER_ERROR_ARGUMENT,
                 "kernel");
    assert_fails(context, mercer_model_create(&model, context, NULL, kernel, NULL, C, 0), MERCER_ERROR_ARGUMENT,
                 "centers");
    assert_null(model);
    assert_fails(NULL, mercer_model_predict(NULL, &f.data.y, &f.data.x), MERCER_ERROR_ARGUMENT, "model");
    assert_fails(context, mercer_model_predict(f.model, NULL, &f.data.x), MERCER_ERROR_ARGUMENT, "F");
    assert_fails(context, mercer_model_predict(f.model, &f.data.y, NULL), MERCER_ERROR_ARGUMENT, "X");
    assert_fails(NULL, mercer_model_classify(NULL, NULL, &f.data.x), MERCER_ERROR_ARGUMENT, "model");
    assert_fails(context, mercer_model_classify(f.model, NULL, &f.data.x), MERCER_ERROR_ARGUMENT, "labels");
    assert_fails(context, source_from_matrices(NULL, context, &f.data.x, &f.data.y, NULL, 1), MERCER_ERROR_ARGUMENT,
                 "out");
    assert_fails(context, source_from_matrices(&source, context, NULL, &f.data.y, NULL, 1), MERCER_ERROR_ARGUMENT, "X");
    assert_fails(context, source_from_matrices(&source, context, &f.data.x, NULL, NULL, 1), MERCER_ERROR_ARGUMENT, "Y");
    assert_fails(context, source_from_labels(&source, context, &f.data.x, NULL, 3, NULL, 1), MERCER_ERROR_ARGUMENT,
                 "labels");
    mercer_comm_options ranks = MERCER_INIT(mercer_comm_options);
    ranks.kind = "self", ranks.shards = 65537;
    assert_fails(NULL, mercer_comm_create(&comm, NULL, &ranks), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(context, mercer_comm_create(NULL, context, &ranks), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(context, mercer_comm_create(&comm, context, &ranks), MERCER_ERROR_ARGUMENT, "shards is 65537");
    assert_fails(context, mercer_trainer_create(NULL, f.model, NULL, NULL), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(NULL, mercer_trainer_create(&trainer, NULL, NULL, NULL), MERCER_ERROR_ARGUMENT, "model");
    assert_fails(NULL, mercer_trainer_fit(NULL, &f.source, NULL), MERCER_ERROR_ARGUMENT, "trainer");
    assert_fails(NULL, mercer_trainer_step(NULL, &f.data.x, &f.data.y, NULL), MERCER_ERROR_ARGUMENT, "trainer");
    assert_fails(NULL, mercer_trainer_finish(NULL), MERCER_ERROR_ARGUMENT, "trainer");
    assert_fails(NULL, mercer_trainer_report(NULL, &report), MERCER_ERROR_ARGUMENT, "trainer");
    mercer_plan plan = MERCER_INIT(mercer_plan);
    assert_fails(NULL, mercer_trainer_plan(NULL, &plan, &f.source), MERCER_ERROR_ARGUMENT, "trainer");
    assert_succeeds(context, mercer_trainer_create(&trainer, f.model, NULL, NULL));
    assert_fails(context, mercer_trainer_plan(trainer, NULL, &f.source), MERCER_ERROR_ARGUMENT, "out");
    plan.struct_size = 3;
    assert_fails(context, mercer_trainer_plan(trainer, &plan, &f.source), MERCER_ERROR_ARGUMENT, "sizeof(mercer_plan)");
    mercer_trainer_free(trainer);
    refuse_source(&f, NULL, MERCER_ERROR_ARGUMENT, "source");
    mercer_model_free(NULL), mercer_trainer_free(NULL), mercer_comm_free(NULL), mercer_source_free(NULL);
    untouched(&f, "NULL");
    close_fixture(&f);
}

/* ---- Sources ------------------------------------------------------------------------------------------------- */

/* A user-defined source with an error at one point. */
typedef struct hostile {
    const mercer_source *good;
    int64_t calls;
    int64_t wrong_at; /* the call of next (from 1) that fails */
    enum { FAIL, NAN_X, NAN_Y, NEGATIVE, ROWS, NO_ROWS, MANY, DTYPE, WIDE, EMPTY_PASS, FAIL_RESTART } how;
    double weights[N];
    int64_t rows[N];
    double x[2 * N * D], y[2 * N * C];
} hostile;

static int hostile_restart(void *user, int64_t epoch)
{
    hostile *self = user;
    if (self->how == FAIL_RESTART && epoch == 0) return 1;
    return self->good->restart(self->good->user, epoch);
}

static int hostile_next(void *user, int64_t most, mercer_batch *batch)
{
    hostile *self = user;
    if (self->good->next(self->good->user, most, batch)) return 1;
    if (++self->calls < self->wrong_at || batch->X.rows == 0) return 0;
    memcpy(self->x, batch->X.data, (size_t)(batch->X.rows * D) * sizeof(double));
    memcpy(self->y, batch->Y.data, (size_t)(batch->X.rows * C) * sizeof(double));
    memcpy(self->rows, batch->rows, (size_t)batch->X.rows * sizeof(int64_t));
    batch->X.data = self->x, batch->Y.data = self->y, batch->rows = self->rows;
    switch (self->how) {
        case FAIL: return 1;
        case NAN_X: self->x[1] = NAN; break;
        case NAN_Y: self->y[1] = INFINITY; break;
        case NEGATIVE: self->weights[0] = -1, batch->weights = self->weights; break;
        case ROWS: self->rows[0] = N; break;
        case NO_ROWS: batch->rows = NULL; break;
        case MANY: batch->X.rows = batch->Y.rows = most + 1; break;
        case DTYPE: batch->X.dtype = MERCER_F32; break;
        case WIDE: batch->Y.cols = C + 1, batch->Y.ld = C + 1; break;
        case EMPTY_PASS: batch->X.rows = batch->Y.rows = 0; break;
        case FAIL_RESTART: break;
    }
    return 0;
}

static const char *hostile_error(void *user)
{
    (void)user;
    return "disk on fire";
}

static void test_hostile_sources(void **state)
{
    (void)state;
    static const struct {
        int how;
        mercer_status status;
        const char *part;
    } cases[] = {{FAIL, MERCER_ERROR_CALLBACK, "disk on fire"},
                 {FAIL_RESTART, MERCER_ERROR_CALLBACK, "on fire"},
                 {NAN_X, MERCER_ERROR_DATA, "source: X"},
                 {NAN_Y, MERCER_ERROR_DATA, "source: Y"},
                 {NEGATIVE, MERCER_ERROR_DATA, "weight"},
                 {ROWS, MERCER_ERROR_DATA, "row number"},
                 {MANY, MERCER_ERROR_SHAPE, "rows"},
                 {DTYPE, MERCER_ERROR_DTYPE, "source: X"},
                 {WIDE, MERCER_ERROR_SHAPE, "source: Y"},
                 {EMPTY_PASS, MERCER_ERROR_DATA, "samples"}};
    static const char *const solvers[] = {"ep4", "direct", "cg", "ep3", "gd"};
    fixture f;
    open_fixture(&f);
    for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (int64_t at = 1; at <= 9; at += 4) { /* in the sampling pass, and in later epochs */
                static hostile bad;
                f.options.solver = solvers[s], f.options.batch = s == 4 ? 0 : 8;
                bool exact = s == 1 || s == 2;
                if ((exact || s == 4) && at > 1) continue; /* few batches: call `at` may never happen */
                if (cases[i].how == EMPTY_PASS && (at > 1 || exact)) continue;
                bad = (hostile){.good = &f.source, .wrong_at = at, .how = cases[i].how};
                mercer_source source = f.source;
                source.user = &bad, source.restart = hostile_restart, source.next = hostile_next;
                source.last_error = hostile_error;
                refuse_source(&f, &source, cases[i].status, cases[i].part);
            }
    close_fixture(&f);
}

static void test_wrong_announcements(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    mercer_source source = f.source;
    source.features = D + 1;
    refuse_source(&f, &source, MERCER_ERROR_SHAPE, "features");
    source = f.source, source.outputs = C - 1;
    refuse_source(&f, &source, MERCER_ERROR_SHAPE, "outputs");
    source = f.source, source.rows = 0;
    refuse_source(&f, &source, MERCER_ERROR_SHAPE, "no samples");
    source = f.source, source.next = NULL;
    refuse_source(&f, &source, MERCER_ERROR_ARGUMENT, "next");
    source = f.source, source.restart = NULL;
    refuse_source(&f, &source, MERCER_ERROR_ARGUMENT, "restart");
    source = f.source, source.struct_size = 8;
    refuse_source(&f, &source, MERCER_ERROR_ARGUMENT, "struct_size");
    close_fixture(&f);
}

/* Solvers whose centers are the samples: other centers, too few samples, or rows without row numbers. */
static void test_centers_that_are_not_samples(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    f.options.solver = "ep2";
    refuse_source(&f, &f.source, MERCER_ERROR_SHAPE, "centers");
    mercer_source ten;
    mercer_matrix x = mrc_rows(&f.data.x, 0, P), y = mrc_rows(&f.data.y, 0, P);
    assert_succeeds(context, source_from_matrices(&ten, context, &x, &y, NULL, 7));
    refuse_source(&f, &ten, MERCER_ERROR_DATA, "differs");
    mercer_source_free(&ten);
    assert_succeeds(context, source_from_matrices(&ten, context, &f.data.z, &y, NULL, 7));
    static hostile bad;
    for (int64_t at = 1; at <= 4; at++) { /* in the first call, or in a later one */
        bad = (hostile){.good = &ten, .wrong_at = at, .how = NO_ROWS};
        mercer_source source = ten;
        source.user = &bad, source.restart = hostile_restart, source.next = hostile_next;
        refuse_source(&f, &source, MERCER_ERROR_UNSUPPORTED, "row numbers");
    }
    mercer_source_free(&ten);
    close_fixture(&f);
}

/* ---- Options ------------------------------------------------------------------------------------------------- */

static void test_options(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    mercer_train_options good = f.options;
    f.options.solver = "eigenpro";
    refuse_options(&f, MERCER_ERROR_ARGUMENT,
                   "auto, krr, direct, cg, ep4, ep3, paper, ep3-exact, ep2, ep1, richardson, pegasos, nytro, gd");
    f.options = good, f.options.projector = "qr";
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "auto, exact, ep2, pcg, bgs");
    f.options = good, f.options.step_factor = 1;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "step_factor");
    f.options = good, f.options.step_factor = NAN;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "step_factor");
    f.options = good, f.options.lambda = -1e-9;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "lambda");
    f.options = good, f.options.lambda = INFINITY;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "lambda");
    f.options = good, f.options.patience = 2;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "patience");
    f.options = good, f.options.carry = (mercer_switch)9;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "carry");
    f.options = good, f.options.struct_size = 4;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "struct_size");
    f.options = good, f.options.solver = "ep3", f.options.period = 4;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "solver ep3");
    f.options = good, f.options.solver = "cg", f.options.average = MERCER_ON;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "average");
    int64_t *const fields[] = {&f.options.epochs,          &f.options.batch,
                               &f.options.nystrom,         &f.options.period,
                               &f.options.projector_block, &f.options.projector_nystrom,
                               &f.options.polish,          &f.options.projector_eigenpairs,
                               &f.options.memory,          &f.options.projector_passes};
    const char *const names[] = {"epochs",          "batch",
                                 "nystrom",         "period",
                                 "projector_block", "projector_nystrom",
                                 "polish",          "projector_eigenpairs",
                                 "memory",          "projector_passes"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        f.options = good, *fields[i] = -1;
        refuse_options(&f, MERCER_ERROR_ARGUMENT, names[i]);
    }
    f.options = good, f.options.validation_X = &f.data.x;
    refuse_options(&f, MERCER_ERROR_ARGUMENT, "validation_Y");
    mercer_matrix narrow = f.data.x;
    narrow.cols = D - 1;
    f.options.validation_X = &narrow, f.options.validation_Y = &f.data.y;
    refuse_options(&f, MERCER_ERROR_SHAPE, "validation_X");
    mercer_matrix few = mrc_rows(&f.data.y, 0, N - 1);
    f.options.validation_X = &f.data.x, f.options.validation_Y = &few;
    refuse_options(&f, MERCER_ERROR_SHAPE, "validation_Y");
    untouched(&f, "options");
    close_fixture(&f);
}

/* A struct of an older or newer caller: fields that are missing count as 0, fields that are unknown must be 0. */
static void test_struct_sizes(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    struct {
        mercer_train_options known;
        int64_t more;
    } newer = {.known = f.options};
    mercer_trainer *trainer;
    newer.known.struct_size = sizeof newer;
    assert_succeeds(context, mercer_trainer_create(&trainer, f.model, NULL, &newer.known));
    mercer_trainer_free(trainer);
    newer.more = 1;
    assert_fails(context, mercer_trainer_create(&trainer, f.model, NULL, &newer.known), MERCER_ERROR_ARGUMENT, "field");
    f.options.struct_size = offsetof(mercer_train_options, projector);
    f.options.projector = "no such thing"; /* not in the caller's version of the struct */
    assert_succeeds(context, mercer_trainer_create(&trainer, f.model, NULL, &f.options));
    struct {
        size_t struct_size;
        char rest[64];
    } small = {.struct_size = sizeof small};
    memset(small.rest, 0x3c, sizeof small.rest);
    mercer_report *report = (mercer_report *)(void *)&small;
    small.struct_size = sizeof(size_t) + 8;
    assert_succeeds(context, mercer_trainer_fit(trainer, &f.source, report));
    assert_int_equal(small.struct_size, sizeof(size_t) + 8);
    for (size_t i = 8; i < sizeof small.rest; i++) assert_int_equal(small.rest[i], 0x3c);
    mercer_trainer_free(trainer);
    close_fixture(&f);
}

static void test_steps(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    mercer_trainer *trainer;
    mercer_matrix x = f.data.x, y = f.data.y, bad;
    double weights[N] = {-1};
    assert_succeeds(context, mercer_trainer_create(&trainer, f.model, NULL, &f.options));
    assert_fails(context, mercer_trainer_step(trainer, NULL, &y, NULL), MERCER_ERROR_ARGUMENT, "X");
    assert_fails(context, mercer_trainer_step(trainer, &x, NULL, NULL), MERCER_ERROR_ARGUMENT, "Y");
    bad = mrc_rows(&x, 0, 0);
    assert_fails(context, mercer_trainer_step(trainer, &bad, &y, NULL), MERCER_ERROR_SHAPE, "X");
    bad = mrc_rows(&y, 0, N - 1);
    assert_fails(context, mercer_trainer_step(trainer, &x, &bad, NULL), MERCER_ERROR_SHAPE, "Y");
    assert_fails(context, mercer_trainer_step(trainer, &x, &y, weights), MERCER_ERROR_DATA, "weights");
    double saved = mrc_load(&x, 1, 1);
    mrc_store(&x, 1, 1, NAN);
    assert_fails(context, mercer_trainer_step(trainer, &x, &y, NULL), MERCER_ERROR_DATA, "X");
    mrc_store(&x, 1, 1, saved);
    untouched(&f, "steps");
    assert_succeeds(context, mercer_trainer_step(trainer, &x, &y, NULL));
    bad = x, bad.dtype = MERCER_F32;
    assert_fails(context, mercer_trainer_step(trainer, &bad, &y, NULL), MERCER_ERROR_DTYPE, "X");
    mercer_trainer_free(trainer);
    const char *const others[] = {"direct", "cg", "ep2", "richardson"};
    for (int i = 0; i < 4; i++) {
        f.options.solver = others[i];
        assert_succeeds(context, mercer_trainer_create(&trainer, f.model, NULL, &f.options));
        assert_fails(context, mercer_trainer_step(trainer, &x, &y, NULL), MERCER_ERROR_UNSUPPORTED, others[i]);
        mercer_trainer_free(trainer);
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_hostile_sources),
        cmocka_unit_test(test_wrong_announcements),
        cmocka_unit_test(test_centers_that_are_not_samples),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_struct_sizes),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
