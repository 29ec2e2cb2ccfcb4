/* SPDX-License-Identifier: BSD-3-Clause */
/* For a library that holds Debian's archive of jansson (MERCER_BUNDLED): that is compiled for programs, and its one
   reference to stdin, which it compares files with to name them in messages, fits no shared library. The linker puts this
   in its place (--wrap=stdin): no file is equal to it. */
#include <stdio.h>

FILE *__wrap_stdin;
