/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact byte products, AMX-INT8: tdpbuud, unsigned times unsigned, needs no shift. Math: uk_dot_u8_tiles_body.h. Every
 * call configures the tiles (tens of cycles out of several hundred), so that threads have no tile state between calls.
 * Not yet run on a processor that has AMX: tests/unit/test_tiles.c runs the same body on tiles emulated in C.
 */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

/* Operand of ldtilecfg: palette 1, and the bytes per row and number of rows of each of 8 tiles. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} whole_tiles = {.palette = 1, .row_bytes = {64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16}};

#define UK_NAME                           mrc_uk_dot_u8_16x32_amx
#define UK_BEGIN()                        _tile_loadconfig(&whole_tiles)
#define UK_END()                          _tile_release()
#define UK_TILE_LOAD(t, address, stride)  _tile_loadd(t, address, stride)
#define UK_TILE_STORE(t, address, stride) _tile_stored(t, address, stride)
#define UK_TILE_DOT(c, a, b)              _tile_dpbuud(c, a, b)
#include "backends/cpu/micro/dot_u8/uk_dot_u8_tiles_body.h"
