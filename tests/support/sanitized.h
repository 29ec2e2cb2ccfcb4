/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether this is a build with a sanitizer, or for a processor that is emulated, in which everything takes up to ten times
   as long: there grids of cases are thinned. They run whole elsewhere. */
#ifndef MRC_TESTS_SANITIZED_H
#define MRC_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(MERCER_EMULATED)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#endif
