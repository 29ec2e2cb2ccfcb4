/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoders of Parquet pages, compared with encoders that are written here from the format's description. */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "data/parquet/codecs.h"
#include "data/parquet/thrift.h"

enum { MOST = 1 << 14, VALUES = 700 };

static uint8_t buffer[MOST];

/* Appends the `width` lowest bits of a value at bit *position. */
static void put_bits(uint8_t *at, int64_t *position, uint64_t value, int width)
{
    for (int i = 0; i < width; i++, ++*position) at[*position / 8] |= (uint8_t)((value >> i & 1) << *position % 8);
}

static uint8_t *put_unsigned(uint8_t *at, uint64_t value)
{
    for (; value > 127; value >>= 7) *at++ = (uint8_t)(value | 128);
    *at++ = (uint8_t)value;
    return at;
}

static uint64_t random_bits(uint64_t *number)
{
    mrc_rng rng = {41, 3};
    uint64_t high = (uint64_t)(mrc_random_uniform(rng, ++*number) * 0x1p32);
    return high << 32 | (uint64_t)(mrc_random_uniform(rng, ++*number) * 0x1p32);
}

/* ---- Runs and packed bits ------------------------------------------------------------------------------------------ */

/* Values 0 .. 7, 16 .. 23, ... are packed bits; the eight after them are a run of the last. */
static void test_hybrid(void **state)
{
    (void)state;
    uint64_t number = 0;
    for (int width = 0; width <= 32; width++) {
        int32_t values[VALUES], taken[VALUES];
        uint8_t *at = buffer;
        memset(buffer, 0, sizeof buffer);
        for (int64_t k = 0; k + 16 <= VALUES; k += 16) {
            int64_t position = 0;
            *at++ = 1 << 1 | 1;
            for (int64_t i = k; i < k + 8; i++) {
                values[i] = (int32_t)(width ? random_bits(&number) >> (64 - width) : 0);
                put_bits(at, &position, (uint32_t)values[i], width);
            }
            at += width;
            *at++ = 8 << 1;
            for (int b = 0; b < (width + 7) / 8; b++) *at++ = (uint8_t)((uint32_t)values[k + 7] >> 8 * b);
            for (int64_t i = k + 8; i < k + 16; i++) values[i] = values[k + 7];
        }
        int64_t count = VALUES / 16 * 16;
        for (int64_t step = 1; step < 40; step += 13) {
            mrc_hybrid hybrid = mrc_hybrid_open(buffer, at, width);
            for (int64_t i = 0; i < count; i += step)
                assert_true(mrc_hybrid_take(&hybrid, step < count - i ? step : count - i, taken + i));
            assert_memory_equal(values, taken, (size_t)count * sizeof *values);
            assert_false(mrc_hybrid_take(&hybrid, 1, taken));
        }
        mrc_hybrid cut = mrc_hybrid_open(buffer, at - 1, width);
        assert_false(mrc_hybrid_take(&cut, count, taken));
    }
    const uint8_t ones[] = {5 << 1, 1, 3, 0xf7};
    mrc_hybrid hybrid = mrc_hybrid_open(ones, ones + sizeof ones, 1);
    assert_int_equal(mrc_hybrid_take_ones(&hybrid, 3), 3);
    assert_int_equal(mrc_hybrid_take_ones(&hybrid, 3), 2);
    assert_int_equal(mrc_hybrid_take_ones(&hybrid, 3), 0);
    const uint8_t large[] = {2 << 1, 2};
    hybrid = mrc_hybrid_open(large, large + sizeof large, 1);
    int32_t value;
    assert_false(mrc_hybrid_take(&hybrid, 1, &value)); /* 2 has more than one bit */
}

/* ---- Deltas -------------------------------------------------------------------------------------------------------- */

/* Encodes values in blocks of 128 with 4 parts, all with bits for the largest difference of the block. */
static uint8_t *put_deltas(uint8_t *at, const int64_t *values, int64_t count)
{
    at = put_unsigned(put_unsigned(put_unsigned(at, 128), 4), (uint64_t)count);
    at = put_unsigned(at, (uint64_t)values[0] << 1 ^ (uint64_t)(values[0] >> 63));
    for (int64_t k = 1; k < count; k += 128) {
        int64_t end = k + 128 < count ? k + 128 : count, least = INT64_MAX;
        uint64_t most = 0;
        for (int64_t i = k; i < end; i++) {
            int64_t delta = (int64_t)((uint64_t)values[i] - (uint64_t)values[i - 1]);
            least = delta < least ? delta : least;
        }
        for (int64_t i = k; i < end; i++) most |= (uint64_t)values[i] - (uint64_t)values[i - 1] - (uint64_t)least;
        int width = 0;
        while (width < 64 && most >> width) width++;
        at = put_unsigned(at, (uint64_t)least << 1 ^ (uint64_t)(least >> 63));
        memset(at, width, 4);
        at += 4;
        for (int64_t part = k; part < end; part += 32, at += 4 * width) {
            int64_t position = 0;
            memset(at, 0, (size_t)(4 * width));
            for (int64_t i = part; i < part + 32 && i < end; i++)
                put_bits(at, &position, (uint64_t)values[i] - (uint64_t)values[i - 1] - (uint64_t)least, width);
        }
    }
    return at;
}

static void test_delta(void **state)
{
    (void)state;
    uint64_t number = 1000;
    int64_t values[VALUES], taken[VALUES];
    for (int width = 0; width <= 64; width += width < 60 ? 3 : 1) {
        for (int64_t count = 1; count <= VALUES; count += 233) {
            for (int64_t i = 0; i < count; i++) values[i] = width ? (int64_t)random_bits(&number) >> (64 - width) : 7;
            const uint8_t *end = put_deltas(buffer, values, count);
            assert_true(end < buffer + sizeof buffer);
            mrc_delta delta;
            assert_true(mrc_delta_open(&delta, buffer, buffer + sizeof buffer));
            assert_ptr_equal(mrc_delta_end(&delta), end);
            for (int64_t i = 0; i < count; i += 37)
                assert_true(mrc_delta_take(&delta, 37 < count - i ? 37 : count - i, taken + i));
            assert_memory_equal(values, taken, (size_t)count * sizeof *values);
            assert_false(mrc_delta_take(&delta, 1, taken));
            if (count < 200 || width == 0) continue;
            assert_true(mrc_delta_open(&delta, buffer, buffer + 28)); /* the header takes up to 15 bytes */
            assert_null(mrc_delta_end(&delta));
        }
    }
    mrc_delta delta;
    for (uint64_t block = 0; block < 20; block += 4) { /* not a multiple of 8 values in each part */
        uint8_t *end = put_unsigned(put_unsigned(put_unsigned(put_unsigned(buffer, block), 4), 3), 0);
        assert_false(mrc_delta_open(&delta, buffer, end));
    }
}

/* ---- Codecs -------------------------------------------------------------------------------------------------------- */

typedef bool (*unpacker)(const uint8_t *data, int64_t bytes, uint8_t *out, int64_t size);

/* Every proper beginning of the data, and every other size, is an error. */
static void assert_unpacks(unpacker unpack, const void *data, size_t bytes, const char *text)
{
    int64_t size = (int64_t)strlen(text);
    uint8_t *exact = malloc(bytes), *out = malloc((size_t)size + 1);
    assert_true(exact && out);
    memcpy(exact, data, bytes);
    assert_true(unpack(exact, (int64_t)bytes, out, size));
    assert_memory_equal(out, text, (size_t)size);
    assert_false(unpack(exact, (int64_t)bytes, out, size - 1));
    assert_false(unpack(exact, (int64_t)bytes, out, size + 1));
    for (size_t cut = 0; cut < bytes; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);
        assert_non_null(part);
        memcpy(part, data, cut);
        assert_false(unpack(part, (int64_t)cut, out, size));
        free(part);
    }
    free(exact), free(out);
}

static void test_blocks(void **state)
{
    (void)state;
    const char text[] = "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcX0123456789ABCDEF";
    /* a literal of 3, a copy of 54 by a tag of 3 bytes, a literal of 17 */
    const uint8_t snappy[] = "\x4a\x08"
                             "abc\xd6\x03\x00\x40"
                             "X0123456789ABCDEF";
    assert_unpacks(mrc_snappy_unpack, snappy, sizeof snappy - 1, text);
    const uint8_t lz4[] = "\x3f"
                          "abc\x03\x00\x23\xf0\x02"
                          "X0123456789ABCDEF";
    assert_unpacks(mrc_lz4_unpack, lz4, sizeof lz4 - 1, text);
    /* copies with tags of 2 and 5 bytes */
    const uint8_t tags[] = "\x0c\x0c"
                           "wxyz\x01\x04\x0f\x02\x00\x00\x00";
    assert_unpacks(mrc_snappy_unpack, tags, sizeof tags - 1, "wxyzwxyzyzyz");
    uint8_t out[64];
    assert_false(mrc_snappy_unpack((const uint8_t *)"\x08\x0c"
                                                    "wxyz\x01\x05",
                                   8, out, 8)); /* offset 5 is before the beginning */
    assert_false(mrc_snappy_unpack((const uint8_t *)"\x08\x0c"
                                                    "wxyz\x01\x00",
                                   8, out, 8)); /* offset 0 */
    assert_false(mrc_lz4_unpack((const uint8_t *)"\x40wxyz\x05\x00", 7, out, 8));
    assert_false(mrc_snappy_unpack((const uint8_t *)"\xff\xff\xff\xff\xff\x01", 6, out, 64));
}

/* ---- Thrift -------------------------------------------------------------------------------------------------------- */

static void test_thrift(void **state)
{
    (void)state;
    uint8_t deep[64];
    memset(deep, 0x1c, sizeof deep); /* a struct in a struct in ... */
    mrc_thrift thrift = {.at = deep, .end = deep + sizeof deep};
    mrc_thrift_skip(&thrift, 12);
    assert_true(thrift.bad);
    const uint8_t list[] = {0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2};
    thrift = (mrc_thrift){.at = list, .end = list + sizeof list};
    int element;
    assert_int_equal(mrc_thrift_list(&thrift, 9, &element), 0); /* more elements than bytes */
    assert_true(thrift.bad);
    const uint8_t number[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    thrift = (mrc_thrift){.at = number, .end = number + sizeof number};
    mrc_thrift_unsigned(&thrift); /* 65 bits */
    assert_true(thrift.bad);
    const uint8_t fields[] = {0x15, 0x03, 0x26, 0x04, 0x05, 0x28, 0x06, 0x11, 0x00};
    thrift = (mrc_thrift){.at = fields, .end = fields + sizeof fields};
    mrc_thrift_field field = {0};
    assert_true(mrc_thrift_begin(&thrift, 12));
    assert_true(mrc_thrift_next(&thrift, &field) && field.id == 1);
    assert_int_equal(mrc_thrift_integer(&thrift, field.type), -2);
    assert_true(mrc_thrift_next(&thrift, &field) && field.id == 3);
    assert_int_equal(mrc_thrift_integer(&thrift, field.type), 2);
    assert_true(mrc_thrift_next(&thrift, &field) && field.id == 20);
    assert_int_equal(mrc_thrift_integer(&thrift, field.type), 3);
    assert_true(mrc_thrift_next(&thrift, &field) && field.id == 21);
    assert_int_equal(mrc_thrift_integer(&thrift, field.type), 1);
    assert_false(mrc_thrift_next(&thrift, &field));
    assert_false(thrift.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hybrid), cmocka_unit_test(test_delta),
                                       cmocka_unit_test(test_blocks), cmocka_unit_test(test_thrift)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
