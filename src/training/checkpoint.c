/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A checkpoint is a model file with additional tensors: state.plan (1, values) f64, state.names (2, 16) u8 (solver and
 * projector, padded with zeros), state.numbers and the matrices of the trainer's state list. Its model has the
 * weights that training would return at that moment, and the caller's text as its note.
 */
#include "training/checkpoint.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "model/model_file.h"

#include <string.h>

struct mrc_checkpoint {
    mercer_context *context;
    mercer_model *model;
    char *path; /* file to write, owned; NULL: none */
    char *note;
    mrc_tensor_file *file; /* open file that training resumes from, or NULL */
};

static mercer_status copy_text(mercer_context *context, char **out, const char *text, const char *what)
{
    if (!text) return MERCER_OK;
    MRC_TRY(mrc_alloc(context, out, (int64_t)strlen(text) + 1, 1, what));
    memcpy(*out, text, strlen(text) + 1);
    return MERCER_OK;
}

/* Returns the first row of this rank in a matrix that is divided among ranks. */
static int64_t first_row(const mrc_checkpoint *self, const mrc_state_matrix *entry)
{
    return entry->temporary ? entry->first : self->model->first;
}

/* ---- Saving -------------------------------------------------------------------------------------------------- */

mercer_status mrc_checkpoint_save(mrc_checkpoint *self, const mrc_state *state, const mercer_matrix *weights)
{
    mrc_tensor tensors[MRC_STATE_MATRICES + 3];
    double numbers[MRC_STATE_NUMBERS];
    mrc_state_plan plan = state->plan;
    char names[2][MRC_STATE_NAME];
    int count = 0;
    mrc_state_read_numbers(state, numbers);
    memcpy(names[0], plan.solver, sizeof plan.solver), memcpy(names[1], plan.projector, sizeof plan.projector);
    tensors[count++] =
        (mrc_tensor){.name = "state.numbers", .value = mrc_view(numbers, 1, state->number_count, MERCER_F64)};
    tensors[count++] = (mrc_tensor){.name = "state.plan", .value = mrc_view(plan.values, 1, plan.count, MERCER_F64)};
    tensors[count++] = (mrc_tensor){.name = "state.names", .value = mrc_view(names, 2, MRC_STATE_NAME, MERCER_U8)};
    bool shared = self->model->comm && self->model->comm->ranks > 1;
    for (int i = 0; i < state->matrix_count; i++) {
        const mrc_state_matrix *entry = &state->matrices[i];
        tensors[count++] = (mrc_tensor){.name = entry->name,
                                        .value = entry->value,
                                        .total = shared ? entry->total : 0,
                                        .first = first_row(self, entry)}; /* used for divided matrices only */
    }
    mercer_model public_plan = *self->model; /* the same model with the current weights */
    public_plan.weights = *weights;
    if (self->note) public_plan.note = self->note;
    return mrc_model_write(&public_plan, self->path, NULL, tensors, count);
}

/* ---- Loading ------------------------------------------------------------------------------------------------- */

/* Copies a name from a row of bytes, which may lack its terminating zero. */
static void copy_name(char name[MRC_STATE_NAME], const mercer_matrix *names, int64_t row)
{
    memcpy(name, mrc_row(names, row), MRC_STATE_NAME);
    name[MRC_STATE_NAME - 1] = 0;
}

mercer_status mrc_checkpoint_load_plan(mrc_checkpoint *self, mrc_state_plan *plan)
{
    mercer_matrix values, names;
    if (!mrc_tensor_file_find(self->file, "state.plan", &values) || values.dtype != MERCER_F64 || values.rows != 1 ||
        values.cols != plan->count || !mrc_tensor_file_find(self->file, "state.names", &names) ||
        names.dtype != MERCER_U8 || names.rows != 2 || names.cols != MRC_STATE_NAME)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH, "the checkpoint's plan is from another version");
    for (int i = 0; i < plan->count; i++) plan->values[i] = mrc_load(&values, 0, i);
    copy_name(plan->solver, &names, 0);
    copy_name(plan->projector, &names, 1);
    return MERCER_OK;
}

mercer_status mrc_checkpoint_load_numbers(mrc_checkpoint *self, mrc_state *state)
{
    mercer_matrix found;
    const mrc_state_number *wrong;
    double numbers[MRC_STATE_NUMBERS];
    if (!mrc_tensor_file_find(self->file, "state.numbers", &found) || found.dtype != MERCER_F64 || found.rows != 1 ||
        found.cols != state->number_count)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH, "the checkpoint is from another solver or version");
    for (int64_t i = 0; i < found.cols; i++) numbers[i] = mrc_load(&found, 0, i);
    mrc_state_write_numbers(state, numbers, &wrong);
    if (!wrong) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_FORMAT, "the checkpoint's %s is %g, which is not valid", wrong->name,
                    numbers[wrong - state->numbers]);
}

mercer_status mrc_checkpoint_load_matrices(mrc_checkpoint *self, mrc_state *state)
{
    for (int i = 0; i < state->matrix_count; i++) {
        mrc_state_matrix *entry = &state->matrices[i];
        mercer_matrix found;
        int64_t rows = entry->total > 0 ? entry->total : entry->value.rows;
        if (!mrc_tensor_file_find(self->file, entry->name, &found) || found.rows != rows ||
            (found.rows > 0 && (found.cols != entry->value.cols || found.dtype != entry->value.dtype)))
            return mrc_fail(self->context, MERCER_ERROR_MISMATCH, "the checkpoint's %s is missing or has another shape",
                            entry->name);
        if (entry->total > 0) found = mrc_rows(&found, first_row(self, entry), entry->value.rows);
        MRC_TRY(mrc_check_finite(self->context, entry->name, &found, NULL));
        for (int64_t row = 0; row < found.rows; row++)
            memcpy(mrc_row(&entry->value, row), mrc_row(&found, row),
                   (size_t)(found.cols * mrc_dtype_size(found.dtype)));
    }
    mrc_tensor_file_close(self->file); /* all tensors have been read */
    self->file = NULL;
    return MERCER_OK;
}

/* Checks that the checkpoint has the same kernel and centers as the model. */
static mercer_status check_model(mrc_checkpoint *self, const mrc_tensor_file *file, const char *path)
{
    const mercer_matrix *z = &self->model->centers;
    mercer_matrix found;
    char kernel[512];
    const char *theirs = mrc_tensor_file_metadata(file, "kernel");
    MRC_TRY(mercer_kernel_print(self->context, kernel, sizeof kernel, NULL, &self->model->kernel));
    if (!theirs || strcmp(theirs, kernel) != 0)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH, "%s: its kernel is %s, but the model has %s", path,
                        theirs ? theirs : "missing", kernel);
    bool same = mrc_tensor_file_find(file, "centers", &found) && found.rows == self->model->total &&
                found.cols == z->cols && found.dtype == z->dtype;
    if (same) found = mrc_rows(&found, self->model->first, z->rows);
    for (int64_t row = 0; row < z->rows && same; row++)
        same = memcmp(mrc_row(&found, row), mrc_row(z, row), (size_t)(z->cols * mrc_dtype_size(z->dtype))) == 0;
    if (same) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                    "%s: its centers differ from those of the model; load the model from the checkpoint", path);
}

/* ---- Creation and release ---------------------------------------------------------------------------------------- */

MRC_RELEASE(release_checkpoint, mrc_checkpoint, mrc_checkpoint_free)

mercer_status mrc_checkpoint_create(mrc_checkpoint **out, mercer_model *model, const mercer_train_options *options)
{
    MRC_OWNED(release_checkpoint) mrc_checkpoint *self = NULL;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(model->context, &self, 1, sizeof *self, "the checkpoint"));
    self->context = model->context;
    self->model = model;
    MRC_TRY(copy_text(self->context, &self->path, options->checkpoint, "the checkpoint's name"));
    MRC_TRY(copy_text(self->context, &self->note, options->checkpoint_note, "the checkpoint's note"));
    *out = self, self = NULL;
    return MERCER_OK;
}

void mrc_checkpoint_free(mrc_checkpoint *self)
{
    if (!self) return;
    mrc_tensor_file_close(self->file);
    MRC_FREE_ALL(self->context, self->note, self->path, self);
}

bool mrc_checkpoint_saves(const mrc_checkpoint *self)
{
    return self && self->path;
}

mercer_status mrc_checkpoint_open(mrc_checkpoint *self, const char *path)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    mercer_matrix plan;
    MRC_TRY(mrc_tensor_file_open(&file, self->context, path));
    MRC_TRY(check_model(self, file, path));
    if (!mrc_tensor_file_find(file, "state.plan", &plan))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                        "%s: is a model without a training state; give a checkpoint", path);
    mrc_tensor_file_close(self->file);
    self->file = file, file = NULL;
    return MERCER_OK;
}
