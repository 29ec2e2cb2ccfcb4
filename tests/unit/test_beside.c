/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries are found on the loader's search path, in absolute folders, and in folders relative to this program. */
#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "support/folder.h"

#include "core/file/beside.h"

#include <dlfcn.h>
#include <string.h>

#define TO_ROOT "../../../../../../../../../../../../../../../../.." /* ".." of the root is the root */

static void test_folder_of_the_program(void **state)
{
    (void)state;
    char found[MRC_BESIDE_CHARS], program[MRC_BESIDE_CHARS];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = 0;
    assert_false(mrc_has_raised_rights());
    assert_true(mrc_own_folder(found));
    /* The loader may name the program through symbolic links, so compare inodes instead of paths. */
    struct stat wanted, own;
    snprintf(found + strlen(found), sizeof found - strlen(found), "%s", strrchr(program, '/'));
    assert_int_equal(stat(program, &wanted), 0);
    assert_int_equal(stat(found, &own), 0);
    assert_true(wanted.st_ino == own.st_ino && wanted.st_dev == own.st_dev);
}

static void test_folders(void **state)
{
    (void)state;
    const char *const name = "libmercer_beside.so.3"; /* exists on no system; becomes a link to the C library */
    char relative[FOLDER_CHARS + 64];
    Dl_info about;
    assert_true(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &about) != 0);
    folder_open();
    snprintf(relative, sizeof relative, "%s%s", TO_ROOT, folder);
    const char *const nowhere[] = {NULL}, *const absolute[] = {"/nonexistent", folder, NULL},
                      *const beside[] = {"nonexistent", relative, NULL};
    assert_null(mrc_load_library(name, beside)); /* the link does not exist yet */
    char *target = realpath(about.dli_fname, NULL);
    assert_non_null(target);
    assert_int_equal(symlink(target, in_folder(name)), 0);
    free(target);
    assert_null(mrc_load_library(name, nowhere));
    void *first = mrc_load_library(name, absolute), *second = mrc_load_library(name, beside);
    assert_non_null(first);
    assert_ptr_equal(first, second);
    assert_non_null(dlsym(first, "gnu_get_libc_version"));
    dlclose(first);
    dlclose(second);
    void *plain = mrc_load_library("libc.so.6", nowhere);
    assert_non_null(plain);
    dlclose(plain);
    folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folder_of_the_program), cmocka_unit_test(test_folders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
