/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions of kernel functions, preprocessings and models, returned by value; all fields are 0 on failure. */
#ifndef MRC_TESTS_INFO_H
#define MRC_TESTS_INFO_H

#include "mercer/advanced.h"

static inline mercer_kernel_info kernel_info(int index)
{
    mercer_kernel_info info = MERCER_INIT(mercer_kernel_info);
    mercer_kernel_list(&info, index);
    return info;
}

static inline mercer_preprocess_info preprocess_info(const mercer_preprocess *preprocess)
{
    mercer_preprocess_info info = MERCER_INIT(mercer_preprocess_info);
    mercer_preprocess_query(preprocess, &info);
    return info;
}

static inline mercer_model_info model_info(const mercer_model *model)
{
    mercer_model_info info = MERCER_INIT(mercer_model_info);
    mercer_model_query(model, &info);
    return info;
}

#endif
