/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise work on panels and tiles, built with portable C. Math: uk_panel_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_PANEL_NAME     mrc_uk_panel_ops_scalar
#define UK_PANEL_FN(name) name##_scalar
#include "backends/cpu/micro/panel/uk_panel_body.h"
