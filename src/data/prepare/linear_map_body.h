/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multiplies four rows by groups of eight columns of A. Before this file is included, ADD_GROUPS (the function's name)
 * and MAP_SCOPE (static or empty) must be defined. The compiler translates vectors of eight doubles to the instruction
 * set of the including file. Products and sums are rounded separately on every instruction set, so results are bitwise
 * identical.
 */
typedef double eight __attribute__((vector_size(MRC_MAP_GROUP * sizeof(double)), aligned(8), may_alias));
_Static_assert(MRC_MAP_ROWS == 4, "the code handles exactly four rows");

MAP_SCOPE void ADD_GROUPS(int64_t groups, int64_t step, int64_t count, const double *a, const double *x, int64_t stride,
                          double *sums)
{
    for (int64_t group = 0; group < groups; group++, a += step, sums += MRC_MAP_GROUP) {
        eight *at = (eight *)sums, row0 = at[0];
        eight row1 = *(eight *)(sums + MRC_MAP_STRIP), row2 = *(eight *)(sums + 2 * MRC_MAP_STRIP),
              row3 = *(eight *)(sums + 3 * MRC_MAP_STRIP);
        for (int64_t k = 0; k < count; k++) {
            eight column = *(const eight *)(a + k * MRC_MAP_GROUP);
            row0 += x[k] * column, row1 += x[stride + k] * column;
            row2 += x[2 * stride + k] * column, row3 += x[3 * stride + k] * column;
        }
        at[0] = row0;
        *(eight *)(sums + MRC_MAP_STRIP) = row1, *(eight *)(sums + 2 * MRC_MAP_STRIP) = row2;
        *(eight *)(sums + 3 * MRC_MAP_STRIP) = row3;
    }
}
