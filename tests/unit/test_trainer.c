/* SPDX-License-Identifier: BSD-3-Clause */
/* Training from the user's view: progress, early stopping, the watchdog, streaming, classification, reports,
   sources, prediction. */
#include "support/training.h"

#include "support/info.h"
#include "support/sources.h"

enum { N = 400, P = 60, D = 3, C = 2 };

static task usual_task(void)
{
    return task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F64);
}

static mercer_train_options usual_options(void)
{
    mercer_train_options options = options_for("ep4");
    options.epochs = 8, options.batch = 20, options.nystrom = 200, options.eigenpairs = 6;
    return options;
}

/* Returns the mean squared error of weights on the task's samples; of the zero model if alpha has no data. */
static double loss_of(const task *t, dense alpha)
{
    dense y = dense_of(&t->y), f = dense_new(y.rows, y.cols);
    if (alpha.a) {
        dense k = dense_kernel(&t->kernel, &t->x, &t->z);
        free(f.a);
        f = dense_times(false, false, k, alpha);
        free(k.a);
    }
    double distance = dense_distance(f, y), loss = distance * distance / (double)(y.rows * y.cols);
    free(y.a), free(f.a);
    return loss;
}

/* ---- Progress and early stopping ----------------------------------------------------------------------------- */

typedef struct log {
    int64_t stop_at, calls;
    mercer_progress last[64];
} log_t;

static int write_log(void *user, const mercer_progress *progress)
{
    log_t *self = user;
    self->last[self->calls++] = *progress;
    return self->calls == self->stop_at;
}

static void test_progress(void **state)
{
    (void)state;
    const char *const solvers[] = {"ep4", "cg", "nytro"};
    for (int i = 0; i < 3; i++) {
        task t = usual_task();
        mercer_train_options options = usual_options();
        log_t log = {0};
        mercer_report report;
        options.solver = solvers[i], options.progress = write_log, options.progress_user = &log;
        if (i == 2) options.batch = 0;
        dense whole = train(&t, &options, &report);
        assert_int_equal(log.calls, report.epochs);
        assert_int_equal(report.stopped, 0);
        for (int64_t k = 0; k < log.calls; k++) {
            const mercer_progress *at = &log.last[k];
            assert_int_equal(at->struct_size, sizeof *at);
            assert_int_equal(at->epoch, k + 1);
            assert_int_equal(at->epochs, options.epochs);
            assert_int_equal(at->samples, (k + 1) * N);
            assert_true(at->seconds >= 0 && at->train_loss > 0 && isnan(at->validation_loss));
            assert_true(isnan(at->validation_accuracy) && (at->step > 0 || i == 1));
        }
        log = (log_t){.stop_at = 2};
        dense part = train(&t, &options, &report);
        assert_int_equal(log.calls, 2);
        assert_int_equal(report.stopped, 2);
        assert_int_equal(report.epochs, 2);
        assert_true(dense_norm(part) > 0 && dense_distance(part, whole) > 0);
        free(whole.a), free(part.a);
        task_close(&t);
    }
}

typedef struct phase_log {
    char all[1024];  /* phases in order, consecutive repeats merged */
    char latest[64]; /* latest phase */
    const char *stop_in;
    int calls, late;
    bool reads_between; /* true for cg and direct, which read samples before set-up */
    double ready;
} phase_log;

static int write_phases(void *user, const mercer_progress *progress)
{
    phase_log *self = user;
    self->calls++;
    if (!progress->phase) {
        self->late = 1;
        return 0;
    }
    assert_true(isnan(progress->train_loss) && progress->phase_share <= 1);
    assert_true(!self->late || self->reads_between);
    if (strcmp(progress->phase, "ready") == 0) self->ready = progress->phase_share;
    size_t used = strlen(self->all);
    if (strcmp(self->latest, progress->phase) != 0)
        snprintf(self->all + used, sizeof self->all - used, "%s;", progress->phase);
    snprintf(self->latest, sizeof self->latest, "%s", progress->phase);
    return self->stop_in && strcmp(progress->phase, self->stop_in) == 0;
}

/* Long phases before the first step report progress, and a request to stop during them is obeyed; with
   progress_seconds = 0 they report nothing. */
static void test_setup_reports_progress(void **state)
{
    (void)state;
    static const struct {
        const char *solver, *projector, *phases[3];
    } cases[] = {{"ep4", "bgs", {"sample;", "eigensystem;", "projector;"}},
                 {"ep4", "exact", {"eigensystem;", "projector;", "factorization;"}},
                 {"cg", NULL, {"kernel matrix*centers;", "factorization;", ""}},
                 {"direct", NULL, {"kernel matrix*centers;", "factorization;", ""}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        task t = usual_task();
        mercer_train_options options = usual_options();
        mercer_report report;
        bool exact = cases[i].projector == NULL;
        phase_log log = {.reads_between = exact};
        bool direct = strcmp(cases[i].solver, "direct") == 0;
        options.solver = cases[i].solver, options.projector = cases[i].projector;
        options.progress = write_phases, options.progress_user = &log;
        options.progress_seconds = direct ? 1e9 : 1e-9; /* a new phase is always reported at once */
        dense told = train(&t, &options, &report);
        for (int k = 0; k < 3; k++)
            assert_that(mentions(log.all, cases[i].phases[k]), "%s: no %s in %s", cases[i].solver, cases[i].phases[k],
                        log.all);
        assert_true(log.ready == (direct ? 0 : 1));
        log = (phase_log){0};
        options.progress_seconds = 0;
        dense silent = train(&t, &options, &report);
        assert_string_equal(log.all, "");
        assert_true(log.calls == report.epochs && dense_distance(told, silent) == 0);
        log = (phase_log){.reads_between = exact,
                          .stop_in = cases[i].phases[1][0] == 'f' ? "factorization" : "eigensystem"};
        options.progress_seconds = 1e-9;
        dense stopped = train(&t, &options, &report);
        assert_int_equal(report.stopped, 2);
        assert_true(report.epochs <= 1);
        free(told.a), free(silent.a), free(stopped.a);
        task_close(&t);
    }
}

/* Validation labels are 0, and steps of full batches are less than 1 / mu: every eigencomponent of f grows from 0
   toward its limit. Every epoch is therefore worse than the first, which is returned. */
static void test_patience(void **state)
{
    (void)state;
    task t = usual_task();
    mercer_train_options options = usual_options();
    log_t log = {.stop_at = 1};
    mercer_report report;
    mercer_matrix zero = data_matrix(N, C, 0, MERCER_F64);
    options.solver = "nytro", options.batch = 0, options.step_factor = 0.4;
    options.progress = write_log, options.progress_user = &log;
    dense first = train(&t, &options, NULL);
    log = (log_t){0};
    options.validation_X = &t.x, options.validation_Y = &zero, options.patience = 3;
    dense stopped = train(&t, &options, &report);
    assert_int_equal(log.calls, 4);
    assert_int_equal(report.stopped, 1);
    assert_true(dense_distance(first, stopped) == 0);
    assert_true(log.last[0].validation_loss < log.last[1].validation_loss);
    task exact_times = t;
    exact_times.y = zero;
    double loss = loss_of(&exact_times, stopped);
    assert_that(fabs(report.validation_loss - loss) <= 1e-12 * loss, "%g, recomputed %g", report.validation_loss, loss);
    free(first.a), free(stopped.a), free(zero.data);
    task_close(&t);
}

/* ---- The watchdog -------------------------------------------------------------------------------------------- */

/* A source whose sampling pass returns shrunken data: the step rule then underestimates the size of the data. */
typedef struct liar {
    mercer_source good;
    double factor; /* scale of the data in the sampling pass */
    bool sampling;
    double x[N * D];
} liar;

static int liar_restart(void *user, int64_t epoch)
{
    liar *self = user;
    self->sampling = epoch < 0;
    return self->good.restart(self->good.user, epoch);
}

static int liar_next(void *user, int64_t most, mercer_batch *batch)
{
    liar *self = user;
    if (self->good.next(self->good.user, most, batch)) return 1;
    for (int64_t i = 0; i < batch->X.rows * D && self->sampling; i++)
        self->x[i] = self->factor * ((double *)batch->X.data)[i];
    if (self->sampling) batch->X.data = self->x;
    return 0;
}

static void test_watchdog(void **state)
{
    (void)state;
    static const char *const solvers[] = {"ep4", "ep3", "ep3-exact", "nytro"};
    for (int s = 0; s < 4; s++)
        for (double factor = SANITIZED ? 0.3 / pow(10, s % 3) : 0.3; factor > 1e-3; factor /= SANITIZED ? 1000 : 10) {
            task t = task_open(context, "polynomial:degree=2,scale=1,offset=1", (sizes){N, 8, D, C}, 1, MERCER_F64);
            mercer_model *model;
            mercer_trainer *trainer;
            static liar self;
            self = (liar){.factor = factor};
            mercer_report report = {.struct_size = sizeof report};
            mercer_train_options options = usual_options();
            options.solver = solvers[s], options.projector = "exact", options.step_factor = 0.99,
            options.eigenpairs = 3;
            if (s >= 2) options.batch = 0;
            options.epochs = 30;
            assert_succeeds(context, mercer_model_create(&model, context, NULL, &t.kernel, &t.z, C, MERCER_F64));
            assert_succeeds(context, source_from_matrices(&self.good, context, &t.x, &t.y, NULL, 7));
            mercer_source source = self.good;
            source.user = &self, source.restart = liar_restart, source.next = liar_next;
            assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
            mercer_status status = mercer_trainer_fit(trainer, &source, &report);
            mercer_matrix weights = model_info(model).weights;
            dense alpha = dense_of(&weights);
            double loss = loss_of(&t, alpha), zero = loss_of(&t, (dense){0});
            if (status == MERCER_OK) {
                assert_that(report.halvings > 0, "%s: it did not notice (factor %g)", solvers[s], factor);
                assert_that(loss <= 2 * zero, "%s, factor %g: loss %g, of the zero model %g", solvers[s], factor, loss,
                            zero);
            } else { /* failed: the weights must be unchanged */
                assert_int_equal(status, MERCER_ERROR_NUMERIC);
                assert_true(dense_norm(alpha) == 0);
            }
            free(alpha.a);
            mercer_trainer_free(trainer);
            mercer_source_free(&self.good);
            mercer_model_free(model);
            task_close(&t);
        }
}

/* Very large labels give scaled weights or an error, never NaN or a crash. */
static void test_huge_labels(void **state)
{
    (void)state;
    const char *const solvers[] = {"ep4", "ep3", "direct", "cg", "gd", "ep3-exact"};
    for (int s = 0; s < 6; s++)
        for (int single = SANITIZED ? s % 2 : 0; single < (SANITIZED ? s % 2 + 1 : 2); single++) {
            mercer_dtype real = single ? MERCER_F32 : MERCER_F64;
            task t = task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, C}, 1, real);
            mercer_train_options options = usual_options();
            options.solver = solvers[s], options.batch = s >= 4 ? 0 : 20;
            dense usual = train_as(&t, &options, 0, real, NULL);
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < C; j++) mrc_store(&t.y, i, j, 0x1p100 * mrc_load(&t.y, i, j)); /* about 1e30 */
            dense huge = train_as(&t, &options, 0, real, NULL);
            for (int64_t i = 0; i < P * C; i++) huge.a[i] *= 0x1p-100;
            /* Scaling by a power of 2 changes no rounding, unless values over- or underflow. */
            assert_that(dense_distance(usual, huge) == 0, "%s f%d: %g", solvers[s], single ? 32 : 64,
                        dense_distance(usual, huge));
            free(usual.a), free(huge.a);
            task_close(&t);
        }
}

/* ---- Streaming ----------------------------------------------------------------------------------------------- */

/* If the same passes are submitted batch by batch, the weights differ, because there is no schedule, but the fit must
   be equally good. */
static void test_streaming(void **state)
{
    (void)state;
    task t = usual_task();
    mercer_train_options options = usual_options();
    mercer_report report = {.struct_size = sizeof report};
    mercer_model *model;
    mercer_trainer *trainer;
    dense fitted = train(&t, &options, NULL);
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &t.kernel, &t.z, C, MERCER_F64));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    assert_succeeds(context, mercer_trainer_finish(trainer)); /* no batch yet: nothing to do */
    for (int pass = 0; pass < 8; pass++)
        for (int64_t first = 0; first < N; first += 200) {
            mercer_matrix x = mrc_rows(&t.x, first, 200), y = mrc_rows(&t.y, first, 200);
            assert_succeeds(context, mercer_trainer_step(trainer, &x, &y, NULL));
        }
    assert_succeeds(context, mercer_trainer_finish(trainer));
    assert_succeeds(context, mercer_trainer_report(trainer, &report));
    mercer_matrix weights = model_info(model).weights;
    dense streamed = dense_of(&weights);
    double one = loss_of(&t, fitted), other = loss_of(&t, streamed), zero = loss_of(&t, (dense){0});
    /* Both are within a few percent of the optimum, which is the noise that no model fits. */
    assert_that(other <= 1.1 * one && other < 0.5 * zero, "streamed %g, fitted %g, zero %g", other, one, zero);
    assert_int_equal(report.samples, 8 * N);
    assert_true(report.steps > 0 && report.projections > 0 && report.train_loss > 0);
    free(fitted.a), free(streamed.a);
    mercer_trainer_free(trainer);
    mercer_model_free(model);
    task_close(&t);
}

/* ---- Classification ------------------------------------------------------------------------------------------ */

static void test_classification(void **state)
{
    (void)state;
    enum { CLASSES = 3 };
    const char *const solvers[] = {"ep4", "cg", "direct"};
    task t = usual_task();
    int32_t labels[N], got[N];
    mercer_matrix one_hot = data_matrix(N, CLASSES, 0, MERCER_F32), f = data_matrix(N, CLASSES, 0, MERCER_F64);
    for (int64_t i = 0; i < N; i++) { /* clusters 8 deviations apart: every method classifies them correctly */
        labels[i] = (int32_t)(i % CLASSES);
        mrc_store(&t.x, i, 0, 0.5 * mrc_load(&t.x, i, 0) + 4.0 * labels[i]);
        mrc_store(&one_hot, i, labels[i], 1);
        if (i < P) memcpy(mrc_row(&t.z, i), mrc_row(&t.x, i), D * sizeof(double));
    }
    for (int s = 0; s < 3; s++) {
        mercer_model *model;
        mercer_source source;
        mercer_trainer *trainer;
        mercer_report report = {.struct_size = sizeof report};
        mercer_train_options options = usual_options();
        options.solver = solvers[s], options.classification = MERCER_ON;
        options.validation_X = &t.x, options.validation_Y = &one_hot;
        assert_succeeds(context, mercer_model_create(&model, context, NULL, &t.kernel, &t.z, CLASSES, 0));
        assert_succeeds(context, source_from_labels(&source, context, &t.x, labels, CLASSES, NULL, 7));
        assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
        assert_succeeds(context, mercer_trainer_fit(trainer, &source, &report));
        assert_succeeds(context, mercer_model_classify(model, got, &t.x));
        assert_succeeds(context, mercer_model_predict(model, &f, &t.x));
        int64_t right = 0;
        for (int64_t i = 0; i < N; i++) {
            int32_t best = 0;
            for (int32_t j = 1; j < CLASSES; j++)
                if (mrc_load(&f, i, j) > mrc_load(&f, i, best)) best = j;
            assert_int_equal(got[i], best);
            right += got[i] == labels[i];
        }
        assert_that(right >= N * 99 / 100, "%s: %d of %d right", solvers[s], (int)right, N);
        assert_true(fabs(report.validation_accuracy - (double)right / N) < 1e-12);
        if (s == 0) assert_true(report.train_accuracy > 0.9 && report.train_accuracy <= 1);
        mercer_trainer_free(trainer);
        mercer_source_free(&source);
        mercer_model_free(model);
    }
    free(one_hot.data), free(f.data);
    task_close(&t);
}

/* ---- Reports ------------------------------------------------------------------------------------------------- */

static void test_report(void **state)
{
    (void)state;
    task t = usual_task();
    const char *const solvers[] = {"ep4", "ep3", "direct", "cg", "gd", "ep3-exact", "nytro"};
    for (int s = 0; s < 7; s++) {
        mercer_train_options options = usual_options();
        options.solver = solvers[s], options.batch = s >= 4 ? 0 : 20;
        mercer_report r;
        dense alpha = train(&t, &options, &r);
        bool exact = s == 2 || s == 3;
        assert_string_equal(r.plan->solver, solvers[s]);
        assert_true(r.epochs > 0 && r.epochs <= options.epochs && r.halvings == 0 && r.stopped == 0);
        assert_int_equal(r.samples, r.epochs * N);
        assert_true(r.seconds > 0 && r.setup_seconds <= r.seconds && r.forward_seconds <= r.seconds);
        assert_that(r.flops > 2.0 * N * P * D, "%s: %g flops", solvers[s], r.flops);
        assert_that(r.peak_bytes > P * C * 8 && r.peak_bytes < 1 << 30, "%s: %lld bytes", solvers[s],
                    (long long)r.peak_bytes);
        assert_true(isnan(r.validation_loss) && isnan(r.validation_accuracy) && isnan(r.train_accuracy));
        if (exact) {
            /* direct reports the loss of the weights it returns: kernel values, and hence their sums, are accurate
               to V u. */
            double loss = loss_of(&t, alpha), sum = 0, phases = r.setup_seconds + r.forward_seconds;
            for (int64_t i = 0; i < P * C; i++) sum += fabs(alpha.a[i]);
            double allowed = s == 2 ? 4 * V * U * sum * sqrt(loss) : loss;
            assert_that(fabs(r.train_loss - loss) <= allowed, "%s: loss %g, is %g", solvers[s], r.train_loss, loss);
            assert_true(r.setup_seconds > 0 && r.forward_seconds > 0 && r.gradient_seconds > 0);
            assert_true(r.projection_seconds > 0 && phases + r.gradient_seconds + r.projection_seconds <= r.seconds);
            free(alpha.a);
            continue;
        }
        assert_true(r.train_loss > 0 && r.tail > 0 && r.beta > 0 && r.beta <= 1);
        assert_int_equal(r.steps, r.epochs * (s >= 4 ? 1 : N / 20));
        if (s == 4) assert_int_equal(r.projections, 0);
        if (s != 4) assert_true(r.projections > 0 && r.projections <= r.steps && r.projection_residual_mean >= 0);
        if (s == 5 || s == 6) assert_true(r.projection_residual_last < 1e-9); /* exact projection: rounding only */
        free(alpha.a);
    }
    task_close(&t);
}

/* The peak memory of a context never decreases. */
static void test_context_peak(void **state)
{
    (void)state;
    mercer_context_info before = {.struct_size = sizeof before}, after = before;
    mercer_matrix big = data_matrix(20000, 50, 0, MERCER_F64);
    mercer_model *model;
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "linear"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &big, 50, 0));
    mercer_model_free(model);
    assert_succeeds(context, mercer_context_query(context, &before));
    task t = usual_task();
    mercer_train_options options = usual_options();
    dense alpha = train(&t, &options, NULL);
    assert_succeeds(context, mercer_context_query(context, &after));
    assert_that(after.bytes_peak >= before.bytes_peak, "%lld, before training %lld", (long long)after.bytes_peak,
                (long long)before.bytes_peak);
    free(alpha.a), free(big.data);
    task_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress),       cmocka_unit_test(test_setup_reports_progress),
        cmocka_unit_test(test_patience),       cmocka_unit_test(test_watchdog),
        cmocka_unit_test(test_huge_labels),    cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_classification), cmocka_unit_test(test_report),
        cmocka_unit_test(test_context_peak),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
