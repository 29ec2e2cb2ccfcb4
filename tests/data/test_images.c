/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests training on real images (MNIST, Fashion-MNIST) in the folder MERCER_DATA; skipped if MERCER_DATA is not set.
 * Few centers and a third of the images keep the test within seconds; bench/paper/table.c makes the complete table of
 * accuracies.
 *
 * For the same centers the direct solution is the optimum, so the iterative solvers are compared with it. The standard
 * deviation of an accuracy a on 10,000 test images is sqrt(a (1-a) / 10^4) < 0.4 points, and the difference
 * of two models this close varies even less, because they agree on nearly all images.
 */
#include "../../bench/paper/idx.h"
#include "comm/comm.h"
#include "support/check.h"
#include "support/sources.h"

#include <mercer/ranks.h>

#include <math.h>
#include <string.h>

enum { N = 20000, P = 300, CLASSES = 10, SKIPPED = 77 };

typedef struct images {
    mercer_context *context;
    idx_data train, test;
    mercer_matrix X, T, Z;
} images;

static bool load(images *self, const char *name)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/%s", getenv("MERCER_DATA"), name);
    if (idx_load(&self->train, folder, "train") || idx_load(&self->test, folder, "t10k")) return false;
    self->X = mercer_matrix_view(self->train.pixels, N, self->train.d, MERCER_U8);
    self->T = mercer_matrix_view(self->test.pixels, self->test.n, self->test.d, MERCER_U8);
    self->Z = self->X; /* the images are in random order, so the first rows are a random sample */
    self->Z.rows = P;
    return true;
}

/* Train with these options; return the test accuracy in percent. */
static double accuracy(images *self, const char *solver, const char *projector, int ranks)
{
    mercer_kernel kernel;
    mercer_model *model;
    mercer_trainer *trainer;
    mercer_source source;
    mercer_comm *comm = NULL;
    mercer_train_options options = {.struct_size = sizeof options, .solver = solver, .projector = projector, .seed = 1};
    assert_succeeds(self->context, mercer_kernel_parse(&kernel, self->context,
                                                       "laplace:bandwidth=2550")); /* 10 in units of pixels/255 */
    assert_succeeds(self->context,
                    mercer_model_create(&model, self->context, NULL, &kernel, &self->Z, CLASSES, (mercer_dtype)0));
    assert_succeeds(self->context,
                    source_from_labels(&source, self->context, &self->X, self->train.labels, CLASSES, NULL, 1));
    if (ranks > 1) assert_succeeds(self->context, mrc_comm_create_virtual(&comm, self->context, ranks));
    assert_succeeds(self->context, mercer_trainer_create(&trainer, model, comm, &options));
    assert_succeeds(self->context, mercer_trainer_fit(trainer, &source, NULL));
    int32_t *labels = malloc((size_t)self->test.n * sizeof *labels);
    int64_t right = 0;
    assert_non_null(labels);
    assert_succeeds(self->context, mercer_model_classify(model, labels, &self->T));
    for (int64_t i = 0; i < self->test.n; i++) right += labels[i] == self->test.labels[i];
    free(labels);
    mercer_trainer_free(trainer);
    mercer_comm_free(comm);
    mercer_source_free(&source);
    mercer_model_free(model);
    double percent = 100 * (double)right / (double)self->test.n;
    print_message("  %-6s %-5s %d rank(s): %.2f %%\n", solver, projector, ranks, percent);
    return percent;
}

/* Check one dataset. least: lower bound of the accuracy, that of the paper with 100 centers, which 300 centers must
   exceed. all: also test more solvers, projectors and ranks. */
static void check_data(const char *name, double least, bool all)
{
    images self = {0};
    if (!load(&self, name)) fail_msg("%s: MERCER_DATA is set, but the data cannot be read", name);
    assert_int_equal(mercer_context_create(&self.context, NULL), MERCER_OK);
    print_message("%s, %d centers\n", name, (int)P);
    double best = accuracy(&self, "direct", "auto", 1);
    assert_true(best > least);
    if (all) assert_true(fabs(accuracy(&self, "cg", "auto", 1) - best) <= 0.1);
    double ep4 = accuracy(&self, "ep4", "exact", 1);
    assert_true(fabs(ep4 - best) <= 0.4);
    if (all) assert_true(fabs(accuracy(&self, "ep4", "bgs", 1) - ep4) <= 0.2);
    if (all) assert_true(fabs(accuracy(&self, "ep4", "exact", 3) - ep4) <= 0.1);
    mercer_context_free(self.context);
    idx_free(&self.train);
    idx_free(&self.test);
}

static void test_mnist(void **state)
{
    (void)state;
    check_data("mnist", 87.24, true);
}

static void test_fashion_mnist(void **state)
{
    (void)state;
    check_data("fashion-mnist", 76.24, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mnist), cmocka_unit_test(test_fashion_mnist)};
    if (!getenv("MERCER_DATA")) {
        puts("skipped: MERCER_DATA is not set");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
