/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preconditioned conjugate gradients on the normal equations A alpha = b (normal.c), for every output separately.
 *
 *   r = b - A alpha,  z = M^-1 r,  d = z                                    (p, c), fields: every rank has its rows
 *   a = d'r / d'Ad;   alpha += a d;   r -= a A d                            one product with A: one pass over the data
 *   z = M^-1 r;       beta = -z'Ad / d'Ad;   d = z + beta d                 a, beta: one number for each output
 *   J decreases by a d'r
 *
 * The step length minimizes J along d, and beta makes the new direction conjugate to the last one, regardless of
 * earlier rounding; in exact arithmetic both formulas agree with the usual ones. A refresh follows after 4 steps, then
 * after 8, then after every 16 steps: the pass also multiplies alpha, and r and J are replaced by their true values. d
 * and alpha side by side share the kernel values. If the true residual is more than twice the residual of the
 * recurrence, the interval between refreshes is halved and the direction restarts with d = z.
 *
 * Cost of a step: one pass, n p (2 d + 4 c) flops, and 4 p^2 c for M^-1 (8 p^2 c with a ridge).
 * Bytes: see mrc_exact_cg_cost.
 *
 * Stops: in every column |r|_{M^-1} <= tolerance |b|_{M^-1}, or J can decrease by at most `slack` times the smaller of
 * J and FALL (J(0) - min J). Here r' M^-1 r estimates r' A^-1 r = J - min J, and b' M^-1 b estimates J(0) - min J. It
 * also stops if the maximum number of steps is reached, or if the monitor requests it. Finally, it stops if in GIVE_UP
 * consecutive refreshes the residual had drifted and J had not decreased: only rounding errors are left then. The best
 * alpha seen is returned. A column whose curvature d'Ad is not positive and finite is frozen at its current value. A
 * column of b that is 0 gets its solution, 0.
 *
 * Caveat: in float the products have relative errors of 2^-24, which M^-1 amplifies along eigenvectors with small
 * eigenvalues of K(Z,Z). Then true residuals below about 1e-5 (Laplace) cannot be reached; J is as accurate as float
 * allows.
 */
#include "solvers/normal/normal.h"
#include "solvers/operators/spd.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <float.h>
#include <math.h>

/* A refresh doubles the columns of a pass, which costs little in kernel values, because d and alpha share them. The
   interval begins at FIRST_REFRESH and doubles up to LAST_REFRESH as long as the residual has not drifted. A single bad
   refresh may be followed by progress with the restarted direction, so the run stops only after GIVE_UP bad refreshes
   in a row. */
enum { FIRST_REFRESH = 4, LAST_REFRESH = 16, GIVE_UP = 3, VECTORS = 6, SCALARS = 8 };

static const double DOUBTFUL = 1e-3; /* share of the last exact J below which a recurrence in float is not trusted */
static const double NO_GAIN = 1e-6;  /* relative decrease of J that is too small to count as progress */
/* Slack applies to this share of J(0) - min J, if that is less than J itself. If most of J is noise, 1 % of J is a
   large share of what can be learned: without this rule, AUC of adult, bank and credit decreased by .0005 to .004. */
static const double FALL = 0.1;

typedef struct cg_state {
    mrc_exact_solver *exact;
    mrc_backend *backend;
    mrc_normal normal;
    const mercer_matrix *out;               /* field (rows, c) real */
    mercer_matrix alpha, best, r, z, d, q;  /* fields (rows, c) f64 */
    double *loss;                           /* (c) J of each column, penalties included */
    double *size;                           /* (c) b' M^-1 b */
    double *slope, *curve, *mixed, *factor; /* (c) slope: d'r; curve: d'Ad; mixed: z'Ad; factor: step lengths */
    double *ridge, *active;                 /* (c) ridge: penalties; active: 1, or 0 if frozen */
    double best_loss;                       /* true J of `best`, all columns */
    int64_t period, since;                  /* period: steps between refreshes; since: steps since the last refresh */
    int64_t poor;  /* consecutive refreshes with a drifted residual and without a decrease of J */
    int64_t turns; /* passes over the data so far, including passes without a step */
    bool begun, progress, broken;
} cg_state;

void mrc_exact_cg_cost(const mrc_problem *problem, int64_t batch, double lambda, const mrc_preconditioner_sizes *sizes,
                       mrc_cost *once, mrc_cost *each)
{
    double c = (double)problem->c;
    mrc_normal_cost(problem, batch, lambda, sizes, once, each);
    once->held.shared += 8.0 * VECTORS * (double)problem->p * c;
    once->held.replicated += 8.0 * SCALARS * c + 64 * 8;
}

/* Allocate the vectors as fields, each with the rows of this rank, and the scalars of every column. */
static mercer_status allocate_cg(cg_state *self, mrc_scope *scope)
{
    mrc_centers *centers = self->exact->centers;
    int64_t c = self->exact->c;
    mercer_matrix *const all[VECTORS] = {&self->alpha, &self->best, &self->r, &self->z, &self->d, &self->q};
    for (int i = 0; i < VECTORS; i++)
        MRC_TRY(mrc_scope_field(scope, centers, all[i], c, MERCER_F64, "vectors of conjugate gradients"));
    MRC_TRY(mrc_scope_alloc_zero(scope, &self->loss, SCALARS * c, sizeof(double), "scalars of conjugate gradients"));
    double **const others[SCALARS - 1] = {&self->size,   &self->slope, &self->curve, &self->mixed,
                                          &self->factor, &self->ridge, &self->active};
    for (int i = 1; i < SCALARS; i++) *others[i - 1] = self->loss + i * c;
    return mrc_normal_create(&self->normal, self->exact);
}

/* ---- Columns ------------------------------------------------------------------------------------------------- */

/* Compute out[j] = x_j' y_j over the rows of all ranks. */
static mercer_status dots(cg_state *self, const mercer_matrix *x, const mercer_matrix *y, double *out)
{
    return mrc_centers_column_dots(self->exact->centers, x, y, out);
}

/* Compute y_j += sign factor_j x_j for the active columns. */
static mercer_status add_columns(cg_state *self, double sign, const mercer_matrix *x, const mercer_matrix *y)
{
    for (int64_t j = 0; j < self->exact->c; j++) {
        mercer_matrix from = mrc_columns(x, j, 1), to = mrc_columns(y, j, 1);
        if (self->active[j] == 0 || self->factor[j] == 0) continue;
        MRC_TRY(self->backend->ops->axpby(self->backend, sign * self->factor[j], &from, 1, &to));
    }
    return MERCER_OK;
}

/* Sum a scalar over the columns. */
static double total(const cg_state *self, const double *values)
{
    double sum = 0;
    for (int64_t j = 0; j < self->exact->c; j++) sum += values[j];
    return sum;
}

static bool any_active(const cg_state *self)
{
    return total(self, self->active) > 0;
}

/* Find the largest sqrt(r'z / size) over active columns, z = M^-1 r; with `freeze`, freeze the converged columns. */
static mercer_status check_columns(cg_state *self, bool freeze, double *largest)
{
    MRC_TRY(dots(self, &self->r, &self->z, self->mixed));
    *largest = 0;
    for (int64_t j = 0; j < self->exact->c; j++) {
        if (self->active[j] == 0) continue;
        double relative = sqrt(fmax(self->mixed[j], 0) / self->size[j]);
        *largest = isnan(relative) ? HUGE_VAL : fmax(*largest, relative);
        double left = self->mixed[j] * self->normal.weight, fall = self->size[j] * self->normal.weight;
        bool enough = left <= self->exact->slack * fmin(self->loss[j], FALL * fall);
        if (freeze && (relative <= self->exact->tolerance || enough)) self->active[j] = 0;
    }
    return MERCER_OK;
}

/* Compute z = M^-1 r, then check the columns. */
static mercer_status measure_gradient(cg_state *self, bool freeze, double *largest)
{
    MRC_TRY(mrc_normal_precondition(&self->normal, &self->r, &self->z));
    return check_columns(self, freeze, largest);
}

/* Add the penalties to `loss`, which contains sum_i w_i |f(x_i) - y_i|^2, so that `loss` becomes J. */
static mercer_status add_penalty(cg_state *self, const mercer_matrix *work)
{
    MRC_TRY(mrc_normal_penalty(&self->normal, &self->alpha, self->ridge, work));
    for (int64_t j = 0; j < self->exact->c; j++) self->loss[j] += self->ridge[j];
    return MERCER_OK;
}

/* ---- Steps --------------------------------------------------------------------------------------------------- */

/* Set alpha = 0 in a column with b = 0 and freeze it. */
static mercer_status clear_column(cg_state *self, int64_t j)
{
    mercer_matrix alpha = mrc_columns(&self->alpha, j, 1), b = mrc_columns(&self->q, j, 1);
    self->active[j] = 0, self->loss[j] = 0, self->progress = true;
    return self->backend->ops->axpby(self->backend, 1, &b, 0, &alpha); /* b is 0 */
}

/* Compute the initial r, d and loss; b, which is stored in q; and the size of b. */
static mercer_status start_cg(cg_state *self)
{
    mrc_exact_solver *exact = self->exact;
    mrc_backend *backend = self->backend;
    mercer_matrix *b = &self->q;
    MRC_TRY(backend->ops->copy(backend, &self->alpha, self->out));
    MRC_TRY(mrc_normal_begin(&self->normal, &self->alpha, b, &self->r, self->loss, &self->z));
    MRC_TRY(dots(self, b, b, self->size));
    for (int64_t j = 0; j < exact->c; j++) {
        self->active[j] = self->size[j] != 0;
        if (!isfinite(self->size[j]))
            return mrc_fail(exact->centers->context, MERCER_ERROR_NUMERIC,
                            "solver cg: squares of labels, sample weights or kernel values overflow; scale them");
        if (self->active[j] == 0) MRC_TRY(clear_column(self, j));
    }
    if (!any_active(self)) return MERCER_OK;
    MRC_TRY(add_penalty(self, &self->z));
    MRC_TRY(mrc_normal_precondition(&self->normal, b, &self->z));
    MRC_TRY(dots(self, b, &self->z, self->size));
    if (!self->normal.from_zero) MRC_TRY(mrc_normal_precondition(&self->normal, &self->r, &self->z)); /* else r = b */
    MRC_TRY(check_columns(self, true, &exact->relative_gradient));
    self->best_loss = total(self, self->loss);
    self->period = FIRST_REFRESH;
    MRC_TRY(backend->ops->copy(backend, &self->best, &self->alpha));
    return backend->ops->copy(backend, &self->d, &self->z);
}

/* After a refresh r and the loss are exact. Check whether the residual of the recurrence has drifted away from r, and
   whether further steps can decrease J. */
static mercer_status check_truth(cg_state *self, bool *drifted, bool *stop)
{
    mrc_exact_solver *exact = self->exact;
    double recurrence = exact->relative_gradient, now = total(self, self->loss), truth;
    MRC_TRY(measure_gradient(self, false, &truth));
    bool gain = now < (1 - NO_GAIN) * self->best_loss;
    if (now < self->best_loss) {
        self->best_loss = now;
        MRC_TRY(self->backend->ops->copy(self->backend, &self->best, &self->alpha));
    }
    exact->relative_gradient = truth;
    *drifted = !(truth <= 2 * recurrence);
    self->poor = !*drifted || gain ? 0 : self->poor + 1;
    self->period = *drifted ? mrc_max(self->period / 2, 1) : mrc_min(self->period * 2, LAST_REFRESH);
    self->since = 0;
    *stop = exact->stalled = self->poor == GIVE_UP || !isfinite(now) || !isfinite(truth);
    return MERCER_OK;
}

/* Compute the step lengths; freeze columns without positive curvature. */
static void choose_lengths(cg_state *self)
{
    for (int64_t j = 0; j < self->exact->c; j++) {
        self->factor[j] = self->slope[j] / self->curve[j];
        if (self->active[j] == 0) continue;
        if (self->curve[j] > 0 && isfinite(self->curve[j]) && isfinite(self->slope[j]) && isfinite(self->factor[j])) {
            self->loss[j] = fmax(self->loss[j] - self->factor[j] * self->slope[j], 0);
            self->progress = true;
        } else {
            self->active[j] = 0;
            self->broken = true;
        }
    }
}

/* Compute d = z + beta d and swap the memory of d and z, so that the content of z is undefined afterwards. */
static mercer_status turn_direction(cg_state *self)
{
    MRC_TRY(dots(self, &self->z, &self->q, self->mixed));
    for (int64_t j = 0; j < self->exact->c; j++) self->factor[j] = -self->mixed[j] / self->curve[j];
    MRC_TRY(add_columns(self, 1, &self->d, &self->z));
    mercer_matrix old = self->d;
    self->d = self->z, self->z = old;
    return MERCER_OK;
}

/* Make one pass over the data and take a step. No step is taken if a refresh restarts the direction or stops the
   run. */
static mercer_status one_step(cg_state *self, bool *stop)
{
    bool refresh = self->since == self->period, drifted = false;
    /* The fit goes to slope and not to loss: a pass that is stopped midway must leave the state unchanged. */
    MRC_TRY(mrc_normal_apply(&self->normal, &self->d, &self->q, refresh ? &self->alpha : NULL, &self->r, self->slope,
                             &self->z));
    if (refresh) {
        for (int64_t j = 0; j < self->exact->c; j++)
            self->loss[j] = self->size[j] == 0 ? 0 : self->slope[j]; /* 0: as set by clear_column */
        MRC_TRY(add_penalty(self, &self->z));
        MRC_TRY(check_truth(self, &drifted, stop));
        if (*stop) return MERCER_OK;
        if (drifted) return self->backend->ops->copy(self->backend, &self->d, &self->z);
    }
    MRC_TRY(dots(self, &self->d, &self->r, self->slope));
    MRC_TRY(dots(self, &self->d, &self->q, self->curve));
    choose_lengths(self);
    *stop = !any_active(self);
    if (*stop) return MERCER_OK;
    MRC_TRY(add_columns(self, 1, &self->d, &self->alpha));
    MRC_TRY(add_columns(self, -1, &self->q, &self->r));
    self->exact->steps_done++, self->since++;
    MRC_TRY(measure_gradient(self, true, &self->exact->relative_gradient));
    *stop = !any_active(self);
    return *stop ? MERCER_OK : turn_direction(self);
}

/* Check that this rank's rows of alpha are finite, also after they are rounded to the type of the result. */
static mercer_status check_own(cg_state *self)
{
    mrc_centers *centers = self->exact->centers;
    double largest;
    MRC_TRY(mrc_matrix_check_finite(centers->backend, "solver cg: alpha", &self->alpha, &largest));
    if (centers->real == MERCER_F32 && largest > (double)FLT_MAX)
        return mrc_fail(centers->context, MERCER_ERROR_NUMERIC,
                        "solver cg: weights of %g exceed the range of float; use f64", largest);
    return MERCER_OK;
}

/* Copy alpha to the caller's field, on all ranks or on none. */
static mercer_status publish_weights(cg_state *self)
{
    mrc_centers *centers = self->exact->centers;
    bool bad;
    mercer_status status = check_own(self);
    MRC_TRY(mrc_comm_any(centers->comm, status != MERCER_OK, &bad));
    MRC_TRY(status);
    if (bad)
        return mrc_fail(centers->context, MERCER_ERROR_NUMERIC,
                        "solver cg: weights of another rank exceed the range of float; use f64");
    return self->backend->ops->copy(self->backend, self->out, &self->alpha);
}

/* Return the fit without penalties, in the original units of the targets: squares of output j count scale_j^2. */
static double shown_loss(const cg_state *self)
{
    const mrc_units *units = self->exact->units;
    double loss = 0;
    if (!mrc_units_given(units)) return total(self, self->loss) - total(self, self->ridge);
    for (int64_t j = 0; j < self->exact->c; j++)
        loss += units->scale[j] * units->scale[j] * (self->loss[j] - self->ridge[j]);
    return loss;
}

/* Compute J without penalties, from the recurrence since the last refresh, and the penalties in ridge. z is
   overwritten. */
static mercer_status find_fit(cg_state *self, double *fit)
{
    MRC_TRY(mrc_normal_penalty(&self->normal, &self->alpha, self->ridge, &self->z));
    *fit = total(self, self->loss) - total(self, self->ridge);
    return MERCER_OK;
}

/* Show alpha to the monitor; *stop becomes true if the monitor stops. z is overwritten. */
static mercer_status report_step(cg_state *self, bool *stop)
{
    mrc_exact_solver *exact = self->exact;
    double loss;
    if (!exact->monitor) return MERCER_OK;
    MRC_TRY(find_fit(self, &loss));
    loss = shown_loss(self);
    MRC_TRY(publish_weights(self));
    if (exact->monitor(exact->monitor_user, exact->steps_done, exact->relative_gradient,
                       self->normal.mass > 0 ? fmax(loss, 0) / self->normal.mass : 0))
        *stop = true;
    return MERCER_OK;
}

/* ---- Saving and resuming ------------------------------------------------------------------------------------- */

void mrc_exact_cg_list(const mrc_exact_solver *exact, mrc_state *state)
{
    cg_state *self = exact->running;
    const double any = (double)INFINITY;
    const mrc_state_number numbers[] = {
        {"steps", .integer = &self->exact->steps_done},
        {"period", .integer = &self->period},
        {"since", .integer = &self->since},
        {"poor", .integer = &self->poor},
        {"turns", .integer = &self->turns},
        {"relative_gradient", .real = &self->exact->relative_gradient, .high = any, .unknown = true},
        {"jitter", .real = &self->exact->jitter, .high = 1},
        {"best_loss", .real = &self->best_loss, .low = -any, .high = any, .unknown = true},
        {"mass", .real = &self->normal.mass, .high = DBL_MAX},
        {"begun", .flag = &self->begun},
        {"progress", .flag = &self->progress},
        {"broken", .flag = &self->broken}};
    int64_t c = self->exact->c;
    const mercer_matrix *const vectors[] = {&self->alpha, &self->best, &self->r, &self->d};
    static const char *const names[] = {"state.alpha", "state.best_alpha", "state.residual", "state.direction"};
    mercer_matrix columns = mrc_view(self->loss, 1, c, MERCER_F64), sizes = mrc_view(self->size, 1, c, MERCER_F64),
                  active = mrc_view(self->active, 1, c, MERCER_F64);
    mrc_state_add_numbers(state, numbers, sizeof numbers / sizeof *numbers);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        mrc_state_add_field(state, names[i], vectors[i], self->exact->centers->p);
    mrc_state_add_matrix(state, "state.loss", &columns);
    mrc_state_add_matrix(state, "state.size", &sizes);
    mrc_state_add_matrix(state, "state.active", &active);
}

/* Ask the caller to save the state, either if saving is due or immediately (now). */
static mercer_status save_cg(cg_state *self, bool now)
{
    return self->exact->save ? self->exact->save(self->exact->save_user, now) : MERCER_OK;
}

/* Start, or resume from a saved state: the factors are computed again, the vectors are restored. */
static mercer_status begin_or_resume(cg_state *self)
{
    if (self->exact->restore) MRC_TRY(self->exact->restore(self->exact->save_user));
    if (self->begun && (self->period < 1 || self->since < 0 || self->turns < 0))
        return mrc_fail(self->exact->centers->context, MERCER_ERROR_FORMAT,
                        "the checkpoint's numbers are out of range");
    if (self->begun) return mrc_normal_resume(&self->normal, self->normal.mass);
    if (!self->exact->restore) MRC_TRY(save_cg(self, true));
    MRC_TRY(start_cg(self));
    self->begun = true;
    return MERCER_OK;
}

/* Compute J of alpha again. If the steps since the last refresh have gained nothing, they do not count as progress. */
static mercer_status verify(cg_state *self)
{
    mrc_exact_solver *exact = self->exact;
    MRC_TRY(mrc_normal_apply(&self->normal, &self->d, &self->q, &self->alpha, &self->r, self->slope, &self->z));
    for (int64_t j = 0; j < exact->c; j++) self->loss[j] = self->size[j] == 0 ? 0 : self->slope[j];
    MRC_TRY(add_penalty(self, &self->z));
    if (total(self, self->loss) < self->best_loss) return MERCER_OK;
    self->broken = true;
    if (exact->steps_done <= self->since) self->progress = false;
    return MERCER_OK;
}

/* Choose the best alpha. If a recurrence in float leaves almost nothing of J, or a negative value, J is computed again
   first. */
static mercer_status finish_cg(cg_state *self)
{
    mrc_exact_solver *exact = self->exact;
    double fit;
    exact->loss = 0;
    if (self->normal.mass <= 0) return MERCER_OK; /* the total weight is 0: nothing to fit */
    MRC_TRY(find_fit(self, &fit));
    if (exact->centers->real == MERCER_F32 && self->since > 0 && fit < DOUBTFUL * self->best_loss) {
        mercer_status status = exact->stream->stopped ? MERCER_OK : verify(self);
        if (exact->stream->stopped) return save_cg(self, true);
        MRC_TRY(status);
    }
    if (!(total(self, self->loss) <= self->best_loss)) {
        double best = self->best_loss, now = total(self, self->loss);
        MRC_TRY(self->backend->ops->copy(self->backend, &self->alpha, &self->best));
        /* only the sum of the best losses is stored: divide it in the current proportions */
        for (int64_t j = 0; j < exact->c; j++)
            self->loss[j] = isfinite(now) ? self->loss[j] / now * best : best / (double)exact->c;
    }
    MRC_TRY(find_fit(self, &fit));
    exact->loss = fmax(shown_loss(self), 0) / self->normal.mass;
    return MERCER_OK;
}

/* Step until a stop criterion holds, then choose the best weights. The state is saved only between passes, because it
   is consistent only then. */
static mercer_status iterate_cg(cg_state *self)
{
    mrc_exact_solver *exact = self->exact;
    mercer_status status = begin_or_resume(self);
    bool begun = status == MERCER_OK;
    if (begun) mrc_centers_notify(exact->centers, MRC_READY, 1);
    bool stop = !any_active(self);
    for (; self->turns < exact->steps && !stop && status == MERCER_OK;) {
        int64_t before = exact->steps_done;
        status = one_step(self, &stop);
        if (status != MERCER_OK) break;
        self->turns++;
        bool stepped = exact->steps_done > before, enough = false;
        if (stepped) status = report_step(self, &enough);
        stop = stop || enough;
        if (status == MERCER_OK && stepped) status = save_cg(self, enough);
    }
    if (status != MERCER_OK && exact->stream->stopped)
        status = save_cg(self, true); /* if stopped during a pass, this saves the state before the pass */
    if (!begun)
        return status; /* finish_cg needs the preconditioner, which may be missing; the weights stay unchanged */
    MRC_TRY(status);
    MRC_TRY(finish_cg(self));
    if (self->broken && !self->progress)
        return mrc_fail(exact->centers->context, MERCER_ERROR_NUMERIC,
                        "solver cg: no step decreases the objective (curvature %g)", self->curve[0]);
    if (self->broken || exact->stalled)
        mrc_log(exact->centers->context, MERCER_LOG_INFO,
                "conjugate gradients stopped at rounding errors after %lld steps, relative gradient %.1e",
                (long long)exact->steps_done, exact->relative_gradient);
    return publish_weights(self);
}

mercer_status mrc_exact_cg(mrc_exact_solver *exact, const mercer_matrix *alpha)
{
    mrc_centers *centers = exact->centers;
    cg_state self = {.exact = exact, .backend = centers->backend, .out = alpha};
    exact->steps_done = 0, exact->relative_gradient = 0, exact->jitter = 0, exact->stalled = false;
    exact->times = (mrc_exact_times){0};
    mrc_problem problem = mrc_exact_problem(exact);
    mrc_cost once, each;
    mrc_exact_cg_cost(&problem, exact->kernel_blocks->most_rows, exact->lambda, &exact->preconditioner_sizes, &once,
                      &each);
    MRC_TRY(mrc_exact_check_memory(exact, "cg", once.held));
    MRC_SCOPE(scope, centers->context);
    exact->running = &self;
    mercer_status status = allocate_cg(&self, &scope);
    if (status == MERCER_OK) status = iterate_cg(&self);
    mrc_normal_destroy(&self.normal);
    exact->running = NULL;
    return status;
}
