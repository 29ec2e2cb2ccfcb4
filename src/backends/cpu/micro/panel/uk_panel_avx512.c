/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise work on panels and tiles, built with AVX-512. Math: uk_panel_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_PANEL_NAME     mrc_uk_panel_ops_avx512
#define UK_PANEL_FN(name) name##_avx512
#include "backends/cpu/micro/panel/uk_panel_body.h"
