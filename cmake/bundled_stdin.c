/* SPDX-License-Identifier: BSD-3-Clause */
/* For a shared library that contains Debian's static jansson (MERCER_BUNDLED). This jansson is compiled for programs: it
   compares files with stdin, to name stdin in messages, and a shared library cannot contain its reference to stdin. The
   linker option --wrap=stdin replaces stdin by this null pointer, which differs from every file. */
#include <stdio.h>

FILE *__wrap_stdin;
