/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fit follows the plan that mercer_trainer_plan shows. Set-up may refine sizes, and a solver that breaks down is
 * replaced; the plan's text reports both.
 */
#include "support/folder.h"
#include "support/plans.h"
#include "support/sources.h"
#include "support/training.h"

#include "training/trainer.h"

#include <string.h>
#include <unistd.h>

/* A separate trainer on a task, and the warnings that it logs. */
typedef struct job {
    mercer_context *context;
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    mercer_plan plan;
    mercer_report report;
    char warnings[2048];
} job;

static void save_warning(void *user, mercer_log_level level, const char *message)
{
    job *self = user;
    size_t used = strlen(self->warnings);
    if (level == MERCER_LOG_WARNING) snprintf(self->warnings + used, sizeof self->warnings - used, "%s\n", message);
}

static void job_open(job *self, const task *t, const mercer_train_options *options)
{
    mercer_context_options context_options = MERCER_INIT(mercer_context_options);
    memset(self, 0, sizeof *self);
    context_options.threads = 2, context_options.log = save_warning, context_options.log_user = self;
    self->plan.struct_size = sizeof self->plan, self->report.struct_size = sizeof self->report;
    assert_succeeds(NULL, mercer_context_create(&self->context, &context_options));
    assert_succeeds(self->context,
                    mercer_model_create(&self->model, self->context, NULL, &t->kernel, &t->z, t->y.cols, MERCER_F32));
    assert_succeeds(self->context, source_from_matrices(&self->source, self->context, &t->x, &t->y, NULL, t->seed));
    assert_succeeds(self->context, mercer_trainer_create(&self->trainer, self->model, NULL, options));
}

static void job_close(job *self)
{
    mercer_trainer_free(self->trainer);
    mercer_source_free(&self->source);
    mercer_model_free(self->model);
    mercer_context_free(self->context);
}

/* Checks that the fit followed the plan: text and sizes differ only where a line of the text reports it. */
static void check_followed(const job *self, const char *what)
{
    const mercer_plan *planned = &self->plan, *used = self->report.plan;
    size_t length = strlen(planned->text);
    assert_string_equal(used->solver, planned->solver);
    assert_string_equal(used->projector, planned->projector);
    assert_int_equal(used->epochs, planned->epochs);
    assert_that(strncmp(used->text, planned->text, length) == 0, "%s: planned\n%sbut used\n%s", what, planned->text,
                used->text);
    bool same = used->batch == planned->batch && used->period == planned->period && used->bytes == planned->bytes;
    bool told = strncmp(used->text + length, "refined:", 8) == 0;
    assert_int_equal(used->changes, strlen(used->text) - strlen(planned->text));
    assert_int_equal(used->changes > 0, told);
    assert_int_equal(planned->changes, 0);
    assert_that(same || told, "%s: m %lld -> %lld, %lld -> %lld bytes, without a line in the plan", what,
                (long long)planned->batch, (long long)used->batch, (long long)planned->bytes, (long long)used->bytes);
    assert_that(self->report.peak_bytes <= used->bytes, "%s: held %lld bytes, planned %lld", what,
                (long long)self->report.peak_bytes, (long long)used->bytes);
}

/* Over a range of budgets auto chooses different solvers: the trainer's plan is what the fit does. */
static void test_followed(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=3", (sizes){2600, 2400, 5, 2}, 1, MERCER_F32);
    int refined = 0, iterated = 0, halves = 0;
    for (int64_t memory = 36 << 20; memory < 84 << 20; memory += (SANITIZED ? 16 : 8) << 20) {
        job self;
        mercer_train_options options = options_for(NULL);
        options.memory = memory;
        job_open(&self, &t, &options);
        mercer_status status = mercer_trainer_plan(self.trainer, &self.plan, &self.source);
        assert_true(status == MERCER_OK || status == MERCER_ERROR_MEMORY);
        if (status == MERCER_OK) {
            assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &self.report));
            check_followed(&self, self.plan.solver);
            refined += mentions(self.report.plan->text, "refined:");
            iterated += strcmp(self.plan.solver, "ep4") == 0;
            halves += self.plan.cache_centers == 2; /* only the measured kernel matrix permits half precision here */
        }
        job_close(&self);
    }
    assert_true(halves > 0);
    print_message("    %d by ep4, %d refined\n", iterated, refined);
    task_close(&t);
}

/* Named solvers: sizes are refined, and the text reports it. */
static void test_refined(void **state)
{
    (void)state;
    static const char *const solvers[] = {"ep4", "ep3", "ep3-exact", "gd"};
    task t = task_open(context, "laplace:bandwidth=3", (sizes){600, 100, 5, 2}, 1, MERCER_F32);
    int refined = 0;
    for (int i = 0; i < 4; i++) {
        job self;
        mercer_train_options options = options_for(solvers[i]);
        options.epochs = 2, options.memory = 64 << 20;
        job_open(&self, &t, &options);
        assert_succeeds(self.context, mercer_trainer_plan(self.trainer, &self.plan, &self.source));
        assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &self.report));
        check_followed(&self, solvers[i]);
        refined += mentions(self.report.plan->text, "refined:");
        /* The next fit makes a new plan, which is the same. */
        mercer_plan first = *self.report.plan;
        mercer_report again = {.struct_size = sizeof again};
        assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &again));
        assert_string_equal(again.plan->text, first.text);
        job_close(&self);
    }
    assert_true(refined >= 2); /* the stochastic solvers, whose planned batch was a guess */
    task_close(&t);
}

/* If a second plan that knows the critical batch would choose another solver, refining keeps the first solver. */
static void test_refinement_keeps_solver(void **state)
{
    (void)state;
    int changed = 0;
    for (int64_t p = 2000; p <= 64000; p *= 2)
        for (int64_t memory = p * p; memory <= 16 * p * p; memory *= 2)
            for (int64_t critical = 1; critical <= 65536; critical *= 16) {
                mercer_train_options options = options_for(NULL);
                options.memory = memory + (256 << 20), options.epochs = 2;
                mrc_plan first, second;
                mrc_plan_request request = {.machine = mrc_machine_of(context),
                                            .options = &options,
                                            .n = 200000,
                                            .p = p,
                                            .d = 50,
                                            .c = 5,
                                            .real = MERCER_F32,
                                            .points = MERCER_F32,
                                            .shards = 1,
                                            .threads = 4,
                                            .bounded = true,
                                            .rows_known = true};
                assert_succeeds(context, make_plan(context, &first, &request));
                if (strcmp(first.public_plan.solver, "ep4") != 0) continue;
                request.critical_batch = critical;
                assert_succeeds(context, make_plan(context, &second, &request));
                changed += strcmp(second.public_plan.solver, "ep4") != 0;
                mrc_plan refined = first;
                assert_succeeds(context, refine_plan(context, &refined, &request));
                assert_string_equal(refined.public_plan.solver, "ep4");
                assert_string_equal(refined.public_plan.projector, first.public_plan.projector);
                assert_non_null(refined.projector);
                assert_int_equal(refined.public_plan.epochs, first.public_plan.epochs);
                assert_true(refined.public_plan.bytes <= options.memory);
                assert_true(strncmp(refined.public_plan.text, first.public_plan.text, strlen(first.public_plan.text)) ==
                            0);
            }
    assert_that(changed > 0, "no second plan would have changed the solver");
}

/* The same for a training run, with sizes at which the critical batch of the data decides the choice:
   the first plan chooses ep4, a plan made with the results of set-up chooses cg, and the fit continues with ep4. */
static void test_training_keeps_solver(void **state)
{
    (void)state;
    if (SANITIZED) return; /* slow, and other tests run the same code */
    task t = task_open(context, "laplace:bandwidth=4", (sizes){2000, 3000, 20, 10}, 1, MERCER_F32);
    job self;
    mercer_train_options options = options_for(NULL);
    options.memory = 48 << 20;
    job_open(&self, &t, &options);
    self.context->isa = MRC_ISA_AVX512; /* for the planner: estimates are the same on every machine */
    assert_succeeds(self.context, mercer_trainer_plan(self.trainer, &self.plan, &self.source));
    assert_string_equal(self.plan.solver, "ep4");
    assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &self.report));
    check_followed(&self, "ep4");
    mrc_plan second;
    mrc_plan_request request = {.machine = mrc_machine_of(self.context),
                                .options = &options,
                                .n = t.x.rows,
                                .p = t.z.rows,
                                .d = t.z.cols,
                                .c = t.y.cols,
                                .real = MERCER_F32,
                                .points = MERCER_F32,
                                .shards = 1,
                                .threads = 2,
                                .roughness = self.trainer->request.roughness,
                                .bounded = true,
                                .rows_known = true};
    assert_succeeds(self.context, make_plan(self.context, &second, &request));
    assert_string_equal(second.public_plan.solver, "ep4");
    request.critical_batch = mrc_critical_batch(self.report.beta, self.report.tail, t.x.rows);
    assert_succeeds(self.context, make_plan(self.context, &second, &request));
    assert_that(strcmp(second.public_plan.solver, "ep4") != 0, "a critical batch of %lld changes nothing",
                (long long)request.critical_batch);
    job_close(&self);
    task_close(&t);
}

/* A kernel function for which all samples look the same: the plan warns about it, and the fit succeeds nevertheless. */
static void test_wide_bandwidth(void **state)
{
    (void)state;
    if (SANITIZED) return; /* slow, and other tests run the same code */
    task t = task_open(context, "gaussian:bandwidth=20000", (sizes){1500, 1400, 5, 2}, 1, MERCER_F32);
    for (int64_t memory = 28 << 20; memory <= 64 << 20; memory += (SANITIZED ? 64 : 12) << 20) {
        job self;
        mercer_train_options options = options_for(NULL);
        options.memory = memory;
        job_open(&self, &t, &options);
        assert_succeeds(self.context, mercer_trainer_plan(self.trainer, &self.plan, &self.source));
        assert_non_null(warning_about(self.context, "bandwidth"));
        assert_true(mentions(self.plan.text, "warning: *bandwidth"));
        assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &self.report));
        assert_that(isfinite(self.report.train_loss), "%s: no loss", self.report.plan->solver);
        job_close(&self);
    }
    task_close(&t);
    t = task_open(context, "gaussian:bandwidth=3", (sizes){100, 60, 5, 2}, 1, MERCER_F32);
    job self;
    job_open(&self, &t, NULL);
    assert_succeeds(self.context, mercer_trainer_plan(self.trainer, &self.plan, &self.source));
    assert_null(warning_about(self.context, "bandwidth"));
    job_close(&self);
    task_close(&t);
}

/*
 * K(Z, Z) of a linear kernel has rank 5, and conjugate gradients without a ridge amplify rounding in all other
 * directions until they break down. This is an error if the solver was named; with auto another solver continues, and a
 * resumed run starts with that solver.
 */
static void test_replaced(void **state)
{
    (void)state;
    task t = task_open(context, "linear", (sizes){1700, 1600, 5, 10}, 1, MERCER_F32);
    folder_open();
    const char *path = in_folder("state");
    for (int named = 0; named < (SANITIZED ? 1 : 2); named++) {
        job self;
        mercer_train_options options = options_for(named ? "cg" : NULL);
        options.memory = 56 << 20, options.epochs = 3, options.checkpoint = path;
        job_open(&self, &t, &options);
        assert_succeeds(self.context, mercer_trainer_plan(self.trainer, &self.plan, &self.source));
        assert_string_equal(self.plan.solver, "cg");
        if (named) {
            assert_fails(self.context, mercer_trainer_fit(self.trainer, &self.source, &self.report),
                         MERCER_ERROR_NUMERIC, "solver cg");
            job_close(&self);
            continue;
        }
        assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &self.report));
        assert_string_equal(self.report.plan->solver, "ep4");
        assert_true(mentions(self.report.plan->text, "replaced: solver cg"));
        assert_true(self.report.plan->changes >= 1);
        const char *warning = warning_about(self.context, "solver");
        assert_true(warning && mentions(warning, "ep4"));
        assert_true(isfinite(self.report.train_loss) && self.report.peak_bytes <= options.memory);
        mercer_report again = {.struct_size = sizeof again};
        assert_succeeds(self.context, mercer_trainer_resume(self.trainer, path));
        assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &again));
        assert_string_equal(again.plan->solver, "ep4");
        job_close(&self);
    }
    folder_close();
    task_close(&t);
}

static int (*next_of_source)(void *user, int64_t rows, mercer_batch *batch);
static int batches;

static int count_batch(void *user, int64_t rows, mercer_batch *batch)
{
    batches++;
    return next_of_source(user, rows, batch);
}

/* A trainer that gets the spread of the kernel and that the centers are the samples measures neither: it plans
   without reading a sample. */
static void test_known(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=3", (sizes){300, 0, 5, 2}, 1, MERCER_F32);
    for (int known = 0; known < 2; known++) {
        job self;
        job_open(&self, &t, NULL);
        if (known) self.trainer->known = (mrc_known){.on_samples = true, .spread = 1000};
        next_of_source = self.source.next, self.source.next = count_batch, batches = 0;
        assert_succeeds(self.context, mercer_trainer_plan(self.trainer, &self.plan, &self.source));
        assert_string_equal(self.plan.solver, "krr");
        assert_int_equal(batches == 0, known);
        const char *warning = warning_about(self.context, "bandwidth");
        assert_int_equal(warning && mentions(warning, " 1000 "), known);
        assert_succeeds(self.context, mercer_trainer_fit(self.trainer, &self.source, &self.report));
        check_followed(&self, known ? "known" : "found");
        job_close(&self);
    }
    task_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_followed),
                                       cmocka_unit_test(test_refined),
                                       cmocka_unit_test(test_refinement_keeps_solver),
                                       cmocka_unit_test(test_training_keeps_solver),
                                       cmocka_unit_test(test_wide_bandwidth),
                                       cmocka_unit_test(test_known),
                                       cmocka_unit_test(test_replaced)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
