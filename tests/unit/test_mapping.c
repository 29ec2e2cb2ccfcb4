/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are truncated or modified while they are being read. */
#include "support/datasets.h"

#include "core/file/file.h"
#include "core/file/system.h"

#include <sys/time.h>
#include <unistd.h>

enum { BYTES = 100000 };

static const char *make_file(const char *name)
{
    static char bytes[BYTES];
    for (int i = 0; i < BYTES; i++) bytes[i] = (char)(i % 251);
    return byte_file(name, bytes, BYTES);
}

static void set_time(const char *path, time_t seconds)
{
    struct timeval times[2] = {{seconds, 0}, {seconds, 0}};
    assert_int_equal(utimes(path, times), 0);
}

/* A small file is read into a private copy, which later changes to the file do not affect. */
static void test_copies(void **state)
{
    (void)state;
    mrc_mapping map;
    int64_t live = allocator.live;
    const char *path = make_file("copied");
    assert_succeeds(context, mrc_open_file(context, &map, path, BYTES));
    assert_true(map.owner == context && map.bytes == BYTES);
    assert_int_equal(truncate(path, 10), 0);
    for (int i = 0; i < BYTES; i++) assert_int_equal(((char *)map.data)[i], (char)(i % 251));
    assert_succeeds(context, mrc_mapping_check(&map));
    mrc_mapping_release(&map, 0, BYTES); /* no effect: hints apply only to mappings */
    assert_int_equal(((char *)map.data)[BYTES - 1], (char)((BYTES - 1) % 251));
    mrc_unmap(&map);
    assert_int_equal(allocator.live, live);
    assert_succeeds(context, mrc_open_file(context, &map, make_file("mapped"), BYTES - 1));
    assert_true(map.owner == NULL && map.bytes == BYTES);
    mrc_unmap(&map);
    assert_int_equal(allocator.live, live);
}

/* A truncated or modified mapped file is detected. If a mapped file is deleted or replaced, the mapped data remain
   valid. */
static void test_changes(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        bool fails;
    } cases[] = {{"nothing", false}, {"cut", true},      {"longer", true},
                 {"written", true},  {"removed", false}, {"replaced", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mrc_mapping map;
        const char *path = make_file("changed"), *what = cases[i].what;
        set_time(path, 1000000);
        assert_succeeds(context, mrc_open_file(context, &map, path, 0));
        assert_succeeds(context, mrc_mapping_check(&map));
        if (strcmp(what, "cut") == 0) assert_int_equal(truncate(path, 5), 0);
        if (strcmp(what, "longer") == 0) assert_int_equal(truncate(path, 2 * BYTES), 0);
        if (strcmp(what, "written") == 0) set_time(path, 1000001);
        if (strcmp(what, "removed") == 0) assert_int_equal(unlink(path), 0);
        if (strcmp(what, "replaced") == 0) assert_int_equal(rename(text_file("other", "short"), path), 0);
        if (cases[i].fails)
            assert_fails(context, mrc_mapping_check(&map), MERCER_ERROR_IO, "changed");
        else
            assert_succeeds(context, mrc_mapping_check(&map));
        if (!cases[i].fails) assert_int_equal(((char *)map.data)[BYTES - 1], (char)((BYTES - 1) % 251));
        mrc_unmap(&map);
    }
}

/* The public functions, for a mapped dataset and for one that is not mapped. */
static void test_datasets(void **state)
{
    (void)state;
    float values[40], row[4];
    mercer_dataset *data;
    for (int i = 0; i < 40; i++) values[i] = (float)i;
    mercer_matrix to = mercer_matrix_view(row, 1, 4, MERCER_F32);
    for (int copied = 0; copied < 2; copied++) {
        const char *path = plain_file("x.npy", "<f4", false, "10, 4", values, sizeof values);
        mercer_dataset_options options = data_options(path, NULL);
        options.task = MERCER_TASK_UNLABELED;
        options.mapping = copied ? MERCER_OFF : MERCER_AUTO;
        data = open_with(&options);
        assert_int_equal(about(data).mapped, !copied);
        assert_succeeds(context, mercer_dataset_read(data, &to, NULL, NULL, NULL, NULL, 9));
        assert_true(row[3] == 39);
        assert_int_equal(truncate(path, 130), 0);
        row[3] = 0;
        mercer_status status = mercer_dataset_read(data, &to, NULL, NULL, NULL, NULL, 9);
        if (copied)
            assert_true(status == MERCER_OK && row[3] == 39);
        else
            assert_fails(context, status, MERCER_ERROR_IO, "x.npy");
        mercer_dataset_free(data);
    }
}

/* Files that cannot be opened, and system calls that return less than requested. */
static mrc_system true_system;
static struct stat other_about;
static int reads;

static ssize_t read_nothing(int descriptor, void *data, size_t bytes, off_t offset)
{
    return reads++ > 0 ? 0 : true_system.pread(descriptor, data, bytes / 2, offset);
}

static int stat_other(const char *path, struct stat *out)
{
    (void)path;
    *out = other_about;
    return 0;
}

static void test_calls(void **state)
{
    (void)state;
    mrc_mapping map;
    char below[600];
    const char *path = make_file("mapped");
    true_system = mrc_sys;
    snprintf(below, sizeof below, "%s/below", path);
    assert_fails(context, mrc_open_file(context, &map, below, 0), MERCER_ERROR_MISSING, "Not a directory");
    assert_fails(context, mrc_open_file(context, &map, in_folder("none"), 0), MERCER_ERROR_MISSING, "No such file");
    int64_t live = allocator.live;
    mrc_sys.pread = read_nothing; /* as if the file was truncated while it was read */
    mercer_status status = mrc_open_file(context, &map, path, BYTES);
    mrc_sys = true_system;
    assert_fails(context, status, MERCER_ERROR_IO, "mapped: ");
    assert_int_equal(allocator.live, live);
    assert_succeeds(context, mrc_open_file(context, &map, path, 0));
    assert_int_equal(stat(path, &other_about), 0);
    mrc_sys.stat = stat_other;
    for (int what = 0; what < 4; what++) { /* unchanged; another device; changed by nanoseconds; another size */
        assert_int_equal(stat(path, &other_about), 0);
        if (what == 1) other_about.st_dev++;
        if (what == 2) other_about.st_mtim.tv_nsec ^= 1;
        if (what == 3) other_about.st_size++;
        assert_int_equal(mrc_mapping_check(&map), what < 2 ? MERCER_OK : MERCER_ERROR_IO);
    }
    mrc_sys = true_system;
    mrc_mapping_will_need(&map, 5000, 100);
    mrc_mapping_will_need(&map, 0, 0); /* zero bytes: no effect */
    mrc_mapping_release(&map, 10, 0);
    mrc_mapping_release(&map, 10, BYTES);
    assert_int_equal(((char *)map.data)[BYTES - 1], (char)((BYTES - 1) % 251));
    mrc_unmap(&map);
    mrc_mapping_will_need(&map, 0, 100); /* a released or empty mapping: no effect */
    assert_succeeds(context, mrc_open_file(context, &map, text_file("empty", ""), 0));
    assert_true(map.data == NULL && map.bytes == 0);
    mrc_mapping_release(&map, 0, 10);
    mrc_unmap(&map);
    assert_int_equal(allocator.live, live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_changes),
                                       cmocka_unit_test(test_datasets), cmocka_unit_test(test_calls)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
