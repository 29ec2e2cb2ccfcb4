/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that a public header (HEADER) needs no other include and can be included twice, in C99, C11 and C++17. */
#include HEADER

#include HEADER

#if !defined(MERCER_VERSION_MAJOR) || !defined(MERCER_VERSION_MINOR) || !defined(MERCER_VERSION_PATCH)
#error "mercer.h defines the version"
#endif

/* Call the two functions whose signatures never change, to check that their declarations work in each language. */
const char *test_header_alone(void);
const char *test_header_alone(void)
{
    return mercer_version() ? mercer_status_string(MERCER_OK) : "";
}
