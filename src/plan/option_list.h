/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of training by name: one list, by which values are checked and which the program makes its options of. */
#ifndef MRC_PLAN_OPTION_LIST_H
#define MRC_PLAN_OPTION_LIST_H

#include "core/context.h"

#include <stdbool.h>

/* Row `index` of the list; NULL behind the last. */
const mercer_option *mrc_train_option(int index);

/* The value of an option as a number: an integer, a number, or a switch; of a name, whether it is given. */
double mrc_option_value(const mercer_option *option, const mercer_train_options *options);

/* Every value is in its range; the message names the field. */
mercer_status mrc_check_option_ranges(mercer_context *context, const mercer_train_options *options);

#endif
