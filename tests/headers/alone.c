/* SPDX-License-Identifier: BSD-3-Clause */
/* A public header (HEADER) needs nothing before it and may be included twice. Compiled as C99, C11 and C++17. */
#include HEADER

#include HEADER

#if !defined(MERCER_VERSION_MAJOR) || !defined(MERCER_VERSION_MINOR) || !defined(MERCER_VERSION_PATCH)
#error "mercer.h defines the version"
#endif

/* Uses the two functions that never change, so that their declarations are seen to work in each language. */
const char *test_header_alone(void);
const char *test_header_alone(void)
{
    return mercer_version() ? mercer_status_string(MERCER_OK) : "";
}
