/* SPDX-License-Identifier: BSD-3-Clause */
/* For a shared library that contains Debian's static jansson (MERCER_BUNDLED), which is compiled for programs. jansson
   compares files with stdin to name them in messages, and this reference to stdin cannot be linked into a shared library.
   The linker option --wrap=stdin replaces it by this null pointer, which equals no file. */
#include <stdio.h>

FILE *__wrap_stdin;
