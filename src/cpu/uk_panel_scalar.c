/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise work on panels and tiles, built with portable C. Math: uk_panel_body.h. */
#include "cpu/ukernels.h"

#define UK_PANEL_NAME     mrc_uk_panel_scalar
#define UK_PANEL_FN(name) name##_scalar
#include "cpu/uk_panel_body.h"
