/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the n-th allocation fail, n = 1, 2, ... until a whole training run succeeds: models, sources, communicators,
 * trainers, every solver and projector, streaming, prediction. The status must be MERCER_ERROR_MEMORY, the weights
 * unchanged, and nothing may leak. Repeating the call in the same context must then give the same result.
 */
#include "support/training.h"

#include "support/allocator.h"
#include "support/info.h"
#include "support/sources.h"

enum { N = 24, P = 9, D = 3, C = 2, MOST_ALLOCATIONS = 3000 };

typedef struct chain {
    const char *solver, *projector;
    int ranks;
    bool streaming;
    test_allocator counter;
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix x, y, z;
    mercer_train_options options;
    mercer_model *model;
    mercer_source source;
    mercer_comm *comm;
    mercer_trainer *trainer;
    mercer_matrix f; /* predictions */
    int32_t labels[N];
} chain;

typedef mercer_status (*stage)(chain *self);

static mercer_status make_model(chain *self)
{
    return mercer_model_create(&self->model, self->context, NULL, &self->kernel, &self->z, C, MERCER_F64);
}

static mercer_status make_source(chain *self)
{
    return source_from_matrices(&self->source, self->context, &self->x, &self->y, NULL, 7);
}

static mercer_status make_comm(chain *self)
{
    return mrc_comm_create_virtual(&self->comm, self->context, self->ranks);
}

static mercer_status make_trainer(chain *self)
{
    return mercer_trainer_create(&self->trainer, self->model, self->comm, &self->options);
}

static mercer_status fit(chain *self)
{
    return mercer_trainer_fit(self->trainer, &self->source, NULL);
}

static mercer_status first_step(chain *self)
{
    return mercer_trainer_step(self->trainer, &self->x, &self->y, NULL);
}

static mercer_status predict(chain *self)
{
    return mercer_model_predict(self->model, &self->f, &self->x);
}

static mercer_status classify(chain *self)
{
    return mercer_model_classify(self->model, self->labels, &self->x);
}

static const struct {
    const char *name;
    stage run;
    bool fits;
} stages[] = {{"model_create", make_model, false},
              {"source_from_matrices", make_source, false},
              {"comm_create", make_comm, false},
              {"trainer_create", make_trainer, false},
              {"fit", fit, true},
              {"predict", predict, false},
              {"classify", classify, false}};
enum { STAGES = 7, FIT = 4 };

static void open_chain(chain *self)
{
    self->counter = (test_allocator){0};
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = 2;
    options.allocator = test_allocator_table(&self->counter);
    assert_succeeds(NULL, mercer_context_create(&self->context, &options));
    self->model = NULL, self->comm = NULL, self->trainer = NULL;
    memset(&self->source, 0, sizeof self->source);
    memset(self->f.data, 0, N * C * sizeof(double));
}

static void close_chain(chain *self)
{
    mercer_trainer_free(self->trainer);
    mercer_comm_free(self->comm);
    mercer_source_free(&self->source);
    mercer_model_free(self->model);
    mercer_context_free(self->context);
    assert_that(self->counter.live == 0, "%s %s: %lld blocks are left", self->solver, self->projector,
                (long long)self->counter.live);
    assert_int_equal(self->counter.misused, 0);
}

/* Check a failed stage: its status and message, and that it changed no output. */
static void check_failure(chain *self, int at, mercer_status status, int n)
{
    const char *message = mercer_last_error(self->context);
    bool by_source = status == MERCER_ERROR_CALLBACK && mentions(message, "source: next *memory");
    assert_that(status == MERCER_ERROR_MEMORY || by_source, "%s %s, %s, allocation %d: %s: %s", self->solver,
                self->projector, stages[at].name, n, mercer_status_string(status), message);
    assert_that(mentions(message, "memory"), "%s, allocation %d: the message is '%s'", stages[at].name, n, message);
    if (at == 0) assert_null(self->model);
    if (at == 2) assert_null(self->comm);
    if (at == 3) assert_null(self->trainer);
    mercer_matrix weights = model_info(self->model).weights;
    for (int64_t i = 0; at == FIT && i < P * C; i++)
        assert_that(((double *)weights.data)[i] == 0, "%s %s, allocation %d: weight %d was written", self->solver,
                    self->projector, n, (int)i);
    for (int64_t i = 0; at == 5 && i < N * C; i++) assert_true(((double *)self->f.data)[i] == 0);
}

/* Run all stages with allocation n failing; return true if there were fewer allocations. */
static bool run_chain(chain *self, int n, const double *expected)
{
    bool clean = true;
    open_chain(self);
    self->counter.fail_at = self->counter.requests + n;
    for (int at = 0; at < STAGES; at++) {
        if (stages[at].run == fit && self->streaming) {
            mercer_status status = first_step(self);
            if (status == MERCER_OK) status = mercer_trainer_finish(self->trainer);
            if (status == MERCER_OK) continue;
            clean = false;
            assert_that(status == MERCER_ERROR_MEMORY, "step, allocation %d: %s", n, mercer_status_string(status));
            mercer_trainer_free(self->trainer);
            self->trainer = NULL;
            continue;
        }
        int64_t before = self->counter.requests;
        mercer_status status = stages[at].run(self);
        if (status == MERCER_OK) continue;
        assert_true(before < self->counter.fail_at);
        clean = false;
        check_failure(self, at, status, n);
        assert_succeeds(self->context, stages[at].run(self));
    }
    mercer_matrix weights = model_info(self->model).weights;
    for (int64_t i = 0; i < P * C; i++) assert_true(isfinite(((double *)weights.data)[i]));
    /* Whichever allocation failed, the final model must be the same. */
    if (expected && !self->streaming)
        assert_that(memcmp(expected, weights.data, P * C * sizeof(double)) == 0, "%s %s, allocation %d: other weights",
                    self->solver, self->projector, n);
    bool reached = self->counter.requests >= self->counter.fail_at;
    close_chain(self);
    assert_true(clean || reached);
    return !reached;
}

static void sweep(const char *solver, const char *projector, int ranks, bool streaming)
{
    chain self = {.solver = solver, .projector = projector, .ranks = ranks, .streaming = streaming};
    bool on_samples = needs_samples(solver);
    self.z = data_matrix(P, D, 0, MERCER_F64), self.x = data_matrix(on_samples ? P : N, D, 0, MERCER_F64);
    self.y = data_matrix(self.x.rows, C, 0, MERCER_F64), self.f = data_matrix(self.x.rows, C, 0, MERCER_F64);
    data_fill_normal(&self.z, (mrc_rng){61, 1}, 0, 1), data_fill_normal(&self.x, (mrc_rng){61, 1}, 0, 1);
    data_fill_normal(&self.y, (mrc_rng){61, 2}, 0, 1);
    self.f.data = realloc(self.f.data, N * C * sizeof(double));
    assert_succeeds(NULL, mercer_kernel_parse(&self.kernel, NULL, "laplace:bandwidth=2"));
    self.options = options_for(solver);
    self.options.projector = *projector ? projector : NULL;
    self.options.epochs = 2, self.options.eigenpairs = 2, self.options.lambda = 0.1;
    self.options.projector_block = projects(solver) ? 4 : 0, self.options.memory = 256 << 20;
    self.options.validation_X = &self.x, self.options.validation_Y = &self.y;
    if (mercer_solver_kind_of(solver) != MERCER_SOLVER_DIRECT) self.options.patience = 5;
    if (strncmp(solver, "ep4", 3) == 0) self.options.polish = 1, self.options.batch = 5, self.options.period = 2;
    double expected[P * C];
    open_chain(&self);
    for (int at = 0; at < STAGES; at++) assert_succeeds(self.context, stages[at].run(&self));
    mercer_matrix weights = model_info(self.model).weights;
    memcpy(expected, weights.data, sizeof expected);
    close_chain(&self);
    int n = 1;
    while (!run_chain(&self, n, expected)) {
        n++;
        assert_that(n < MOST_ALLOCATIONS, "%s never succeeds", solver);
    }
    assert_true(n > 10);
    free(self.x.data), free(self.y.data), free(self.z.data), free(self.f.data);
}

static void test_solvers(void **state)
{
    (void)state;
    static const char *const solvers[] = {"auto", "direct", "cg",         "ep3",     "ep3-exact", "ep2",
                                          "ep1",  "nytro",  "richardson", "pegasos", "gd",        "krr"};
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) sweep(solvers[i], "", 1, false);
}

static void test_projectors(void **state)
{
    (void)state;
    static const char *const projectors[] = {"exact", "ep2", "pcg", "bgs"};
    for (int i = 0; i < 4; i++)
        for (int ranks = SANITIZED && i % 2 ? 3 : 1; ranks <= 3; ranks += SANITIZED ? 4 : 2)
            sweep("ep4", projectors[i], ranks, false);
}

static void test_streaming(void **state)
{
    (void)state;
    sweep("ep4", "exact", 1, true);
    sweep("ep4", "bgs", 2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solvers),
        cmocka_unit_test(test_projectors),
        cmocka_unit_test(test_streaming),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
