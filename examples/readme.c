/* SPDX-License-Identifier: BSD-3-Clause */
/* Learns y = sin(x) from 200 samples, then predicts at three points. */
#include <math.h>
#include <mercer/mercer.h>
#include <stdio.h>

int main(void)
{
    double x[200], y[200], points[] = {1, 2, 3}, f[3];
    for (int i = 0; i < 200; i++) x[i] = 0.02 * i, y[i] = sin(x[i]);
    mercer_matrix X = mercer_matrix_view(x, 200, 1, MERCER_F64), Y = mercer_matrix_view(y, 200, 1, MERCER_F64);
    mercer_matrix P = mercer_matrix_view(points, 3, 1, MERCER_F64), F = mercer_matrix_view(f, 3, 1, MERCER_F64);
    mercer_dataset_arrays samples = MERCER_INIT(mercer_dataset_arrays);
    samples.X = &X, samples.Y = &Y;
    mercer_context *context = NULL;
    mercer_dataset *data = NULL;
    mercer_model *model = NULL;
    int ok = !mercer_context_create(&context, NULL) && !mercer_dataset_from_arrays(&data, context, &samples) &&
             !mercer_fit(&model, context, data, NULL, NULL) && /* NULL: everything is chosen */
             !mercer_model_predict(model, &F, &P);
    for (int i = 0; ok && i < 3; i++) printf("f(%g) = %.4f, sin = %.4f\n", points[i], f[i], sin(points[i]));
    if (!ok) fprintf(stderr, "%s\n", mercer_last_error(context));
    mercer_model_free(model), mercer_dataset_free(data), mercer_context_free(context);
    return ok ? 0 : 1;
}
