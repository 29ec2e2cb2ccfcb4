# SPDX-License-Identifier: BSD-3-Clause
"""A new preset of the iteration touches one file; a new solver or projector touches two.

The test adds to a copy of the tree the preset `ep3-bgs`, the solver `descent` (steepest descent on the normal equations)
and the projector `gradient` (steepest descent on K(Z,Z) theta = h). A small program then finds them in the library's
lists and trains with them by name, within their planned memory.
"""
import re
import unittest

import extend

SOLVERS, PROJECTORS = "src/solvers/solver.c", "src/solvers/projectors/projector.c"

PRESET_ROW = """    {"ep3-bgs", "EigenPro 3 with block Gauss-Seidel", &mrc_iteration_ops, PROJECTS | PAIRS,
     .preset = {.period = 1, .projector = "bgs", .gamma = 0.5, .average = MERCER_AUTO}},
"""
SOLVER_ROW = """    {"descent", "steepest descent on the normal equations", &mrc_descent_ops, MRC_USES_EPOCHS, .preset = {0}},
"""
SOLVER = r"""/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steepest descent on the normal equations: g = K_ZX (K_XZ alpha - Y), alpha -= (|g|^2 / |K_XZ g|^2) g, two passes a
 * step, 2 n p (d + 2 c) and 2 n p (d + c) flops. Bytes: three fields (p, c), two batches (m, c).
 */
#include "solvers/solver.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

typedef struct descent {
    mercer_matrix alpha, gradient, part; /* fields (rows, c) */
    mercer_matrix f, y;                  /* (m, c) */
} descent;

static mercer_status choose(mrc_planner *planner)
{
    mercer_plan *plan = planner->public_plan;
    plan->batch = mrc_min(512, planner->problem.n);
    plan->epochs = planner->options->epochs > 0 ? planner->options->epochs : 40;
    int64_t block = plan->batch * planner->problem.p * planner->problem.real_size;
    planner->caching = (mrc_caching){.block = block, .block_with_cache = block, .repeated = true, .half_from = INT64_MAX};
    return MERCER_OK;
}

static void complete_plan(mrc_planner *planner)
{
    mrc_plan_say(planner->public_plan, "%lld steps\n", (long long)planner->public_plan->epochs);
}

static void cost(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out)
{
    double p = (double)problem->p, c = (double)problem->c, e = (double)problem->real_size;
    double d = plan->public_plan.cache_data ? 0 : (double)problem->d, m = (double)plan->public_plan.batch;
    out->epochs = (double)plan->public_plan.epochs;
    out->batches = ceil((double)problem->n / m);
    out->set_up.held = (mrc_bytes){4 * p * c * e, 2 * m * c * e};
    out->batch.flops = 2 * m * p * (2 * d + 3 * c);
    mrc_cost_sums(&out->batch, problem, m * c * e, 2);
}

static void destroy(mrc_job *job)
{
    descent *self = job->state;
    mercer_matrix *const all[] = {&self->alpha, &self->gradient, &self->part, &self->f, &self->y};
    for (int i = 0; i < 5; i++) mrc_matrix_destroy(job->backend, all[i]);
    mrc_free(job->context, self);
}

static mercer_status create(mrc_job *job, const mercer_matrix *first)
{
    (void)first;
    void *memory;
    MRC_TRY(mrc_alloc_zero(job->context, &memory, 1, sizeof(descent), "the solver"));
    job->state = memory;
    descent *self = memory;
    int64_t c = job->target.weights->cols, m = job->plan.public_plan.batch;
    mercer_matrix *const fields[] = {&self->alpha, &self->gradient, &self->part}, *const batches[] = {&self->f, &self->y};
    for (int i = 0; i < 3; i++) MRC_TRY(mrc_field_create(&job->centers, fields[i], c, job->centers.real, "descent"));
    for (int i = 0; i < 2; i++) MRC_TRY(mrc_matrix_create(job->backend, batches[i], m, c, job->centers.real, "descent"));
    MRC_TRY(mrc_job_kernel_blocks(job));
    return job->backend->ops->copy(job->backend, &self->alpha, job->target.weights);
}

static const mercer_matrix *weights(const mrc_job *job)
{
    return &((const descent *)job->state)->alpha;
}

/* *sum = |K_XZ v - Y|^2, and the gradient; without labels only |K_XZ v|^2. */
static mercer_status pass(mrc_job *job, const mercer_matrix *v, bool labels, double *sum)
{
    descent *self = job->state;
    mrc_backend *backend = job->backend;
    *sum = 0;
    if (labels) MRC_TRY(backend->ops->clear(backend, &self->gradient));
    MRC_TRY(mrc_sample_stream_restart(&job->stream, 0));
    for (;;) {
        mercer_batch batch;
        double squares[64];
        MRC_TRY(mrc_sample_stream_next(&job->stream, self->f.rows, &batch));
        if (batch.X.rows == 0) return MERCER_OK;
        mercer_matrix f = mrc_rows(&self->f, 0, batch.X.rows), y = mrc_rows(&self->y, 0, batch.X.rows);
        MRC_TRY(mrc_kernel_blocks_forward(&job->kernel_blocks, &batch, v, NULL, &f));
        MRC_TRY(backend->ops->copy(backend, &y, &batch.Y));
        if (labels) MRC_TRY(backend->ops->axpby(backend, -1, &y, 1, &f));
        MRC_TRY(backend->ops->column_dots(backend, &f, &f, squares));
        for (int64_t j = 0; j < f.cols; j++) *sum += squares[j];
        if (!labels) continue;
        MRC_TRY(mrc_kernel_blocks_transpose(&job->kernel_blocks, &batch, &f, &self->part));
        MRC_TRY(backend->ops->axpby(backend, 1, &self->part, 1, &self->gradient));
    }
}

static mercer_status run(mrc_job *job)
{
    descent *self = job->state;
    mercer_stop stop = MERCER_STOP_FINISHED;
    MRC_TRY(job->resuming ? job->host->restore(job) : job->host->save(job, &self->alpha, MRC_SAVE_NOW));
    while (job->epoch < job->plan.public_plan.epochs && !stop) {
        double loss, size, curvature;
        MRC_TRY(pass(job, &self->alpha, true, &loss));
        MRC_TRY(mrc_centers_norm(&job->centers, &self->gradient, &size));
        MRC_TRY(pass(job, &self->gradient, false, &curvature));
        double step = curvature > 0 ? size * size / curvature : 0;
        MRC_TRY(job->backend->ops->axpby(job->backend, -step, &self->gradient, 1, &self->alpha));
        job->samples += 2 * job->n;
        job->report.epochs = ++job->epoch;
        job->report.train_loss = loss / (double)(job->n * self->alpha.cols);
        mercer_progress progress = {.epoch = job->epoch,
                                    .epochs = job->plan.public_plan.epochs,
                                    .train_loss = job->report.train_loss,
                                    .train_accuracy = (double)NAN};
        MRC_TRY(job->host->end_epoch(job, &self->alpha, &progress, &stop));
    }
    job->report.stopped = stop;
    return MERCER_OK;
}

extern const mrc_solver_ops mrc_descent_ops;
const mrc_solver_ops mrc_descent_ops = {.choose = choose,
                                        .complete_plan = complete_plan,
                                        .cost = cost,
                                        .create = create,
                                        .run = run,
                                        .weights = weights,
                                        .destroy = destroy};
"""
PROJECTOR = r"""/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steepest descent on K theta = h: a = r'r / r'Kr, theta += a r, r -= a K r; p^2 (d + c) a pass, bytes: a field (p, c).
 */
#include "solvers/projectors/projector.h"

#include "core/matrix.h"

static mercer_status create(mrc_projector *projector)
{
    (void)projector; /* nothing stays between projections */
    return MERCER_OK;
}

static void destroy(mrc_projector *projector)
{
    (void)projector;
}

static mercer_status step(mrc_centers *centers, const mercer_matrix *r, const mercer_matrix *theta,
                          const mercer_matrix *kr)
{
    mrc_backend *backend = centers->backend;
    double up[64], down[64], rise = 0, fall = 0;
    MRC_TRY(mrc_centers_times(centers, NULL, r, kr));
    MRC_TRY(mrc_centers_column_dots(centers, r, r, up));
    MRC_TRY(mrc_centers_column_dots(centers, r, kr, down));
    for (int64_t j = 0; j < r->cols; j++) rise += up[j], fall += down[j];
    double a = fall > 0 ? rise / fall : 0;
    MRC_TRY(backend->ops->axpby(backend, a, r, 1, theta));
    return backend->ops->axpby(backend, -a, kr, 1, r);
}

static mercer_status project(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                             mrc_projection *report)
{
    mrc_centers *centers = projector->centers;
    mercer_matrix kr;
    MRC_TRY(mrc_field_create(centers, &kr, h->cols, centers->real, "the projection"));
    mercer_status status = MERCER_OK;
    for (int64_t pass = 0; pass < projector->options.passes && status == MERCER_OK; pass++)
        status = step(centers, h, theta, &kr);
    report->passes = (double)projector->options.passes;
    mrc_matrix_destroy(centers->backend, &kr);
    return status;
}

static void cost(const mrc_problem *problem, const mrc_projector_options *options, mrc_cost *once, mrc_cost *each)
{
    double p = (double)problem->p, c = (double)problem->c;
    once->peak.shared = p * c * (double)problem->real_size;
    each->flops = (double)options->passes * 2 * p * p * ((double)problem->d + c);
}

extern const mrc_projector_ops mrc_projector_gradient;
const mrc_projector_ops mrc_projector_gradient = {.name = "gradient",
                                                  .description = "steepest descent on K(Z,Z) theta = h",
                                                  .passes = 20,
                                                  .carry = true,
                                                  .create = create,
                                                  .destroy = destroy,
                                                  .project = project,
                                                  .cost = cost};
"""
PROGRAM = r"""
#include <mercer/advanced.h>
#include <math.h>
#include <stdio.h>

enum { N = 600, P = 100, D = 3 };

static float x[N * D], y[N];

/* Trains and prints what was planned, the loss over that of the zero model, and whether memory was as planned. */
static int train(mercer_context *context, const char *solver, const char *projector)
{
    mercer_kernel kernel;
    mercer_model *model = NULL;
    mercer_source source;
    mercer_trainer *trainer = NULL;
    mercer_report report = MERCER_INIT(mercer_report);
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    mercer_matrix samples = {.data = x, .rows = N, .cols = D, .ld = D, .dtype = MERCER_F32}, centers = samples;
    mercer_matrix labels = {.data = y, .rows = N, .cols = 1, .ld = 1, .dtype = MERCER_F32};
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    double variance = 0;
    centers.rows = P;
    arrays.X = &samples, arrays.Y = &labels;
    options.solver = solver, options.projector = projector, options.memory = 64 << 20;
    for (int i = 0; i < N; i++) variance += (double)y[i] * (double)y[i] / N;
    int failed = mercer_kernel_parse(&kernel, context, "laplace:bandwidth=3") ||
                 mercer_model_create(&model, context, NULL, &kernel, &centers, 1, MERCER_F32) ||
                 mercer_source_from_arrays(&source, context, &arrays, 1) ||
                 mercer_trainer_create(&trainer, model, NULL, &options) ||
                 mercer_trainer_fit(trainer, &source, &report);
    if (failed)
        printf("%s\n", mercer_last_error(context));
    else
        printf("%s %s loss %.4f memory %s\n", report.plan->solver, report.plan->projector, report.train_loss / variance,
               report.peak_bytes <= report.plan->bytes ? "as planned" : "beyond");
    return failed;
}

int main(void)
{
    mercer_context *context;
    unsigned state = 1;
    if (mercer_context_create(&context, NULL)) return 1;
    for (int i = 0; i < N * D; i++) state = state * 1664525u + 1013904223u, x[i] = (float)(state >> 8) / (1 << 24) * 4 - 2;
    for (int i = 0; i < N; i++) y[i] = sinf(x[i * D]) + x[i * D + 1] * x[i * D + 2] / 2;
    mercer_solver_info info = MERCER_INIT(mercer_solver_info);
    for (int i = 0; mercer_solver_list(&info, i); i++) printf("solver %s: %s\n", info.name, info.description);
    for (int i = 0; mercer_projector_list(&info, i); i++) printf("projector %s: %s\n", info.name, info.description);
    return train(context, "ep3-bgs", NULL) || train(context, "descent", NULL) || train(context, "ep4", "gradient");
}
"""


class Solver(extend.Extended):
    def test_one_file_or_two(self):
        table = "static const mrc_solver table[] = {\n"
        with self.subTest("a corner of the iteration: one row"):
            self.insert(SOLVERS, table, PRESET_ROW)
            self.assertEqual(self.touched, {SOLVERS})
        with self.subTest("a solver: its file and a row"):
            self.touched.clear()
            self.write("src/solvers/descent.c", SOLVER)
            self.insert(SOLVERS, table, SOLVER_ROW)
            self.insert(SOLVERS, "extern const mrc_solver_ops ", "mrc_descent_ops, ")
            self.assertLessEqual(len(self.touched), 2)
        with self.subTest("a projector: its file and a row"):
            self.touched.clear()
            self.write("src/solvers/projectors/projector_gradient.c", PROJECTOR)
            self.insert(PROJECTORS, "    &mrc_projector_exact,\n", "    &mrc_projector_gradient,\n")
            self.insert(PROJECTORS, "extern const mrc_projector_ops ", "mrc_projector_gradient, ")
            self.assertLessEqual(len(self.touched), 2)
        self.build("mercer_static", TESTS="OFF")
        self.write("extended.c", PROGRAM)
        libraries = re.search(r"^Libs.private:(.*)$", self.read("build/mercer.pc"), re.MULTILINE).group(1).split()
        self.run_command("cc", "-Wall", "-Werror", "-Iinclude", "extended.c", "-o", "extended", "build/libmercer.a", *libraries, "-lm")
        output = self.run_command("./extended")
        for line in ("solver ep3-bgs: EigenPro 3", "solver descent: steepest", "projector gradient: steepest"):
            self.assertIn(line, output)
        found = re.findall(r"^(\S+) (\S+) loss (\S+) memory as planned$", output, re.MULTILINE)
        self.assertEqual([row[:2] for row in found], [("ep3-bgs", "bgs"), ("descent", "none"), ("ep4", "gradient")], output)
        for name, _, loss in found:
            self.assertLess(float(loss), 0.3, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


if __name__ == "__main__":
    unittest.main()
