/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fit: the recipe, from a dataset to a trained model: which steps, in which order, with which defaults.
 *
 *   samples.c      equal samples merged, rows held out; class_weights.c: weights of classes
 *   hyperparameters.c  the search (src/search), effort and budget, number of centers; search_state.c: in a checkpoint
 *   prepare.c      preprocessing, kernel function with its bandwidth, validation samples, stream, model
 *   target_units.c the transform of the targets
 *   ridge.c        the ridge, where nothing else is searched for
 *   pick.c         how many centers, and which
 *   budget.c       what training may use of the memory, the plan for that, the most centers that fit
 *   fit_members.c  the other models of a mean
 *   calibrate.c    the temperature of probabilities; intervals.c: scores of rows held back, for intervals
 *   fitting.c      the steps in their order
 *
 * The recipe is made of public functions: it does what any caller could.
 */
#ifndef MRC_FIT_FITTING_H
#define MRC_FIT_FITTING_H

#include "core/memory.h"
#include "core/numbers/units.h"
#include "data/dataset.h"
#include "search/search.h"

#include "mercer/evaluation.h"
#include "mercer/ranks.h"

struct mercer_fitting {
    mercer_context *context;
    mercer_fit_options given_options, options; /* as given; with what is chosen */
    mercer_train_options given_train, train;   /* the same for the trainer, without memory and validation set */
    bool on_device;                            /* training is done in the memory of a device */
    int64_t memory;                            /* bytes in host memory for everything */
    int64_t device_each; /* for training on each of several ranks' devices; 0: they are not, or it is one */

    double *class_factors;                 /* (classes) weights of classes, owned; NULL: none */
    int64_t given_rows;                    /* rows of the data, before any are merged or held out */
    mercer_dataset_info info;              /* of the samples that are trained on */
    mercer_dataset *data, *validation;     /* those, and those held back or given; NULL: none */
    mercer_dataset *merged, *rest, *aside; /* owned, if they were made: `data` and `validation` are among them */
    mercer_dataset *weighted, *weighted_validation; /* the same, what the others are made of */
    bool watched; /* validation samples are looked at while training, not only at its end */

    mrc_units units;                  /* of the targets, from the training rows, owned */
    mercer_preprocess *preprocess;    /* owned; NULL if the model's own serves */
    const mercer_preprocess *applied; /* to samples: the one above, or the model's */
    mercer_kernel kernel;             /* as the model has it */
    bool no_ridge;                    /* train.lambda was given as 0, not left open */

    int effort;                         /* 1 to 5; 0: not chosen yet */
    double opened, deadline;            /* on the clock of mrc_seconds; deadline 0: none */
    bool late;                          /* training was stopped by the deadline */
    double rate;                        /* measured flops per second in double; 0: not measured yet */
    bool searches;                      /* hyperparameters are searched, or were before the checkpoint */
    mrc_search_state search;            /* owned */
    const mrc_search_task *search_task; /* while it runs */
    double search_saved;                /* time of its last checkpoint */
    mrc_search_result found;
    mercer_matrix journal;                   /* view of the search's journal */
    const mercer_fitting *outer;             /* fit whose kernel and preprocessing this one takes over; NULL: none */
    const mercer_fitting *whole;             /* fit that this one trains a member for; NULL: none */
    int64_t number;                          /* of the member that this fit trains */
    mercer_fitting *members[MERCER_MEMBERS]; /* fits of the members after the first; owned */

    mercer_matrix centers; /* owned until the model has its copy; of several ranks: the own share */
    mercer_model *model;
    bool model_borrowed;
    mercer_source source;
    mercer_matrix validation_x, validation_y; /* preprocessed, owned */
    const double *validation_weights;
    bool begun;     /* what follows the samples */
    size_t planned; /* characters of the trainer's plan */
    mercer_trainer *trainer;
    mercer_report training;
    mercer_fit_report report;
};

/* Whether a solver's centers are the samples, in their order. */
bool mrc_fit_samples_are_centers(const mercer_fitting *self);

/* class_weights.c: puts data, and validation of the options, with weights of their own in the place of those given. */
mercer_status mrc_fit_weigh_classes(mercer_fitting *self);
bool mrc_fit_weighs_classes(const mercer_fit_options *options);
/* Whether probabilities are those of the population although classes are weighted. */
bool mrc_fit_shifts_classes(const mercer_fitting *self);
/* The row weights that calibration uses: without class weights, unless calibrate_to asks for them. */
mercer_status mrc_fit_population_weights(const mercer_fitting *self, const mercer_dataset *of, mrc_scope *scope,
                                         const double **out);
/* shift (classes) of scores at that temperature; 0 without class weights. */
void mrc_fit_class_shift(const mercer_fitting *self, double temperature, double *shift);

/* samples.c: sets data, validation, info. */
mercer_status mrc_fit_take_samples(mercer_fitting *self, mercer_dataset *given);
/* Whether equal samples are to be merged. */
bool mrc_fit_merges(const mercer_fitting *self);
/* The first row of each set of rows with equal features: *rows (*count), allocated in the scope, in their order. */
mercer_status mrc_fit_distinct_rows(mrc_scope *scope, const mercer_dataset *data, int64_t **rows, int64_t *count);

/* Returns the total weight of the samples. */
double mrc_fit_count_samples(const mercer_dataset *data);

/* prepare.c */
mercer_status mrc_fit_check_kernel(const mercer_fit_options *options, mercer_context *context);
mercer_status mrc_fit_choose_kernel(mercer_fitting *self); /* and preprocessing */
/* Instead: those of the checkpoint, or of the given model; then whether the model is one of these data and options. */
mercer_status mrc_fit_load_model(mercer_fitting *self);
mercer_status mrc_fit_check_model(mercer_fitting *self);
mercer_status mrc_fit_open_stream(mercer_fitting *self, uint64_t seed, int64_t samples, mercer_source *source);
mercer_status mrc_fit_create_model(mercer_fitting *self);
mercer_status mrc_fit_read_validation(mercer_fitting *self);
/* The type of samples after the preprocessing that would be chosen, without a pass over them. */
mercer_dtype mrc_fit_points(const mercer_fit_options *options, const mercer_dataset_info *info);
/* What the preprocessing of the options means for these data. */
const char *mrc_fit_preprocess(const mercer_fit_options *options, const mercer_dataset_info *info);

/* The kernel of the options, with that bandwidth where its text has none: *open tells whether. */
mercer_status mrc_fit_parse_kernel(const mercer_fit_options *options, mercer_context *context, double bandwidth,
                                   mercer_kernel *out, bool *open);
/* The median distance between some preprocessed rows, in the norm of the kernel; within half of the memory. */
mercer_status mrc_fit_median_distance(mercer_context *context, const mercer_kernel *kernel, const mercer_dataset *data,
                                      const mercer_preprocess *preprocess, int64_t memory, double *out);
/* The metric of a kernel of any norm, given as weights or for norm 2 as M, becomes the preprocessing's last step. */
mercer_status mrc_fit_set_metric(mercer_context *context, mercer_preprocess *preprocess, const mercer_kernel *kernel,
                                 const mercer_matrix *metric, int64_t features);
/* Columns of preprocessed samples, in training. */
int64_t mrc_fit_width(const mercer_fitting *self);

/* hyperparameters.c: checks the options of search, metric and effort. */
mercer_status mrc_fit_check_search(const mercer_fit_options *options, mercer_context *context);
/* Sets searches and report.search_skipped; warns about what is neither given nor searched. */
mercer_status mrc_fit_decide_search(mercer_fitting *self);
/* Sets effort and deadline. */
mercer_status mrc_fit_choose_effort(mercer_fitting *self);
/* Sets preprocess, kernel and train.lambda. */
mercer_status mrc_fit_search(mercer_fitting *self);
/* Sets options.centers, if open, and train.converge of a fit that searches. */
void mrc_fit_choose_size(mercer_fitting *self);
/* Number of centers by the effort. */
int64_t mrc_fit_default_centers(const mercer_fitting *self);
/* Adds the search to the text of a plan, and the time of the other members of a mean to its seconds. */
void mrc_fit_describe_search(const mercer_fitting *self, mercer_plan *plan);

/* search_state.c: continues the search of a checkpoint, if options.checkpoint is set, and saves it as training does. */
mercer_status mrc_fit_open_search_state(mercer_fitting *self, mrc_search_task *task);
/* Returns whether a checkpoint holds a search, and no training yet. */
mercer_status mrc_fit_has_search(mercer_context *context, const char *path, bool *found);

/* target_units.c: finds the transform of the targets from the training rows; gives it to the model. */
mercer_status mrc_fit_find_units(mercer_fitting *self);
mercer_status mrc_fit_set_units(mercer_fitting *self);

/* ridge.c: sets train.lambda by the error on held-out rows, for the kernel and preprocessing that are chosen. */
mercer_status mrc_fit_choose_ridge(mercer_fitting *self);
/* Reads train.lambda of the options: 0 leaves the ridge open, -1 asks for none. */
void mrc_fit_read_ridge(mercer_fitting *self);

/* pick.c */
mercer_status mrc_fit_check_centers(const mercer_fit_options *options, mercer_context *context);
int64_t mrc_fit_center_count(const mercer_fitting *self);
const char *mrc_fit_center_method(const mercer_fitting *self); /* given, all, or a name */
/* Whether the centers are the samples, of which each counts. */
bool mrc_fit_all_rows_count(const mercer_fitting *self);
/* shared: this rank's share of them; else all. */
mercer_status mrc_fit_pick_centers(mercer_fitting *self, bool shared);

/* budget.c */
mercer_status mrc_fit_find_memory(mercer_fitting *self);
/* The memory that training may use when the data, p centers with their weights, and the rest have theirs. It is
   computed from sizes, so that a training that is resumed gets the same. */
int64_t mrc_fit_memory_left(const mercer_fitting *self, int64_t p);
int64_t mrc_fit_validation_rows(const mercer_fitting *self);
mercer_dtype mrc_fit_target_type(const mercer_fitting *self);
/* A plan with p centers, in the memory that is left for training. Refuses what does not fit, and tells in the report
   how many centers would. */
mercer_status mrc_fit_plan(mercer_fitting *self, int64_t p, mercer_plan *plan);
/* The same for one of several: that it does not fit is no failure. */
bool mrc_fit_try_plan(mercer_fitting *self, int64_t p, mercer_plan *plan);

/* fit_members.c: returns the number of models that the effort asks for. */
int64_t mrc_fit_member_count(const mercer_fitting *self);
/* Trains the members after the first, as many as the deadline allows, and adds them to the model. */
mercer_status mrc_fit_train_members(mercer_fitting *self);

/* calibrate.c: the temperature and the intervals of the trained model. */
mercer_status mrc_fit_calibrate(mercer_fitting *self);
/* Sets the predicted seconds of a fit whose search has ended, for its plan. */
void mrc_fit_predict(mercer_fitting *self, const mercer_plan *plan);
/* Whether the temperature is found by cross-validation. */
bool mrc_fit_is_cross_validated(const mercer_fitting *self);
/* log_factors (c): of the weights of classes, whose shifts are -T times that; NULL: none. */
mercer_status mrc_temperature(mercer_context *context, double *out, const mercer_matrix *scores, const int32_t *labels,
                              const double *weights, const double *log_factors);

/* intervals.c: keeps the scores of a dataset in memory, which stands in `predicted`, in the model. */
mercer_status mrc_fit_keep_scores(mercer_fitting *self, const mercer_dataset *of, const mercer_matrix *predicted);

/* fitting.c. Options have been read; arguments are not NULL. */
mercer_status mrc_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                               const mercer_fit_options *options, const mercer_train_options *train);
/* The plan of a fitting that has sizes (info) in place of data. */
mercer_status mrc_fit_plan_sizes(mercer_fitting *self, mercer_plan *plan);
mercer_status mrc_fitting_run(mercer_fitting *self);
void mrc_fitting_fill(const mercer_fitting *self, mercer_fit_report *report);

#endif
