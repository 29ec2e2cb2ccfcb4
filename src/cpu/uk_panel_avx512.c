/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise work on panels and tiles, built with AVX-512. Math: uk_panel_body.h. */
#include "cpu/ukernels.h"

#define UK_PANEL_NAME     mrc_uk_panel_avx512
#define UK_PANEL_FN(name) name##_avx512
#include "cpu/uk_panel_body.h"
