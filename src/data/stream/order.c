/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading order.
 *
 * Row by row: sample k of pass e is row P(k), where P is a random permutation of 0 .. n - 1 drawn from (seed, e).
 *
 * In blocks, for files that are read from disk: the rows, rotated by a random offset o, are divided into blocks of B,
 *     block b = rows (o + b B + j) mod n,  j < B;
 * full blocks are in random order, followed by the remaining rows. W consecutive blocks of this order form a window,
 * whose rows are permuted. So a row may come at any position of a pass, but the file is read in pieces of about 256
 * KiB. Only two consecutive windows of about 16 MiB each must be in memory. Both sizes depend only on the size of a
 * row.
 *
 * Samples k >= n repeat the rows: repetition k / n has its own permutations.
 *
 * Cost per row: one element of a random permutation (eight Philox blocks or a few more).
 */
#include "data/stream/order.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

enum { BLOCK_BYTES = 256 << 10, WINDOW_BYTES = 16 << 20, LARGE_FILE = 256 << 20 };

/* Separate random streams for blocks, windows and offsets. */
#define SALT_BLOCKS UINT64_C(0x626c6f636b730000)
#define SALT_WINDOW UINT64_C(0x77696e646f770000)
#define SALT_OFFSET UINT64_C(0x6f66667365740000)
#define GOLDEN      UINT64_C(0x9e3779b97f4a7c15)

static int64_t row_bytes(const mercer_dataset *data)
{
    return mrc_max(1, data->features * mrc_dtype_size(data->dtype));
}

/* Chooses the number of rows per block. It is 1 if samples are in memory or in a file of less than LARGE_FILE bytes:
   the system caches such files, so random access is cheap. */
static int64_t choose_block(const mercer_dataset *data)
{
    if (!mrc_dataset_is_mapped(data) || data->rows <= LARGE_FILE / row_bytes(data)) return 1;
    return mrc_max(1, BLOCK_BYTES / row_bytes(data));
}

void mrc_order_init(mrc_order *self, const mercer_dataset *data, int64_t block, uint64_t seed)
{
    *self = (mrc_order){.data = data, .seed = seed, .open = -1};
    int64_t rows = mrc_max(1, data->rows);
    self->block = mrc_min(rows, block > 0 ? block : choose_block(data));
    self->blocks = (rows - 1) / self->block + 1;
    int64_t most = mrc_max(1, WINDOW_BYTES / row_bytes(data) / self->block);
    most = mrc_min(most, MRC_ORDER_BLOCKS);
    self->windows = (self->blocks - 1) / most + 1;
    self->window = (self->blocks - 1) / self->windows + 1; /* windows of nearly equal size */
}

static mrc_rng rng_of(const mrc_order *self, uint64_t salt, int64_t repetition)
{
    return (mrc_rng){self->seed ^ salt ^ (uint64_t)repetition * GOLDEN,
                     (uint64_t)(self->pass + 2)}; /* + 2, because solvers use pass -1 to draw samples */
}

/* ---- Windows ------------------------------------------------------------------------------------------------- */

/* Returns the first row of the block at position `place` of the reading order. */
static int64_t block_start(const mrc_order *self, int64_t repetition, int64_t place)
{
    int64_t n = self->data->rows, whole = n / self->block, block = place;
    int64_t offset = mrc_random_below(rng_of(self, SALT_OFFSET, repetition), 0, n);
    if (place < whole) block = mrc_random_permutation(rng_of(self, SALT_BLOCKS, repetition), whole, place);
    return (offset + block * self->block) % n;
}

/* Gives a hint for the rows of a block, which may wrap around from the last row to the first. */
static void hint_block(const mrc_order *self, mrc_mapping_hint give, int64_t start)
{
    int64_t before_end = mrc_min(self->block, self->data->rows - start);
    mrc_dataset_hint(self->data, give, start, before_end);
    mrc_dataset_hint(self->data, give, 0, self->block - before_end);
}

/* Returns the number of blocks in a window. Windows are numbered across repetitions; only the last window of a
   repetition may have fewer blocks than the others. */
static int64_t blocks_in(const mrc_order *self, int64_t window)
{
    int64_t first = window % self->windows * self->window;
    return mrc_min(self->window, self->blocks - first);
}

/* Releases the file pages of the current window. */
static void close_window(mrc_order *self)
{
    for (int64_t i = 0; self->open >= 0 && i < blocks_in(self, self->open); i++)
        hint_block(self, mrc_mapping_release, self->starts[i]);
    self->open = -1;
}

/* Opens a window and announces the next window to the system, which may then read ahead. */
static void open_window(mrc_order *self, int64_t window)
{
    /* The window after the open window has been announced already. After a jump, the new window has not been
       announced. */
    bool announced = self->open >= 0 && window == self->open + 1;
    close_window(self);
    self->open = window;
    for (int64_t ahead = 0; ahead < 2; ahead++) {
        int64_t number = window + ahead, repetition = number / self->windows;
        int64_t first = number % self->windows * self->window;
        for (int64_t i = 0; i < blocks_in(self, number); i++) {
            int64_t start = block_start(self, repetition, first + i);
            if (ahead == 0) self->starts[i] = start;
            if (ahead == 1 || !announced) hint_block(self, mrc_mapping_will_need, start);
        }
    }
}

void mrc_order_restart(mrc_order *self, int64_t pass)
{
    close_window(self);
    self->pass = pass;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------- */

/* Writes up to `count` rows from position `place` on, all from one window. Returns their number. Only the last block of
   a repetition can be incomplete. That block is the last block of its window, so row j of a window is in block j /
   B. */
static int64_t rows_of_window(mrc_order *self, int64_t repetition, int64_t place, int64_t count, int64_t *rows)
{
    int64_t n = self->data->rows, stride = self->window * self->block;
    int64_t window = place / stride, first = window * stride, length = mrc_min(stride, n - first);
    int64_t number = repetition * self->windows + window;
    if (number != self->open) open_window(self, number);
    mrc_rng rng = rng_of(self, SALT_WINDOW + (uint64_t)window, repetition);
    int64_t found = mrc_min(count, first + length - place);
    for (int64_t i = 0; i < found; i++) {
        int64_t j = mrc_random_permutation(rng, length, place - first + i);
        rows[i] = (self->starts[j / self->block] + j % self->block) % n;
    }
    return found;
}

int64_t mrc_order_rows(mrc_order *self, int64_t first, int64_t count, int64_t *rows)
{
    int64_t n = self->data->rows, repetition = first / n, place = first % n;
    if (self->block > 1) return rows_of_window(self, repetition, place, count, rows);
    int64_t found = mrc_min(count, n - place);
    mrc_random_permutations(mrc_max(1, self->threads), rng_of(self, 0, repetition), n, place, found, rows);
    return found;
}
