/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing files: every writer has its own temporary file, and no existing file is lost. */
#include "support/check.h"

#include "core/file/file.h"
#include "core/file/system.h"
#include "support/folder.h"

#include <errno.h>
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

/* Temporary names must differ even if process numbers are equal, as in two containers or after a process was killed. */
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

/* Every save succeeds, and concurrent readers always see one complete save. */
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

/* A file can be written under a name of any valid length. */
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

/* A failure to open or rename the file is reported and leaves no file. */
static void test_rejected_arguments(void **state)
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

/* Opening a writer removes the temporary files that a killed writer of the same name left, and no others. */
static void test_remains(void **state)
{
    (void)state;
    static const char *const others[] = {".name.0123456789abcdef.tmq", ".name.0123456789abcdeg.tmp",
                                         ".name_0123456789abcdef.tmp", "_name.0123456789abcdef.tmp",
                                         ".nama.0123456789abcdef.tmp", ".name.0123456789abcdef0.tmp",
                                         ".name.0123456789abcde.tmp"};
    mrc_writer writer;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", in_folder("name"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) write_bytes(in_folder(others[i]), "x", 1);
    write_bytes(in_folder(".name.0123456789abcdef.tmp"), "x", 1);
    assert_succeeds(context, mrc_writer_open(&writer, context, path));
    mrc_writer_cancel(&writer);
    assert_int_equal(folder_count(), sizeof others / sizeof *others);
    folder_clear();
}

/* A name without a folder is in the working directory. */
static void test_here(void **state)
{
    (void)state;
    char before[PATH_MAX];
    mrc_writer writer;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_succeeds(context, mrc_writer_open(&writer, context, "here"));
    assert_string_equal(writer.folder, ".");
    assert_succeeds(context, mrc_writer_write(&writer, "x", 1));
    mercer_status status = mrc_writer_commit(&writer);
    assert_int_equal(chdir(before), 0);
    assert_succeeds(context, status);
    assert_holds(in_folder("here"), "x");
    folder_clear();
}

/* ---- System calls that fail, or do nothing ---------------------------------------------------------------------- */

static mrc_system true_system;
static int error_of_call; /* errno of the replaced call; 0: it succeeds and does nothing */

static ssize_t write_nothing(int descriptor, const void *data, size_t bytes)
{
    (void)descriptor, (void)data, (void)bytes;
    return 0;
}

static ssize_t place_nothing(int descriptor, const void *data, size_t bytes, off_t offset)
{
    (void)descriptor, (void)data, (void)bytes, (void)offset;
    return 0;
}

static int refuse_stat(const char *path, struct stat *out)
{
    (void)path, (void)out;
    errno = error_of_call;
    return -1;
}

static int refuse_folders(const char *path, int flags, mode_t mode)
{
    errno = error_of_call;
    return flags & O_DIRECTORY ? -1 : true_system.open(path, flags, mode);
}

static int open_calls;

static int refuse_new(const char *path, int flags, mode_t mode)
{
    open_calls += (flags & O_EXCL) != 0;
    errno = error_of_call;
    return flags & O_EXCL ? -1 : true_system.open(path, flags, mode);
}

static int refuse_sync(int descriptor)
{
    struct stat about;
    errno = error_of_call;
    return fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode) ? -1 : true_system.fsync(descriptor);
}

static int refuse_close(int descriptor)
{
    true_system.close(descriptor);
    errno = EIO;
    return -1;
}

static int refuse_any_sync(int descriptor)
{
    (void)descriptor;
    errno = ENOSPC;
    return -1;
}

/* Write a file with the replaced system calls, restore the table, and return the status. */
static mercer_status write_file(const char *path)
{
    mrc_writer writer;
    mercer_status status = mrc_writer_open(&writer, context, path);
    if (status == MERCER_OK) status = mrc_writer_write(&writer, "new", 3);
    if (status == MERCER_OK) status = mrc_writer_commit(&writer);
    mrc_writer_cancel(&writer);
    mrc_sys = true_system;
    return status;
}

static void test_calls(void **state)
{
    (void)state;
    char path[PATH_MAX];
    mrc_writer writer, other;
    true_system = mrc_sys;
    snprintf(path, sizeof path, "%s", in_folder("file"));
    mrc_sys.write = write_nothing;
    assert_fails(context, write_file(path), MERCER_ERROR_IO, "after 0 bytes");
    static const struct {
        int error;
        mercer_status status;
    } looks[] = {{ENOENT, MERCER_OK}, {EACCES, MERCER_OK}, {ENOTDIR, MERCER_OK}, {ELOOP, MERCER_ERROR_IO}};
    for (int link = 0; link < 2; link++)
        for (size_t i = 0; i < sizeof looks / sizeof *looks;
             i++) { /* ELOOP: the target is unknown and not overwritten */
            if (link)
                mrc_sys.lstat = refuse_stat;
            else
                mrc_sys.stat = refuse_stat;
            error_of_call = looks[i].error;
            mercer_status status = write_file(path);
            assert_that(status == looks[i].status, "errno %d: %s", looks[i].error, mercer_last_error(context));
        }
    write_bytes(path, "old", 3);
    error_of_call = EEXIST, mrc_sys.open = refuse_new;
    assert_fails(context, write_file(path), MERCER_ERROR_IO, "File exists");
    assert_int_equal(open_calls, 100); /* 100 temporary names are tried before the call fails */
    error_of_call = EROFS, mrc_sys.open = refuse_new, open_calls = 0;
    assert_fails(context, write_file(path), MERCER_ERROR_IO, "Read-only");
    assert_int_equal(open_calls, 1);
    assert_holds(path, "old");
    /* A folder that cannot be opened (EACCES) or does not support sync (EINVAL) is not an error; other failures are. */
    static const int folders[] = {EACCES, EMFILE}, syncs[] = {EINVAL, EIO};
    for (int i = 0; i < 2; i++) {
        error_of_call = folders[i], mrc_sys.open = refuse_folders;
        assert_int_equal(write_file(path), i ? MERCER_ERROR_IO : MERCER_OK);
        error_of_call = syncs[i], mrc_sys.fsync = refuse_sync;
        assert_int_equal(write_file(path), i ? MERCER_ERROR_IO : MERCER_OK);
    }
    mrc_sys.fsync = refuse_any_sync, mrc_sys.close = refuse_close; /* the first failure is reported */
    assert_fails(context, write_file(path), MERCER_ERROR_IO, "No space");
    mrc_sys.close = refuse_close;
    assert_fails(context, write_file(path), MERCER_ERROR_IO, "Input/output error");
    assert_int_equal(folder_count(), 1);
    /* Several writers of one file. */
    assert_succeeds(context, mrc_writer_open(&writer, context, "/dev/null"));
    assert_fails(context, mrc_writer_resize(&writer, 5), MERCER_ERROR_IO, "/dev/null: ");
    assert_succeeds(context, mrc_writer_commit(&writer));
    assert_fails(context, mrc_writer_join(&writer, context, in_folder("none")), MERCER_ERROR_IO, "/none: ");
    assert_succeeds(context, mrc_writer_open(&writer, context, path));
    assert_succeeds(context, mrc_writer_resize(&writer, 6));
    assert_succeeds(context, mrc_writer_join(&other, context, writer.temporary));
    assert_succeeds(context, mrc_writer_write_at(&other, "def", 3, 3));
    mrc_sys.pwrite = place_nothing;
    assert_fails(context, mrc_writer_write_at(&other, "abc", 3, 0), MERCER_ERROR_IO, "byte 0");
    mrc_sys = true_system;
    assert_succeeds(context, mrc_writer_write_at(&writer, "abc", 3, 0));
    assert_succeeds(context, mrc_writer_commit(&other)); /* synced, but still under its temporary name */
    assert_int_equal(folder_count(), 2);
    assert_succeeds(context, mrc_writer_commit(&writer));
    assert_holds(path, "abcdef");
    folder_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_writers_of_one_name),
        cmocka_unit_test(test_threads_with_one_name),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_rejected_arguments),
        cmocka_unit_test(test_remains),
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
