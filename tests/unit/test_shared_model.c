/* SPDX-License-Identifier: BSD-3-Clause */
/* A model shared by ranks: its predictions, its file and its training are bitwise identical to those of one process;
   failing calls. */
#include "support/local_ranks.h"

#include "core/matrix.h"
#include "core/numbers/random.h"
#include "model/model_file.h"
#include "support/failing_files.h"
#include "support/folder.h"
#include "support/sources.h"

/* ---- One model shared by all ranks --------------------------------------------------------------------------- */

enum { CENTERS = 13, FEATURES = 4, OUTPUTS = 2, SAMPLES = 6, SHARDS = 5 };

/* Data common to all ranks: inputs, and the results of one process with the same number of shards. */
typedef struct shared_model {
    float z[CENTERS * FEATURES], w[CENTERS * OUTPUTS], x[SAMPLES * FEATURES], f[SAMPLES * OUTPUTS];
    char path[FOLDER_CHARS + 128];
    bool may_fail;
    _Atomic int good; /* number of ranks that wrote it */
} shared_model;

static int make_share(mercer_model **out, mrc_comm *comm, mercer_context *context, shared_model *of)
{
    int64_t first, rows;
    mercer_kernel kernel;
    mrc_comm_rows(comm, CENTERS, comm->rank, &first, &rows);
    mercer_matrix z = mrc_view(of->z + first * FEATURES, rows, FEATURES, MERCER_F32);
    if (mercer_kernel_parse(&kernel, context, "laplace:bandwidth=3") != MERCER_OK ||
        mercer_model_create(out, context, comm, &kernel, &z, OUTPUTS, MERCER_F32) != MERCER_OK)
        return 1;
    memcpy((*out)->weights.data, of->w + first * OUTPUTS, (size_t)(rows * OUTPUTS) * sizeof(float));
    return 0;
}

/* Predictions, a file and the shares read from it are bitwise identical to those of one process. */
static int write_together(mrc_comm *comm, mercer_context *context, void *user)
{
    shared_model *of = user;
    mercer_model *model = NULL, *again = NULL;
    float f[SAMPLES * OUTPUTS];
    mercer_matrix x = mrc_view(of->x, SAMPLES, FEATURES, MERCER_F32), to = mrc_view(f, SAMPLES, OUTPUTS, MERCER_F32);
    int wrong = make_share(&model, comm, context, of);
    if (!of->may_fail) {
        if (wrong == 0) wrong = 2 * (mrc_model_predict(model, &to, &x) != MERCER_OK);
        if (wrong == 0) wrong = 4 * (memcmp(f, of->f, sizeof f) != 0);
    }
    mercer_status status = wrong ? MERCER_OK : mrc_model_write(model, of->path, NULL, NULL, 0);
    of->good += status == MERCER_OK;
    if (status != MERCER_OK && !of->may_fail) wrong = 8;
    if (!of->may_fail) {
        if (wrong == 0) wrong = 16 * (mercer_model_load(&again, context, comm, of->path) != MERCER_OK);
        if (wrong == 0)
            wrong = 32 * (again->first != model->first || again->weights.rows != model->weights.rows ||
                          again->centers.rows != model->centers.rows ||
                          memcmp(again->centers.data, model->centers.data,
                                 (size_t)(model->centers.rows * FEATURES) * sizeof(float)) != 0 ||
                          memcmp(again->weights.data, model->weights.data,
                                 (size_t)(model->weights.rows * OUTPUTS) * sizeof(float)) != 0);
    }
    mercer_model_free(again);
    mercer_model_free(model);
    return wrong;
}

static shared_model open_shared(void)
{
    shared_model of = {.may_fail = false};
    mercer_context *context;
    mrc_comm *comm;
    mercer_model *model;
    mrc_rng rng = {5, 1};
    for (int i = 0; i < CENTERS * FEATURES; i++) of.z[i] = (float)mrc_random_normal(rng, (uint64_t)i);
    for (int i = 0; i < CENTERS * OUTPUTS; i++) of.w[i] = (float)mrc_random_normal(rng, (uint64_t)(100 + i));
    for (int i = 0; i < SAMPLES * FEATURES; i++) of.x[i] = (float)mrc_random_normal(rng, (uint64_t)(200 + i));
    folder_open();
    snprintf(of.path, sizeof of.path, "%s", in_folder("alone"));
    assert_succeeds(NULL, mercer_context_create(&context, NULL));
    assert_succeeds(context, mrc_comm_create_virtual(&comm, context, SHARDS));
    assert_int_equal(make_share(&model, comm, context, &of), 0);
    mercer_matrix x = mrc_view(of.x, SAMPLES, FEATURES, MERCER_F32), f = mrc_view(of.f, SAMPLES, OUTPUTS, MERCER_F32);
    assert_succeeds(context, mrc_model_predict(model, &f, &x));
    assert_succeeds(context, mrc_model_write(model, of.path, NULL, NULL, 0));
    mercer_model_free(model);
    mercer_comm_free(comm);
    mercer_context_free(context);
    snprintf(of.path, sizeof of.path, "%s", in_folder("together"));
    return of;
}

static void test_one_file_of_all(void **state)
{
    (void)state;
    shared_model of = open_shared();
    for (int ranks = 2; ranks <= SHARDS; ranks++) { /* the last rank has one shard */
        with_ranks(ranks, SHARDS, write_together, &of);
        assert_same_bytes(in_folder("alone"), of.path);
        assert_int_equal(folder_count(), 2);
    }
    folder_close();
}

/* Passes one center too few on rank 0: on all ranks creation fails, with a message that says what is wrong. */
static int create_wrong(mrc_comm *comm, mercer_context *context, void *user)
{
    shared_model *of = user;
    int64_t first, rows;
    mercer_kernel kernel;
    mercer_model *model = (mercer_model *)of;
    mrc_comm_rows(comm, CENTERS, comm->rank, &first, &rows);
    mercer_matrix z = mrc_view(of->z + first * FEATURES, rows - (comm->rank == 0), FEATURES, MERCER_F32);
    if (mercer_kernel_parse(&kernel, context, "linear") != MERCER_OK) return 1;
    mercer_status status = mercer_model_create(&model, context, comm, &kernel, &z, OUTPUTS, MERCER_F32);
    if (status != MERCER_ERROR_SHAPE && status != MERCER_ERROR_COMM) return 2;
    if (!mentions(mercer_last_error(context), "rank's share of 12")) return 4;
    if (model) return 8;
    if (comm->rank == 0) z.ld = 1; /* invalid on one rank only */
    status = mercer_model_create(&model, context, comm, &kernel, &z, OUTPUTS, MERCER_F32);
    if (status != (comm->rank == 0 ? MERCER_ERROR_SHAPE : MERCER_ERROR_COMM) || model) return 9;
    /* The ranks are still synchronized: the next call succeeds. */
    int code = make_share(&model, comm, context, of);
    mercer_model_free(model);
    return 16 * code;
}

static void test_wrong_share(void **state)
{
    (void)state;
    shared_model of = open_shared();
    with_ranks(3, SHARDS, create_wrong, &of);
    mercer_context *one, *two;
    mercer_comm_options self = {.struct_size = sizeof self, .kind = "self", .shards = SHARDS};
    mercer_comm *comm;
    mercer_model *model = (mercer_model *)&of;
    assert_succeeds(NULL, mercer_context_create(&one, NULL));
    assert_succeeds(NULL, mercer_context_create(&two, NULL));
    assert_succeeds(one, mercer_comm_create(&comm, one, &self));
    assert_fails(two, mercer_model_load(&model, two, comm, in_folder("alone")), MERCER_ERROR_ARGUMENT,
                 "another context");
    assert_null(model);
    assert_succeeds(one, mercer_model_load(&model, one, comm, in_folder("alone")));
    mercer_model_free(model);
    mercer_comm_free(comm);
    mercer_context_free(one), mercer_context_free(two);
    folder_close();
}

/* ---- Training on all ranks -------------------------------------------------------------------------------------- */

enum { ROWS = 40 };

typedef struct shared_training {
    shared_model *model;
    float x[ROWS * FEATURES], y[ROWS * OUTPUTS], weights[CENTERS * OUTPUTS];
    int stop_at; /* step after which it stops, with a checkpoint; 0: never */
    bool resume;
} shared_training;

static int stop_there(void *user, const mercer_progress *progress)
{
    int *left = user;
    return !progress->phase && *left > 0 && --*left == 0;
}

/* Trains and copies this rank's weights to their position among all weights; returns 0 on success. */
static int train_together(mrc_comm *comm, mercer_context *context, void *user)
{
    shared_training *of = user;
    mercer_model *model = NULL;
    mercer_trainer *trainer = NULL;
    mercer_source source = {0};
    mercer_matrix x = mrc_view(of->x, ROWS, FEATURES, MERCER_F32), y = mrc_view(of->y, ROWS, OUTPUTS, MERCER_F32);
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    int left = of->stop_at;
    options.solver = "ep4", options.projector = "bgs", options.epochs = 2, options.batch = 7, options.period = 2;
    options.nystrom = 12, options.eigenpairs = 3, options.seed = 3, options.memory = 1 << 28;
    options.checkpoint = of->stop_at > 0 ? of->model->path : NULL;
    options.progress = stop_there, options.progress_user = &left, options.progress_seconds = 1e-9;
    bool fine = (of->resume ? mrc_model_read(&model, context, comm, of->model->path) == MERCER_OK
                            : make_share(&model, comm, context, of->model) == 0) &&
                source_from_matrices(&source, context, &x, &y, NULL, 5) == MERCER_OK &&
                mercer_trainer_create(&trainer, model, comm, &options) == MERCER_OK &&
                (!of->resume || mercer_trainer_resume(trainer, of->model->path) == MERCER_OK) &&
                mercer_trainer_fit(trainer, &source, NULL) == MERCER_OK;
    if (fine)
        memcpy(of->weights + model->first * OUTPUTS, model->weights.data,
               (size_t)(model->weights.rows * OUTPUTS) * sizeof(float));
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    return !fine;
}

/* Ranks that were stopped at any step and resume, with the same number of ranks or fewer, get the weights of one
   uninterrupted process. */
static void test_training_goes_on(void **state)
{
    (void)state;
    shared_model model = open_shared();
    shared_training of = {.model = &model};
    float wanted[CENTERS * OUTPUTS];
    mercer_context *context;
    mrc_comm *comm;
    mrc_rng rng = {5, 2};
    for (int i = 0; i < ROWS * FEATURES; i++) of.x[i] = (float)mrc_random_normal(rng, (uint64_t)i);
    for (int i = 0; i < ROWS * OUTPUTS; i++) of.y[i] = (float)mrc_random_normal(rng, (uint64_t)(1000 + i));
    assert_succeeds(NULL, mercer_context_create(&context, NULL));
    assert_succeeds(context, mrc_comm_create_virtual(&comm, context, SHARDS));
    assert_int_equal(train_together(comm, context, &of), 0);
    memcpy(wanted, of.weights, sizeof wanted);
    mercer_comm_free(comm);
    mercer_context_free(context);
    for (int stop = 1; stop <= 9; stop += 4) { /* also in the middle of a period */
        of.stop_at = stop, of.resume = false;
        with_ranks(3, SHARDS, train_together, &of);
        of.stop_at = 0, of.resume = true;
        for (int ranks = 2; ranks <= 3; ranks++) {
            memset(of.weights, 0, sizeof of.weights);
            with_ranks(ranks, SHARDS, train_together, &of);
            assert_that(memcmp(of.weights, wanted, sizeof wanted) == 0, "stopped at %d, gone on by %d", stop, ranks);
        }
    }
    folder_close();
}

/* If any call fails on any rank, all ranks get an error, and the file is either the old file or the complete new file.
   */
static void test_one_file_fails(void **state)
{
    (void)state;
    static const call_kind kinds[] = {CALL_open,  CALL_close,  CALL_pwrite, CALL_ftruncate, CALL_fsync,
                                      CALL_fstat, CALL_rename, CALL_mmap,   CALL_stat};
    static const int errors[] = {ENOSPC, EINTR, HALF};
    shared_model of = open_shared();
    int refused = 0, descriptors = open_descriptors();
    of.may_fail = true;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int e = 0; e < (kinds[k] == CALL_pwrite ? 3 : 1); e++)
            for (int64_t at = 0;; at++) {
                assert_true(at < 100);
                write_bytes(of.path, "old", 3);
                of.good = 0;
                fault_begin(kinds[k], at, errors[e]);
                with_ranks(2, 0, write_together, &of);
                bool failed = fault.failed;
                fault_end();
                assert_that(of.good == 0 || of.good == 2, "%s %d: %d ranks", call_names[kinds[k]], (int)at, of.good);
                assert_true(failed || of.good == 2);
                file_bytes found = read_bytes(of.path);
                assert_true(found.count == 3 ? of.good == 0 && memcmp(found.data, "old", 3) == 0 : found.count > 100);
                free(found.data);
                if (of.good == 2) assert_same_bytes(in_folder("alone"), of.path);
                assert_int_equal(folder_count(), 2);
                assert_int_equal(open_descriptors(), descriptors);
                refused += of.good == 0;
                if (!failed) break;
            }
    print_message("    %d refused\n", refused);
    assert_true(refused > 10);
    folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_file_of_all),
        cmocka_unit_test(test_wrong_share),
        cmocka_unit_test(test_one_file_fails),
        cmocka_unit_test(test_training_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
