/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of training options: rows describe the struct, and errors for values out of range name the option. */
#include "support/check.h"
#include "support/plans.h"

#include "plan/plan.h"

#include <mercer/advanced.h>

#include <math.h>
#include <string.h>

static mercer_context *context;
static mercer_model *model;

static int set_up(void **state)
{
    static float points[3][2] = {{0, 1}, {2, 3}, {5, 7}};
    mercer_kernel kernel;
    mercer_matrix z = mercer_matrix_view(points, 3, 2, MERCER_F32);
    (void)state;
    assert_int_equal(mercer_context_create(&context, NULL), MERCER_OK);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=2"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, 1, MERCER_F32));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mercer_model_free(model);
    mercer_context_free(context);
    return 0;
}

static int64_t size_of(mercer_option_type type)
{
    switch (type) {
        case MERCER_OPTION_INTEGER: return sizeof(int64_t);
        case MERCER_OPTION_NUMBER: return sizeof(double);
        case MERCER_OPTION_SWITCH: return sizeof(mercer_switch);
        case MERCER_OPTION_NAME: return sizeof(char *);
    }
    return 0;
}

static void test_rows(void **state)
{
    (void)state;
    char used[sizeof(mercer_train_options)] = {0};
    int count = 0;
    for (const mercer_option *row; (row = mercer_train_option(count)) != NULL; count++) {
        assert_int_equal(row->struct_size, sizeof *row);
        assert_true(strlen(row->name) > 0 && strlen(row->help) > 0 && strlen(row->help) < 120);
        assert_true(size_of(row->type) > 0);
        assert_true(row->offset >= sizeof(size_t) && row->offset % (size_t)size_of(row->type) == 0);
        assert_true(row->offset + (size_t)size_of(row->type) <= sizeof used);
        for (int64_t i = 0; i < size_of(row->type); i++) assert_int_equal(used[row->offset + (size_t)i]++, 0);
        for (int other = 0; other < count; other++)
            assert_true(strcmp(row->name, mercer_train_option(other)->name) != 0);
    }
    assert_true(count >= 20);
    assert_null(mercer_train_option(count + 1));
    assert_null(mercer_train_option(-1));
}

/* Assert that an invalid value, written to the field through its row, is refused by a message that names the option. */
static void refuse(const mercer_option *row, const void *value)
{
    mercer_train_options options = {.struct_size = sizeof options};
    mercer_trainer *trainer;
    memcpy((char *)&options + row->offset, value, (size_t)size_of(row->type));
    assert_fails(context, mercer_trainer_create(&trainer, model, NULL, &options), MERCER_ERROR_ARGUMENT, row->name);
    assert_null(trainer);
}

static void test_ranges(void **state)
{
    (void)state;
    const double numbers[] = {-1e-9, NAN, INFINITY}, above[] = {1, 2};
    const int64_t integers[] = {-2, INT64_MIN};
    const int switches[] = {3, -1};
    const char *const unknown = "nonsense";
    for (int i = 0; mercer_train_option(i) != NULL; i++) {
        const mercer_option *row = mercer_train_option(i);
        for (int k = 0; k < 3 && row->type == MERCER_OPTION_NUMBER; k++) refuse(row, &numbers[k]);
        for (int k = 0; k < 2 && row->type == MERCER_OPTION_NUMBER && row->limit == 1; k++) refuse(row, &above[k]);
        for (int k = 0; k < 2 && row->type == MERCER_OPTION_INTEGER; k++) refuse(row, &integers[k]);
        for (int k = 0; k < 2 && row->type == MERCER_OPTION_SWITCH; k++) refuse(row, &switches[k]);
        if (row->type == MERCER_OPTION_NAME) refuse(row, &unknown);
    }
}

/* If an option has no effect with a solver, the message lists the solvers that support it. */
static void test_users(void **state)
{
    (void)state;
    mercer_train_options options = {.struct_size = sizeof options, .solver = "direct", .carry = MERCER_ON};
    assert_fails(context, check_options(context, &options), MERCER_ERROR_ARGUMENT, "ep4, ep3, paper, ep3-exact, nytro");
    options = (mercer_train_options){.struct_size = sizeof options, .lambda = 5, .memory = -1};
    assert_fails(context, check_options(context, &options), MERCER_ERROR_ARGUMENT, "memory is -1");
    options.memory = 0;
    assert_succeeds(context, check_options(context, &options));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_ranges),
                                       cmocka_unit_test(test_users)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
