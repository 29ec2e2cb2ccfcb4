/* SPDX-License-Identifier: BSD-3-Clause */
/* Learns y = sin(x) from 200 samples with 20 centers, then predicts at three points. */
#include <math.h>
#include <mercer/advanced.h>
#include <stdio.h>

int main(void)
{
    double x[200], y[200], z[20], points[] = {1, 2, 3}, f[3];
    for (int i = 0; i < 200; i++) x[i] = 0.02 * i, y[i] = sin(x[i]);
    for (int j = 0; j < 20; j++) z[j] = 0.2 * j;
    mercer_matrix X = mercer_matrix_view(x, 200, 1, MERCER_F64), Y = mercer_matrix_view(y, 200, 1, MERCER_F64);
    mercer_matrix Z = mercer_matrix_view(z, 20, 1, MERCER_F64); /* (p, d) = 20 centers, 1 feature */
    mercer_matrix P = mercer_matrix_view(points, 3, 1, MERCER_F64), F = mercer_matrix_view(f, 3, 1, MERCER_F64);
    mercer_context *context = NULL;
    mercer_model *model = NULL;
    mercer_trainer *trainer = NULL;
    mercer_source samples = {0};
    mercer_kernel kernel;
    int ok = !mercer_context_create(&context, NULL) && !mercer_kernel_parse(&kernel, context, "matern52:bandwidth=1") &&
             !mercer_model_create(&model, context, &kernel, &Z, 1, MERCER_F64) &&
             !mercer_source_from_matrices(&samples, context, &X, &Y, NULL, 1) &&
             !mercer_trainer_create(&trainer, model, NULL, NULL) && /* NULL: the planner chooses everything */
             !mercer_trainer_fit(trainer, &samples, NULL) && !mercer_model_predict(model, &F, &P);
    for (int i = 0; ok && i < 3; i++) printf("f(%g) = %.4f, sin = %.4f\n", points[i], f[i], sin(points[i]));
    if (!ok) fprintf(stderr, "%s\n", mercer_last_error(context));
    mercer_trainer_free(trainer), mercer_source_free(&samples);
    mercer_model_free(model), mercer_context_free(context);
    return ok ? 0 : 1;
}
