/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No option is ignored silently. For every solver, projector and option of the list, one of three things happens:
 * training with the option is refused with both names in the message; or its plan says that the option has no effect,
 * and the weights have the same bits; or the option has an effect, and the weights differ.
 */
#include "support/training.h"

#include "support/info.h"
#include "support/sources.h"

#include "plan/plan.h"

static const sizes SMALL = {40, 12, 3, 2};

/* Values that differ from every solver's own choice for these sizes; for switches, ON is compared with OFF. */
static const struct {
    const char *name;
    double value;
} values[] = {{"epochs", 3},
              {"batch", 7},
              {"lambda", 0.5},
              {"polish", 2},
              {"step_factor", 0.3},
              {"nystrom", 17},
              {"eigenpairs", 3},
              {"period", 2},
              {"projector_nystrom", 5},
              {"projector_eigenpairs", 2},
              {"projector_passes", 2},
              {"projector_tolerance", 0.6},
              {"projector_block", 7}};

static void set(mercer_train_options *options, const mercer_option *row, bool on)
{
    void *field = (char *)options + row->offset;
    double value = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].name, row->name) == 0) value = values[i].value;
    if (row->type == MERCER_OPTION_SWITCH) *(mercer_switch *)field = on ? MERCER_ON : MERCER_OFF;
    if (!on) return;
    assert_that(value > 0 || row->type == MERCER_OPTION_SWITCH, "no value for %s", row->name);
    if (row->type == MERCER_OPTION_INTEGER) *(int64_t *)field = (int64_t)value;
    if (row->type == MERCER_OPTION_NUMBER) *(double *)field = value;
}

/* Return the base training without the option: several projections of several passes, each of several blocks. */
static mercer_train_options base_of(const char *solver, const char *projector)
{
    mercer_train_options options = options_for(solver);
    options.memory = (int64_t)1 << 30, options.projector = projector;
    /* With the default epochs such small problems converge, and additional steps change nothing. */
    if (mercer_solver_kind_of(solver) >= MERCER_SOLVER_BATCHES) options.epochs = 10;
    if (!projector) return options;
    options.epochs = 2, options.batch = 13, options.projector_nystrom = 8, options.projector_eigenpairs = 3;
    options.projector_passes = 4, options.projector_block = strcmp(projector, "bgs") == 0 ? 4 : 0;
    return options;
}

/* Train and return true with the weights and the plan, or return false if it fails, with a message in the context. */
static bool try_training(const task *t, const mercer_train_options *options, dense *weights, mercer_plan *plan)
{
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer = NULL;
    mercer_report report = {.struct_size = sizeof report};
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &t->kernel, &t->z, t->y.cols, MERCER_F64));
    assert_succeeds(context, source_from_matrices(&source, context, &t->x, &t->y, NULL, 7));
    mercer_status status = mercer_trainer_create(&trainer, model, NULL, options);
    if (!status) status = mercer_trainer_fit(trainer, &source, &report);
    assert_true(status == MERCER_OK || status == MERCER_ERROR_ARGUMENT);
    if (!status) {
        mercer_matrix found = model_info(model).weights;
        *weights = dense_of(&found), *plan = *report.plan;
    }
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    return !status;
}

typedef enum outcome { REFUSED, MENTIONED, USED, OUTCOMES } outcome;

static outcome try_option(const task *t, const char *solver, const char *projector, const mercer_option *row)
{
    mercer_train_options without = base_of(solver, projector), with = without;
    mercer_plan first, second;
    dense a, b;
    char said[96];
    set(&without, row, false), set(&with, row, true);
    assert_succeeds(context, try_training(t, &without, &a, &first) ? MERCER_OK : MERCER_ERROR_ARGUMENT);
    if (!try_training(t, &with, &b, &second)) {
        const char *message = mercer_last_error(context);
        assert_that(mentions(message, row->name) && mentions(message, solver), "%s, %s: %s", solver, row->name,
                    message);
        assert_that(mentions(message, "ep4"), "%s", message);
        free(a.a);
        return REFUSED;
    }
    snprintf(said, sizeof said, ": %s ", row->name);
    bool mentioned = mentions(second.text, said), same = dense_distance(a, b) == 0;
    assert_that(mentioned == same, "%s, %s, %s: %s, but %s", solver, second.projector, row->name,
                same ? "changes nothing" : "changes the weights", mentioned ? "is mentioned" : "is not mentioned");
    free(a.a), free(b.a);
    return mentioned ? MENTIONED : USED;
}

/* Return whether other tests cover the option: names, and options that do not change weights even when they are
   used. */
static bool is_special(const char *name)
{
    static const char *const special[] = {"solver", "projector", "patience", "cache", "converge"};
    for (int i = 0; i < 5; i++)
        if (strcmp(name, special[i]) == 0) return true;
    return false;
}

static void test_walk(void **state)
{
    (void)state;
    int seen[OUTCOMES] = {0};
    task any = task_open(context, "laplace:bandwidth=2", SMALL, 1, MERCER_F64);
    task on_samples = task_open(context, "laplace:bandwidth=2", (sizes){SMALL.n, 0, SMALL.d, SMALL.c}, 1, MERCER_F64);
    for (int s = 0; mrc_solver_row(s); s++) {
        const char *solver = mrc_solver_row(s)->name;
        for (int i = 0; mercer_train_option(i) != NULL; i++) {
            const mercer_option *row = mercer_train_option(i);
            /* Projector options depend on the projector: see below. */
            bool parts = strncmp(row->name, "projector_", 10) == 0 && projects(solver);
            if (is_special(row->name) || parts) continue;
            seen[try_option(needs_samples(solver) ? &on_samples : &any, solver, NULL, row)]++;
        }
    }
    for (int p = 0; mrc_projector_row(p); p++)
        for (int i = 0; mercer_train_option(i) != NULL; i++) {
            const mercer_option *row = mercer_train_option(i);
            if (strncmp(row->name, "projector_", 10) == 0)
                seen[try_option(&any, "ep3", mrc_projector_row(p)->name, row)]++;
        }
    assert_true(seen[REFUSED] > 40 && seen[MENTIONED] > 10 && seen[USED] > 60);
    task_close(&any), task_close(&on_samples);
}

/* A projector chosen by the planner or the solver is treated like a named one; the plan mentions every option. */
static void test_mentions(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=2", SMALL, 1, MERCER_F64);
    mercer_train_options options = base_of("ep4", NULL);
    mercer_plan plan;
    dense weights;
    options.projector_block = 4, options.projector_passes = 2;
    assert_true(try_training(&t, &options, &weights, &plan));
    assert_string_equal(plan.projector, "exact");
    assert_true(mentions(plan.text, "warning: projector exact: projector_passes "));
    assert_true(mentions(plan.text, "warning: projector exact: projector_block "));
    free(weights.a);
    options = base_of("direct", NULL);
    options.epochs = 2, options.batch = 8, options.cache = MERCER_ON;
    options.validation_X = &t.x, options.validation_Y = &t.y;
    assert_true(try_training(&t, &options, &weights, &plan));
    static const char *const lines[] = {"warning: solver direct: epochs ", "warning: solver direct: batch ",
                                        "\nsolver direct: cache "};
    for (int i = 0; i < 3; i++) assert_that(mentions(plan.text, lines[i]), "%s is not in\n%s", lines[i], plan.text);
    free(weights.a);
    options.patience = 1; /* early stopping without anything to stop is refused */
    assert_false(try_training(&t, &options, &weights, &plan));
    options.solver = "cg"; /* cg supports the last two options */
    assert_true(try_training(&t, &options, &weights, &plan));
    assert_false(mentions(plan.text, "patience"));
    assert_false(mentions(plan.text, ": cache "));
    free(weights.a);
    task_close(&t);
}

/* converge only applies to "auto", which then chooses no solver that trains in batches, even if that would be much
   faster, and reports solvers that do not fit. */
static void test_converge(void **state)
{
    (void)state;
    mercer_shape shape = {
        .struct_size = sizeof shape, .samples = 100000000, .centers = 20000, .features = 10, .outputs = 1};
    mercer_train_options options = {.struct_size = sizeof options, .memory = (int64_t)1 << 40};
    mercer_plan plan = {.struct_size = sizeof plan};
    options.converge = MERCER_ON;
    assert_succeeds(context, mercer_plan_shape(context, &plan, &shape, &options));
    assert_true(mercer_solver_kind_of(plan.solver) != MERCER_SOLVER_BATCHES);
    assert_true(mentions(plan.text, "ep4 *converge"));
    options.memory = (int64_t)1 << 24;
    assert_fails(context, mercer_plan_shape(context, &plan, &shape, &options), MERCER_ERROR_MEMORY, "cg");
    options.solver = "ep4";
    assert_fails(context, mercer_plan_shape(context, &plan, &shape, &options), MERCER_ERROR_ARGUMENT, "converge");
    shape.samples = shape.centers = 2000, shape.on_samples = MERCER_ON, options.solver = NULL,
    options.memory = (int64_t)1 << 30;
    assert_succeeds(context, mercer_plan_shape(context, &plan, &shape, &options));
    assert_string_equal(plan.solver, "krr");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walk), cmocka_unit_test(test_mentions),
                                       cmocka_unit_test(test_converge)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
