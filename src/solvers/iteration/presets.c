/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The named solvers as corners of one iteration (rows: how each differs from the general form).
 *
 *   name        centers  eigensystem  batch  projection
 *   richardson  Z = X    q = 0        m = n  none needed           kernel gradient descent
 *   pegasos     Z = X    q = 0        m      none needed           stochastic gradient descent
 *   ep1         Z = X    s = n        m      none needed           EigenPro 1
 *   ep2         Z = X    s < n        m      none needed           EigenPro 2
 *   nytro       any      q = 0        m = n  exact, T = 1          NYTRO
 *   ep3-exact   any      s = n        m = n  exact, T = 1          EigenPro 3, exact projection
 *   ep3         any      s < n        m      EigenPro 2, T = 1     EigenPro 3
 *   ep4         any      s < n        m      delayed, T = p/m      EigenPro 4, with the projector that suits the size
 *   gd          any      q = 0        m = n  identity              gradient descent in R^p
 */
#include "solvers/iteration/presets.h"

#include <stdio.h>
#include <string.h>

static const mrc_preset presets[] = {
    {.name = "direct", .exact = true, .says = "dense normal equations in the RKHS metric, double precision"},
    {.name = "cg", .exact = true, .says = "preconditioned conjugate gradients on the normal equations"},
    {.name = "ep4", .gamma = 0.95, .average = MERCER_ON, .says = "EigenPro with delayed projection"},
    {.name = "ep3",
     .period = 1,
     .projector = "ep2",
     .gamma = 0.5,
     .average = MERCER_AUTO,
     .says = "EigenPro 3: a projection after every batch"},
    {.name = "ep3-exact",
     .whole_sample = true,
     .whole_batch = true,
     .period = 1,
     .projector = "exact",
     .gamma = 0.95,
     .average = MERCER_OFF,
     .says = "EigenPro 3 with full batches and exact projection"},
    {.name = "ep2",
     .update = MRC_UPDATE_COORDINATES,
     .gamma = 0.95,
     .average = MERCER_AUTO,
     .says = "EigenPro 2: the centers are the samples"},
    {.name = "ep1",
     .update = MRC_UPDATE_COORDINATES,
     .whole_sample = true,
     .gamma = 0.95,
     .average = MERCER_AUTO,
     .says = "EigenPro 1: the eigensystem of all samples"},
    {.name = "richardson",
     .update = MRC_UPDATE_COORDINATES,
     .no_eigenpairs = true,
     .whole_batch = true,
     .gamma = 0.95,
     .average = MERCER_OFF,
     .says = "kernel gradient descent on full batches"},
    {.name = "pegasos",
     .update = MRC_UPDATE_COORDINATES,
     .no_eigenpairs = true,
     .gamma = 0.95,
     .average = MERCER_AUTO,
     .says = "kernel stochastic gradient descent without preconditioner"},
    {.name = "nytro",
     .no_eigenpairs = true,
     .whole_batch = true,
     .period = 1,
     .projector = "exact",
     .gamma = 0.95,
     .average = MERCER_OFF,
     .says = "full-batch gradient descent in the span of the centers"},
    {.name = "gd",
     .update = MRC_UPDATE_PLAIN,
     .no_eigenpairs = true,
     .whole_batch = true,
     .gamma = 0.95,
     .average = MERCER_OFF,
     .says = "gradient descent on the weights"},
};

enum { PRESETS = sizeof presets / sizeof *presets };

const mrc_preset *mrc_preset_find(const char *name)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

void mrc_preset_names(char *text, size_t size)
{
    snprintf(text, size, "auto");
    for (int i = 0; i < PRESETS; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, ", %s", presets[i].name);
    }
}
