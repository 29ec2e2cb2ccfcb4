/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes call number n of each kind of system call fail, n = 0, 1, ... up to the number of such calls, in all operations
 * that read or write files: with EIO, ENOSPC, EINTR, and by transferring only half of the bytes. A failure must have a
 * status and a message that names the file. An existing file must stay unchanged or be replaced completely. No
 * temporary file, descriptor or memory may leak, and the same operation must then succeed. The test also makes
 * allocation number n fail and checks the same conditions. The last lines of the output count the injected failures.
 */
#include "support/datasets.h"

#include "comm/comm.h"
#include "core/file/spill.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"
#include "mercer/evaluation.h"
#include "mercer/ranks.h"
#include "support/failing_files.h"
#include "support/info.h"
#include "support/sources.h"

#include <limits.h>
#include <unistd.h>

enum { ROWS = 40, WIDTH = 3, CENTERS = 10 };

typedef struct fixture {
    mercer_model *model;
    mercer_dataset *data;
    mercer_matrix x, y;
} fixture;

typedef struct action {
    const char *name;
    mercer_status (*run)(fixture *self);
    const char *writes[2]; /* names of the files that the action replaces */
    const char *says;      /* text that each message must contain: a file name or a word; NULL: writes[0] */
} action;

/* ---- Actions under test -------------------------------------------------------------------------------------- */

static mercer_status save_model(fixture *self)
{
    return mercer_model_save(self->model, in_folder("model"), NULL);
}

static mercer_status save_to_link(fixture *self)
{
    return mercer_model_save(self->model, in_folder("link"), NULL);
}

static mercer_status load_model(fixture *self)
{
    mercer_model *loaded = NULL;
    (void)self;
    mercer_status status = mercer_model_load(&loaded, context, NULL, in_folder("stored"));
    mercer_model_free(loaded);
    return status;
}

static mercer_status read_header(fixture *self)
{
    char text[4096];
    (void)self;
    return mercer_model_file_header(context, text, sizeof text, NULL, in_folder("stored"));
}

/* Train with checkpoints, or resume from one; shards: number of shards that the centers are split into. */
static mercer_status train(fixture *self, bool resume, const char *checkpoint, int shards)
{
    mercer_comm *comm = NULL;
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    mercer_trainer *trainer = NULL;
    mercer_source source;
    mercer_model *model = NULL;
    options.solver = "ep4";
    options.epochs = 2;
    options.batch = 20;
    options.checkpoint = checkpoint;
    MRC_TRY(source_from_matrices(&source, context, &self->x, &self->y, NULL, 3));
    mercer_matrix centers = self->x;
    centers.rows = CENTERS;
    mercer_status status =
        resume ? mercer_model_load(&model, context, NULL, in_folder("kept"))
               : mercer_model_create(&model, context, NULL, model_info(self->model).kernel, &centers, 1, MERCER_F32);
    if (status == MERCER_OK && shards > 0) status = mrc_comm_create_virtual(&comm, context, shards);
    if (status == MERCER_OK) status = mercer_trainer_create(&trainer, model, comm, &options);
    if (status == MERCER_OK && resume) status = mercer_trainer_resume(trainer, in_folder("kept"));
    if (status == MERCER_OK) status = mercer_trainer_fit(trainer, &source, NULL);
    mercer_trainer_free(trainer);
    mercer_comm_free(comm);
    mercer_model_free(model);
    mercer_source_free(&source);
    return status;
}

static int no_shards, some_shards = 3;

static mercer_status write_checkpoint(fixture *self)
{
    return train(self, false, in_folder("checkpoint"), no_shards);
}

static mercer_status write_shards(fixture *self)
{
    return train(self, false, in_folder("checkpoint"), some_shards);
}

static mercer_status resume(fixture *self)
{
    return train(self, true, NULL, no_shards);
}

static mercer_status write_npy(fixture *self)
{
    return mercer_dataset_write(self->data, in_folder("x.npy"), in_folder("y.npy"));
}

static mercer_status write_csv(fixture *self)
{
    return mercer_dataset_write(self->data, in_folder("x.csv"), NULL);
}

static mercer_status write_matrix(fixture *self)
{
    return mercer_matrix_write_npy(context, &self->x, in_folder("matrix.npy"));
}

static mercer_status read_data(const char *x, const char *y, mercer_switch mapping, int64_t spill)
{
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    mercer_dataset *data = NULL;
    float row[WIDTH];
    options.x = x, options.y = y;
    options.mapping = mapping;
    options.spill = spill;
    options.task = y ? MERCER_TASK_AUTO : MERCER_TASK_UNLABELED;
    mercer_status status = mercer_dataset_open(&data, context, &options);
    mercer_matrix to = mercer_matrix_view(row, 1, WIDTH, MERCER_F32);
    if (status == MERCER_OK && data->features == WIDTH)
        status = mercer_dataset_read(data, &to, NULL, NULL, NULL, NULL, 0);
    mercer_dataset_free(data);
    return status;
}

static mercer_status read_npy(fixture *self)
{
    (void)self;
    return read_data(in_folder("in-x.npy"), in_folder("in-y.npy"), MERCER_AUTO, 0);
}

static mercer_status read_npy_copied(fixture *self)
{
    (void)self;
    return read_data(in_folder("in-x.npy"), in_folder("in-y.npy"), MERCER_OFF, 0);
}

static mercer_status read_csv(fixture *self)
{
    (void)self;
    return read_data(in_folder("in-x.csv"), NULL, MERCER_AUTO, 0);
}

static mercer_status read_parts(fixture *self)
{
    (void)self;
    return read_data(in_folder("in-[12].npy"), NULL, MERCER_AUTO, 0);
}

static mercer_status read_spilled(fixture *self)
{
    (void)self;
    return read_data(in_folder("in-x.csv"), NULL, MERCER_AUTO, 1);
}

static mercer_status read_gzip(fixture *self)
{
    (void)self;
    return read_data(in_folder("in.csv.gz"), NULL, MERCER_AUTO, 1);
}

static mercer_status read_words(fixture *self)
{
    (void)self;
    return read_data(in_folder("words.csv"), NULL, MERCER_AUTO, 0);
}

/* Reads a Parquet file: dictionaries, missing values, words with deltas, a target, weights; in memory or spilled. */
static mercer_status read_parquet_file(const char *name, int64_t spill)
{
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    mercer_dataset *data = NULL;
    options.x = in_folder(name), options.target = "label", options.weight_column = "single", options.spill = spill;
    mercer_status status = mercer_dataset_open(&data, context, &options);
    mercer_dataset_free(data);
    return status;
}

static mercer_status read_parquet(fixture *self)
{
    (void)self;
    return read_parquet_file("dictionary.parquet", 0);
}

static mercer_status read_parquet_spilled(fixture *self)
{
    (void)self;
    return read_parquet_file("delta.parquet", 1);
}

static mercer_status read_parquet_texts(fixture *self)
{
    (void)self;
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    mercer_column_texts *texts = NULL;
    const char *const *fields = NULL;
    options.x = in_folder("dictionary.parquet");
    mercer_status status = mercer_column_texts_open(&texts, context, &options, "word,day");
    if (status == MERCER_OK) status = mercer_column_texts_next(texts, &fields);
    mercer_column_texts_free(texts);
    return status;
}

static mercer_status read_libsvm(fixture *self)
{
    (void)self;
    return read_data(in_folder("in.svm"), NULL, MERCER_AUTO, 0);
}

/* Read a table with a column of each role (target, weight, row id, group) through a temporary file. */
static mercer_status read_roles(fixture *self)
{
    (void)self;
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    mercer_dataset *data = NULL;
    options.x = in_folder("roles.csv"), options.target = "t", options.weight_column = "w", options.id_column = "id";
    options.group_column = "g", options.spill = 1;
    mercer_status status = mercer_dataset_open(&data, context, &options);
    mercer_dataset_free(data);
    return status;
}

static mercer_status read_cifar(fixture *self)
{
    (void)self;
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    mercer_dataset *data = NULL;
    options.x = in_folder("data_batch_1.bin");
    mercer_status status = mercer_dataset_open(&data, context, &options);
    mercer_dataset_free(data);
    return status;
}

/* Use synthetic samples: fingerprint, smallest possible error, target moments, preprocessing, and writing to files. */
static mercer_status write_computed(fixture *self)
{
    (void)self;
    mercer_dataset *data = NULL;
    mercer_preprocess *preprocess = NULL;
    uint64_t fingerprint;
    double least, moments[4];
    mercer_status status = mercer_dataset_synthesize(&data, context, "clusters:classes=2", WIDTH, ROWS, 1);
    if (status == MERCER_OK) status = mercer_dataset_fingerprint(data, &fingerprint);
    if (status == MERCER_OK) status = mercer_dataset_least_error(data, &least, ROWS);
    if (status == MERCER_OK) status = mrc_dataset_moments(data, moments, moments + 2);
    if (status == MERCER_OK) status = mercer_preprocess_fit(&preprocess, context, "rank", data);
    if (status == MERCER_OK) status = mercer_dataset_write(data, in_folder("x.npy"), in_folder("y.npy"));
    mercer_preprocess_free(preprocess);
    mercer_dataset_free(data);
    return status;
}

/* Write more text than the buffer holds, so that a write can also fail in the middle of the rows. */
static mercer_status write_long(fixture *self)
{
    (void)self;
    static float values[12000];
    const mercer_matrix X = mercer_matrix_view(values, 4000, 3, MERCER_F32);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    mercer_dataset *data = NULL;
    for (int i = 0; i < 12000; i++) values[i] = (float)i / 7;
    arrays.X = &X;
    mercer_status status = mercer_dataset_from_arrays(&data, context, &arrays);
    if (status == MERCER_OK) status = mercer_dataset_write(data, in_folder("x.csv"), NULL);
    mercer_dataset_free(data);
    return status;
}

static mercer_status read_idx(fixture *self)
{
    (void)self;
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    mercer_dataset *data = NULL;
    options.x = in_folder("in-idx2-ubyte"), options.format = "idx", options.task = MERCER_TASK_UNLABELED;
    mercer_status status = mercer_dataset_open(&data, context, &options);
    mercer_dataset_free(data);
    return status;
}

static mercer_status read_texts(fixture *self)
{
    (void)self;
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    mercer_column_texts *texts = NULL;
    options.x = in_folder("words.csv");
    mercer_status status = mercer_column_texts_open(&texts, context, &options, "b");
    mercer_column_texts_free(texts);
    return status;
}

static const action actions[] = {
    {"save a model", save_model, {"model"}, NULL},
    {"save to a link", save_to_link, {"aim"}, "/"},
    {"load a model", load_model, {NULL}, "stored"},
    {"read a header", read_header, {NULL}, "stored"},
    {"write checkpoints", write_checkpoint, {"checkpoint"}, NULL},
    {"write checkpoints of shards", write_shards, {"checkpoint"}, NULL},
    {"resume", resume, {NULL}, "kept"},
    {"write npy", write_npy, {"x.npy", "y.npy"}, ".npy"},
    {"write csv", write_csv, {"x.csv"}, NULL},
    {"write a matrix", write_matrix, {"matrix.npy"}, NULL},
    {"read npy", read_npy, {NULL}, ".npy"},
    {"read npy into memory", read_npy_copied, {NULL}, ".npy"},
    {"read csv", read_csv, {NULL}, ".csv"},
    {"read parts", read_parts, {NULL}, "in-"},
    {"read csv, spilled", read_spilled, {NULL}, "/"},
    {"read gzip, spilled", read_gzip, {NULL}, "/"},
    {"read words", read_words, {NULL}, "words.csv"},
    {"read parquet", read_parquet, {NULL}, "dictionary.parquet"},
    {"read parquet, spilled", read_parquet_spilled, {NULL}, "/"},
    {"read texts of parquet", read_parquet_texts, {NULL}, "dictionary.parquet"},
    {"read libsvm", read_libsvm, {NULL}, "in.svm"},
    {"read idx", read_idx, {NULL}, "in-idx2"},
    {"read roles, spilled", read_roles, {NULL}, "/"},
    {"read cifar", read_cifar, {NULL}, "data_batch_1.bin"},
    {"write synthetic samples", write_computed, {"x.npy", "y.npy"}, ".npy"},
    {"write a long table", write_long, {"x.csv"}, NULL},
    {"read texts of columns", read_texts, {NULL}, "words.csv"},
};

/* ---- Checks -------------------------------------------------------------------------------------------------- */

static int64_t swept, refused, survived;

static bool holds(const char *path, const file_bytes *bytes)
{
    file_bytes found = read_bytes(path);
    bool same = found.count == bytes->count && memcmp(found.data, bytes->data, found.count) == 0;
    free(found.data);
    return same;
}

static const file_bytes old = {(unsigned char *)"what was there", 14};

static void put_old(const action *act)
{
    for (int i = 0; i < 2 && act->writes[i]; i++) write_bytes(in_folder(act->writes[i]), old.data, old.count);
}

/* Return whether an action may succeed although a call of this kind failed: a hint, an advisory lock, a repeated check
   of a name, the removal of a temporary file. */
static bool may_be_ignored(call_kind kind)
{
    return kind == CALL_unlink || kind == CALL_stat || kind == CALL_fstat || kind == CALL_lstat ||
           kind == CALL_fstatvfs || kind == CALL_fchmod || kind == CALL_flock || kind == CALL_opendir ||
           kind == CALL_close || kind == CALL_open;
}

/* Return whether the action writes checkpoints. A failure to write one is only a warning, and training continues. */
static bool keeps(const action *act)
{
    return act->run == write_checkpoint || act->run == write_shards;
}

/* Return whether the file loads with all its checksums. Checkpoints cannot be compared byte by byte, because they store
   the training time. */
static bool is_model(const char *path)
{
    mercer_model *loaded = NULL;
    bool fine = mercer_model_load(&loaded, context, NULL, path) == MERCER_OK;
    mercer_model_free(loaded);
    return fine;
}

/* Check the conditions that hold after any failure. */
static void check_files(const action *act, const file_bytes *made, mercer_status status, const char *what)
{
    for (int i = 0; i < 2 && act->writes[i]; i++) {
        bool whole = keeps(act) ? is_model(in_folder(act->writes[i])) : holds(in_folder(act->writes[i]), &made[i]);
        assert_that(whole || holds(in_folder(act->writes[i]), &old), "%s: %s is neither old nor new", what,
                    act->writes[i]);
        assert_that(whole || status != MERCER_OK || keeps(act), "%s: %s is old, and nothing was said", what,
                    act->writes[i]);
    }
}

static void try(fixture *self, const action *act, const file_bytes *made, call_kind kind, int64_t at, int error)
{
    int64_t live = allocator.live;
    put_old(act);
    int descriptors = open_descriptors(), files = folder_count();
    fault_begin(kind, at, error);
    mercer_status status = act->run(self);
    bool hit = fault.failed;
    fault_end();
    const char *message = mercer_last_error(context), *says = act->says ? act->says : act->writes[0];
    char what[200];
    snprintf(what, sizeof what, "%s: %s number %lld: %s", act->name, call_names[kind], (long long)at,
             error == HALF ? "half" : strerror(error));
    assert_that(hit, "%s: did not happen", what);
    if (status != MERCER_OK) {
        assert_that(status == MERCER_ERROR_IO || status == MERCER_ERROR_MISSING || status == MERCER_ERROR_FORMAT,
                    "%s: status %d, %s", what, (int)status, message);
        assert_that(mentions(message, says), "%s: the message is %s", what, message);
    }
    bool checkpoint = keeps(act);
    assert_that(status != MERCER_OK || error == EINTR || error == HALF || may_be_ignored(kind) || checkpoint,
                "%s: nothing was said", what);
    assert_that(status == MERCER_OK || (error != HALF && (error != EINTR || kind == CALL_open || kind == CALL_close ||
                                                          kind == CALL_fsync)),
                "%s: did not fail: %s", what, message);
    check_files(act, made, status, what);
    assert_that(folder_count() == files || kind == CALL_unlink, "%s: leaves a file", what);
    assert_that(open_descriptors() == descriptors, "%s: leaves a descriptor", what);
    assert_that(allocator.live == live, "%s: leaves %lld blocks of memory", what, (long long)(allocator.live - live));
    swept++;
    *(status == MERCER_OK ? &survived : &refused) += 1;
}

static void remove_remains(void)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry; (entry = readdir(list));)
        if (strstr(entry->d_name, ".tmp") || strncmp(entry->d_name, "mercer-", 7) == 0)
            unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
}

static int64_t starved;

/* Make every allocation fail once. */
static void sweep_memory(fixture *self, const action *act, const file_bytes *made)
{
    for (int64_t n = 1;; n++) {
        char what[200];
        put_old(act);
        int64_t live = allocator.live;
        int descriptors = open_descriptors(), files = folder_count();
        allocator.fail_at = allocator.requests + n;
        mercer_status status = act->run(self);
        bool reached = allocator.requests >= allocator.fail_at;
        const char *message = mercer_last_error(context);
        allocator.fail_at = 0;
        snprintf(what, sizeof what, "%s: allocation %lld", act->name, (long long)n);
        bool by_source = status == MERCER_ERROR_CALLBACK && mentions(message, "memory");
        assert_that(status == MERCER_OK || status == MERCER_ERROR_MEMORY || by_source, "%s: status %d, %s", what,
                    (int)status, message);
        check_files(act, made, status, what);
        assert_that(folder_count() == files, "%s: leaves a file", what);
        assert_that(open_descriptors() == descriptors, "%s: leaves a descriptor", what);
        assert_that(allocator.live == live, "%s: leaves %lld blocks", what, (long long)(allocator.live - live));
        if (!reached) {
            assert_int_equal(status, MERCER_OK);
            return;
        }
        starved++;
        assert_that(n < 3000, "%s: never succeeds", what);
    }
}

static void sweep(fixture *self, const action *act)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, HALF};
    file_bytes made[2] = {{NULL, 0}, {NULL, 0}};
    int64_t calls[CALL_COUNT];
    assert_succeeds(context, act->run(self)); /* warm-up: allocates the scratch memory that the context keeps */
    fault_begin(CALL_open, -1, EIO);
    assert_succeeds(context, act->run(self));
    memcpy(calls, fault.calls, sizeof calls);
    fault_end();
    for (int i = 0; i < 2 && act->writes[i]; i++) made[i] = read_bytes(in_folder(act->writes[i]));
    for (int kind = 0; kind < CALL_COUNT; kind++)
        for (int64_t at = 0; at < calls[kind]; at++)
            for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
                bool transfers = kind == CALL_pread || kind == CALL_write || kind == CALL_pwrite;
                if ((errors[e] == HALF && !transfers) || (errors[e] == EINTR && kind != CALL_open && !transfers) ||
                    (errors[e] == ENOSPC && kind != CALL_open && kind != CALL_write && kind != CALL_pwrite))
                    continue;
                try(self, act, made, (call_kind)kind, at, errors[e]);
                if (kind == CALL_unlink) remove_remains();
            }
    sweep_memory(self, act, made);
    assert_succeeds(context, act->run(self));
    for (int i = 0; i < 2 && act->writes[i]; i++) {
        assert_true(keeps(act) ? is_model(in_folder(act->writes[i])) : holds(in_folder(act->writes[i]), &made[i]));
        free(made[i].data);
    }
}

/* ---- Fixture ------------------------------------------------------------------------------------------------- */

static void test_every_call(void **state)
{
    (void)state;
    static float values[ROWS * WIDTH], targets[ROWS];
    char text[ROWS * 64] = "a,b,c\n", *end = text + strlen(text);
    mercer_kernel kernel;
    fixture self = {0};
    setenv("TMPDIR", folder, 1); /* leftover temporary files in the folder are counted and removed with the folder */
    for (int i = 0; i < ROWS * WIDTH; i++) values[i] = (float)((i * 37) % 101) / 10;
    for (int i = 0; i < ROWS; i++) {
        targets[i] = values[WIDTH * i];
        end += sprintf(end, "%d,%d,%g\n", i, i % 7, (double)values[i]);
    }
    self.x = mercer_matrix_view(values, ROWS, WIDTH, MERCER_F32);
    self.y = mercer_matrix_view(targets, ROWS, 1, MERCER_F32);
    mercer_matrix centers = self.x;
    centers.rows = CENTERS;
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &self.x, arrays.Y = &self.y;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "gaussian:bandwidth=5"));
    assert_succeeds(context, mercer_model_create(&self.model, context, NULL, &kernel, &centers, 1, MERCER_F32));
    assert_succeeds(context, mercer_dataset_from_arrays(&self.data, context, &arrays));
    assert_succeeds(context, mercer_model_save(self.model, in_folder("stored"), NULL));
    assert_succeeds(context, mercer_dataset_write(self.data, in_folder("in-x.npy"), in_folder("in-y.npy")));
    assert_succeeds(context, mercer_matrix_write_npy(context, &self.x, in_folder("in-1.npy")));
    assert_succeeds(context, mercer_matrix_write_npy(context, &self.x, in_folder("in-2.npy")));
    text_file("in-x.csv", text);
    gzip_file("in.csv.gz", text, strlen(text));
    text_file("words.csv", "a,b,c\n1,x,2020-01-01\n2,,2021-02-03\n,y,\n4,x,2022-01-01\n");
    const char *const stored[] = {"dictionary.parquet", "delta.parquet"};
    for (int i = 0; i < 2; i++) {
        char from[512];
        snprintf(from, sizeof from, MERCER_CORPUS "/parquet/%s", stored[i]);
        file_bytes bytes = read_bytes(from);
        write_bytes(in_folder(stored[i]), bytes.data, bytes.count);
        free(bytes.data);
    }
    text_file("in.svm", "1 1:2 3:4\n2 2:1\n1 3:7\n");
    byte_file("in-idx2-ubyte",
              "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
              "abcdef",
              18);
    static const char record[3073] = {1};
    byte_file("data_batch_1.bin", record, sizeof record);
    text_file("roles.csv", "id,a,b,g,w,t\nr1,1,x,u,1,yes\nr2,,y,v,2,no\nr3,3,x,u,1,yes\nr4,4,,v,1,no\n");
    write_bytes(in_folder("aim"), "aim", 3);
    assert_int_equal(symlink("aim", in_folder("link")), 0);
    assert_succeeds(context, train(&self, false, in_folder("kept"), no_shards));
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) sweep(&self, &actions[i]);
    mercer_dataset_free(self.data);
    mercer_model_free(self.model);
    printf("system calls that failed: %lld, refused with a message: %lld, without effect: %lld\n", (long long)swept,
           (long long)refused, (long long)survived);
    printf("allocations that failed: %lld\n", (long long)starved);
    assert_true(refused > 100 && survived > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
