/* SPDX-License-Identifier: BSD-3-Clause */
/* Files being written: each writer has a temporary file of its own, and nobody's file is lost. */
#include "support/check.h"

#include "core/file/file.h"
#include "support/folder.h"

#include <limits.h>
#include <pthread.h>

static mercer_context *context;

static int open_all(void **state)
{
    (void)state;
    folder_open();
    return mercer_context_create(&context, NULL);
}

static int close_all(void **state)
{
    (void)state;
    mercer_context_free(context);
    folder_close();
    return 0;
}

static void assert_holds(const char *path, const char *text)
{
    file_bytes found = read_bytes(path);
    assert_int_equal(found.count, strlen(text));
    assert_memory_equal(found.data, text, found.count);
    free(found.data);
}

/* Two processes in two containers may have one number; so may one that was killed and one of today. */
static void test_two_writers_of_one_name(void **state)
{
    (void)state;
    char path[PATH_MAX];
    mrc_writer first, second, third;
    snprintf(path, sizeof path, "%s", in_folder("shared"));
    write_bytes(path, "old", 3);
    assert_succeeds(context, mrc_writer_open(&first, context, path));
    assert_succeeds(context, mrc_writer_write(&first, "fir", 3));
    assert_succeeds(context, mrc_writer_open(&second, context, path));
    assert_string_not_equal(first.temporary, second.temporary);
    assert_succeeds(context, mrc_writer_open(&third, context, path));
    assert_int_equal(folder_count(), 4);
    mrc_writer_cancel(&third);
    assert_int_equal(folder_count(), 3);
    assert_holds(path, "old");
    assert_succeeds(context, mrc_writer_write(&first, "st", 2));
    assert_succeeds(context, mrc_writer_commit(&first));
    assert_holds(path, "first");
    assert_succeeds(context, mrc_writer_write(&second, "second", 6));
    assert_holds(path, "first");
    assert_succeeds(context, mrc_writer_commit(&second));
    assert_holds(path, "second");
    assert_int_equal(folder_count(), 1);
    remove(path);
}

enum { THREADS = 4, SAVES = 50, BYTES = 5000 };

static void *save_often(void *argument)
{
    const char *path = argument;
    char bytes[BYTES];
    mercer_context *own;
    if (mercer_context_create(&own, NULL) != MERCER_OK) return argument;
    bool good = true;
    for (int i = 0; i < SAVES && good; i++) {
        mrc_writer writer;
        memset(bytes, 'a' + i % 26, sizeof bytes);
        good = mrc_writer_open(&writer, own, path) == MERCER_OK;
        for (int part = 0; part < 5 && good; part++)
            good = mrc_writer_write(&writer, bytes + part * BYTES / 5, BYTES / 5) == MERCER_OK;
        if (good)
            good = mrc_writer_commit(&writer) == MERCER_OK;
        else
            mrc_writer_cancel(&writer);
    }
    mercer_context_free(own);
    return good ? NULL : argument;
}

/* Every save succeeds, and whoever reads meanwhile finds one of them whole. */
static void test_threads_with_one_name(void **state)
{
    (void)state;
    char path[PATH_MAX];
    pthread_t threads[THREADS];
    snprintf(path, sizeof path, "%s", in_folder("threads"));
    write_bytes(path, "", 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, save_often, path), 0);
    for (int i = 0; i < 200; i++) {
        file_bytes found = read_bytes(path);
        assert_true(found.count == 0 || found.count == BYTES);
        for (size_t k = 1; k < found.count; k++) assert_int_equal(found.data[k], found.data[0]);
        free(found.data);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(folder_count(), 1);
    remove(path);
}

/* Whatever name a file may have, it can be written. */
static void test_longest_name(void **state)
{
    (void)state;
    char name[NAME_MAX + 2], path[PATH_MAX];
    mrc_writer writer;
    for (size_t length = NAME_MAX - 30; length <= NAME_MAX; length++) {
        memset(name, 'n', length);
        name[length] = 0;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        assert_succeeds(context, mrc_writer_open(&writer, context, path));
        assert_succeeds(context, mrc_writer_write(&writer, "long", 4));
        assert_succeeds(context, mrc_writer_commit(&writer));
        assert_holds(path, "long");
        remove(path);
    }
}

/* A failure to open or to name the file says so and leaves nothing. */
static void test_refusals(void **state)
{
    (void)state;
    char path[PATH_MAX];
    mrc_writer writer;
    snprintf(path, sizeof path, "%s", in_folder("none/file"));
    assert_fails(context, mrc_writer_open(&writer, context, path), MERCER_ERROR_IO, path);
    assert_fails(context, mrc_writer_open(&writer, context, ""), MERCER_ERROR_ARGUMENT, "empty");
    snprintf(path, sizeof path, "%s", in_folder("becomes-a-folder"));
    assert_succeeds(context, mrc_writer_open(&writer, context, path));
    assert_int_equal(mkdir(path, 0777), 0);
    assert_fails(context, mrc_writer_commit(&writer), MERCER_ERROR_IO, path);
    mrc_writer_cancel(&writer);
    assert_int_equal(folder_count(), 1);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_writers_of_one_name),
        cmocka_unit_test(test_threads_with_one_name),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
