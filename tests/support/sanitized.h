/* SPDX-License-Identifier: BSD-3-Clause */
/* Defines whether this build has a sanitizer or is for an emulated processor. Tests of such builds take up to ten times
   as long, so they run only a part of their cases. Tests of other builds run all cases. */
#ifndef MRC_TESTS_SANITIZED_H
#define MRC_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(MERCER_EMULATED)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#endif
