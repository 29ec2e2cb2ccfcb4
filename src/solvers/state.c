/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of the state that a training run saves. */
#include "solvers/state.h"

#include "solvers/iteration/temporary_centers.h"

#include <math.h>

void mrc_state_add_matrix(mrc_state *state, const char *name, const mercer_matrix *value)
{
    mercer_matrix saved = *value;
    if (!saved.data || saved.rows == 0)
        saved = (mercer_matrix){.dtype = MERCER_F64}; /* this training run does not have the matrix */
    if (state->matrix_count == MRC_STATE_MATRICES)
        state->overflow = true;
    else
        state->matrices[state->matrix_count++] = (mrc_state_matrix){.name = name, .value = saved};
}

void mrc_state_add_field(mrc_state *state, const char *name, const mercer_matrix *value, int64_t p)
{
    mrc_state_add_matrix(state, name, value);
    if (state->overflow || !value->data) return;
    mrc_state_matrix *added = &state->matrices[state->matrix_count - 1];
    added->value = *value; /* also added if this rank has no rows of the field */
    added->total = p;
}

void mrc_state_add_temporary(mrc_state *state, const char *name, const mercer_matrix *value,
                             const mrc_temporary_centers *temporary)
{
    int64_t rows;
    mercer_matrix used = temporary->count > 0 ? mrc_temporary_centers_used(temporary, value) : (mercer_matrix){0};
    mrc_state_add_field(state, name, &used, temporary->count);
    if (state->overflow || temporary->count == 0) return;
    mrc_state_matrix *added = &state->matrices[state->matrix_count - 1];
    added->temporary = temporary;
    mrc_temporary_centers_rows(temporary, &added->first, &rows);
}

void mrc_state_add_numbers(mrc_state *state, const mrc_state_number *numbers, int count)
{
    for (int i = 0; i < count; i++) {
        if (state->number_count == MRC_STATE_NUMBERS)
            state->overflow = true;
        else
            state->numbers[state->number_count++] = numbers[i];
    }
}

void mrc_state_read_numbers(const mrc_state *state, double *values)
{
    for (int i = 0; i < state->number_count; i++) {
        const mrc_state_number *number = &state->numbers[i];
        values[i] = number->integer ? (double)*number->integer : number->real ? *number->real : (double)*number->flag;
    }
}

static bool is_valid(const mrc_state_number *number, double value)
{
    const double most_whole = 9e15; /* integers up to this are exact in a double */
    if (number->flag) return value == 0 || value == 1;
    if (number->integer) return value >= 0 && value <= most_whole && value == floor(value);
    return (value >= number->low && value <= number->high) || (number->unknown && isnan(value));
}

void mrc_state_write_numbers(mrc_state *state, const double *values, const mrc_state_number **wrong)
{
    *wrong = NULL;
    for (int i = 0; i < state->number_count && !*wrong; i++)
        if (!is_valid(&state->numbers[i], values[i])) *wrong = &state->numbers[i];
    for (int i = 0; i < state->number_count && !*wrong; i++) {
        mrc_state_number *number = &state->numbers[i];
        if (number->integer) *number->integer = (int64_t)values[i];
        if (number->real) *number->real = values[i];
        if (number->flag) *number->flag = values[i] != 0;
    }
}
