/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fit/tuned: a search (src/tune) before the fit proper, and what becomes of it.
 *
 *   tuned.c           which candidates, the search, and the options of the fit from what it found
 *   tuned_size.c      how many centers
 *   tuned_state.c     the search in a checkpoint
 *   tuned_members.c   several models, whose mean is the model
 *   tuned_told.c      what is told of it, in the report and in the plan
 */
#ifndef MRC_FIT_TUNED_TUNED_H
#define MRC_FIT_TUNED_TUNED_H

#include "fit/fitting.h"
#include "model/tensor_file.h"

enum { MRC_SEARCH_CHARS = 2048, MRC_SEARCH_TENSORS = 5 };

/* tuned.c: replaces kernel, preprocessing, metric, bandwidth and ridge of the options by the best that was found. */
typedef struct mrc_tuning {
    mercer_kernel kernels[MRC_TUNE_KERNELS];
    char names[MRC_TUNE_KERNELS][64];
    const char *name_list[MRC_TUNE_KERNELS];
    int kernel_count;
    const char *preparations[MRC_TUNE_PREPARATIONS];
    int preparation_count;
    mrc_criterion criterion;
    mrc_tune_result result;
    mrc_journal journal; /* kept in the checkpoint, if there is one, */
    double kept;         /* and when it was; */
    double rate;         /* flops a second that its work is counted by */
    char of[MRC_SEARCH_CHARS];
    mrc_tensor tensors[MRC_SEARCH_TENSORS]; /* views of the three */
    int64_t kept_members;                   /* members that the checkpoint has beside the search, */
    bool kept_training;                     /* the last of which, first in the file, is not done; */
    int64_t kept_size;                      /* its centers, */
    const char *kept_in;                    /* the file */
    double seconds; /* of training, by the estimate that the number of centers was chosen by; 0: it was given */
} mrc_tuning;
mercer_status mrc_fit_tune(mercer_fitting *self);
mercer_status mrc_fit_check_tuning(const mercer_fit_options *options, mercer_context *context);
/* Makes options those of a fit inside a fit: nothing is searched for. */
void mrc_fit_without_search(mercer_fit_options *options);
/* Whether there is to be a search: asked for, or the plan's choice, which becomes that of the options. */
bool mrc_fit_tunes(mercer_fitting *self);
/* Seconds of the search, and of the training behind it. */
double mrc_fit_tune_budget(const mercer_fitting *self);
void mrc_fit_tuning_free(mercer_fitting *self);

/* Kernel and ridge of a choice for all samples, by the rules of scale: the multiple of the median distance between
   them in its metric, the ridge of one sample times their number. */
mercer_status mrc_fit_scale_choice(const mercer_fitting *self, const mrc_tune_choice *choice, const char *preparation,
                                   mercer_kernel *kernel, double *lambda);

/* tuned_members.c: models that are averaged with the one of the fit, which they stand behind when they are trained. */
mercer_status mrc_fit_check_average(const mercer_fit_options *options, mercer_context *context);
int64_t mrc_fit_members(const mercer_fitting *self);
mercer_status mrc_fit_train_members(mercer_fitting *self);
/* Whether a model of a checkpoint has no more members than are asked for. */
mercer_status mrc_fit_check_members(const mercer_fitting *self);
void mrc_fit_tell_members(const mercer_fitting *self, mercer_plan *plan);

/* tuned_state.c: the search in a checkpoint until there is a training: written if it is time (`now`: at once), and
   read, with the rate of its work, and what members there are. */
void mrc_fit_describe_search(mercer_fitting *self, const mrc_tune_task *task);
void mrc_fit_keep_search(void *user, const mrc_tune_task *task, bool now);
const mrc_tensor *mrc_fit_search_tensors(mrc_tuning *tuning);
mercer_status mrc_fit_recall_search(mercer_fitting *self, mrc_tune_task *task);
mercer_status mrc_fit_search_found(mercer_context *context, const char *path, bool *found);

/* tuned_size.c: the number of centers, where it is open, from what more would bring; training goes on to its end. */
void mrc_fit_tuned_size(mercer_fitting *self);
/* The same of a checkpoint's model with p centers. */
void mrc_fit_recall_size(mercer_fitting *self, int64_t p);

/* tuned_told.c */
void mrc_fit_report_search(mercer_fitting *self);
void mrc_fit_tell_tuning(const mercer_fitting *self, mercer_plan *plan);

#endif
