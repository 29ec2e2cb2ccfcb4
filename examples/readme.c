/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions of a kernel model: f(x) = sum_j alpha_j K(x, z_j) at five points, K never stored. */
#include <mercer/mercer.h>
#include <stdio.h>

int main(void)
{
    double centers[] = {-1, 0, 2}, alpha[] = {0.5, -1, 2}, points[] = {-2, -1, 0, 1, 2}, f[5];
    mercer_matrix Z = mercer_matrix_view(centers, 3, 1, MERCER_F64); /* (p, d) = 3 centers, 1 feature */
    mercer_matrix A = mercer_matrix_view(alpha, 3, 1, MERCER_F64);   /* (p, c) = 3 weights, 1 output */
    mercer_matrix X = mercer_matrix_view(points, 5, 1, MERCER_F64);  /* (m, d) = 5 points */
    mercer_matrix F = mercer_matrix_view(f, 5, 1, MERCER_F64);       /* (m, c) = 5 predictions */

    mercer_context *context = NULL;
    mercer_kernel kernel;
    int ok = mercer_context_create(&context, NULL) == MERCER_OK &&
             mercer_kernel_parse(context, &kernel, "laplace:bandwidth=1") == MERCER_OK &&
             mercer_kernel_matmul(context, &F, &kernel, &X, &Z, &A) == MERCER_OK;
    if (!ok) fprintf(stderr, "%s\n", mercer_last_error(context));
    for (int i = 0; ok && i < 5; i++) printf("f(%+g) = %+.4f\n", points[i], f[i]);
    mercer_context_free(context);
    return ok ? 0 : 1;
}
