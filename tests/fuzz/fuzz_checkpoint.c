/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: arbitrary bytes as a file of a run folder. The bytes are loaded as a checkpoint, unchanged and with
 * corrected checksums; a training run that accepts the checkpoint must end with a finite model. The program also reads
 * them as the folder's configuration.
 */
#define _GNU_SOURCE /* memfd_create */

#include "folder.h"
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_program.h"
#include "mercer/advanced.h"
#include "support/info.h"
#include "support/sources.h"

enum { N = 12, P = 6, D = 2, MOST_BYTES = 1 << 16 };

/* Run the training whose checkpoint is the seed tests/fuzz/corpus/checkpoint/seed (FUZZ_SEED=path writes it). */
static void train(const uint8_t *data, size_t size)
{
    mercer_context *context = fuzz_context();
    double points[N * D], targets[N];
    for (int i = 0; i < N * D; i++) points[i] = (double)((7 * i) % 11) - 5;
    for (int i = 0; i < N; i++) targets[i] = (double)(i % 3) - 1;
    mercer_matrix x = mrc_view(points, N, D, MERCER_F64), y = mrc_view(targets, N, 1, MERCER_F64);
    mercer_matrix z = mrc_view(points, P, D, MERCER_F64);
    mercer_kernel kernel;
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    options.solver = "ep4", options.projector = "exact", options.epochs = 2, options.batch = 4, options.nystrom = 6;
    options.eigenpairs = 2, options.memory = FUZZ_MEMORY, options.checkpoint = data ? NULL : getenv("FUZZ_SEED");
    options.checkpoint_seconds = 1e-9;
    if (mercer_kernel_parse(&kernel, context, "laplace:bandwidth=2") != MERCER_OK ||
        mercer_model_create(&model, context, NULL, &kernel, &z, 1, MERCER_F64) != MERCER_OK ||
        source_from_matrices(&source, context, &x, &y, NULL, 1) != MERCER_OK ||
        mercer_trainer_create(&trainer, model, NULL, &options) != MERCER_OK)
        abort();
    mercer_status status = data ? mercer_trainer_resume(trainer, fuzz_file(data, size)) : MERCER_OK;
    if (status == MERCER_OK) status = mercer_trainer_fit(trainer, &source, NULL);
    mercer_matrix weights = model_info(model).weights;
    if (status == MERCER_OK && mrc_check_finite(context, "weights", &weights, NULL) != MERCER_OK) abort();
    if (status != MERCER_OK && strchr(mercer_last_error(context), '\n')) abort();
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
}

/* Read the bytes as the configuration of a run folder, in which a symbolic link leads to the in-memory file. */
static void read_folder(const uint8_t *data, size_t size)
{
    const char *base = getenv("TMPDIR");
    char path[512], *said, *page;
    size_t said_size, page_size;
    fuzz_quiet(&said, &said_size, &page, &page_size);
    const char *target = fuzz_file(data, size);
    snprintf(path, sizeof path, "%s/mercer-fuzz-XXXXXX", base && base[0] ? base : "/tmp");
    if (mkdtemp(path) == NULL) abort();
    cli_folder *folder = cli_folder_new(path);
    if (symlink(target, folder->config) != 0) abort();
    int code = cli_folder_read(folder);
    if (code == CLI_OK) {
        cli_values *v = cli_values_new(cli_find_command("train"));
        code = cli_take_config(v, folder->options, folder->config, CLI_FROM_CONFIG);
        cli_values_free(v);
    }
    unlink(folder->config);
    rmdir(path);
    cli_drop_folder(&folder);
    fuzz_loud(code, &said, &said_size, &page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t copy[MOST_BYTES];
    if (getenv("FUZZ_SEED")) train(NULL, 0);
    if (size > sizeof copy) return 0;
    if (size > 0 && data[0] == '{') {
        read_folder(data, size);
        return 0;
    }
    train(data, size);
    memcpy(copy, data, size);
    fuzz_put_right(copy, size);
    train(copy, size);
    return 0;
}
