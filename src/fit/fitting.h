/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fit: from a dataset to a trained model, as a list of stages (stages.c) over one request (request.c: the caller's
 * options, checked once; nothing writes to them) and one record (record.c: every decision with its origin; the plan's
 * lines, the report and the note are views of it).
 *
 *   samples    samples.c, class_weights.c, target_units.c     size     fit_centers.c, ridge.c
 *   search     hyperparameters.c                              centers  fit_centers.c
 *   kernel     fit_kernel.c                                   plan     budget.c, fit_train.c
 *   calibrate  calibrate.c                                    train    fit_train.c, fit_members.c
 *
 * fit_checkpoint.c saves and restores the stage that runs. The recipe is made of public functions: it does what any
 * caller could.
 */
#ifndef MRC_FIT_FITTING_H
#define MRC_FIT_FITTING_H

#include "core/memory.h"
#include "core/numbers/units.h"
#include "data/dataset.h"
#include "search/search.h"

#include "mercer/evaluation.h"
#include "mercer/ranks.h"

#define MRC_DEFAULT_KERNEL "laplace"

/* ---- Request ----------------------------------------------------------------------------------------------------- */

/* The caller's options. options.train is not used: `train` is its copy, with the seed of the options. */
typedef struct mrc_fit_request {
    mercer_fit_options options;
    mercer_train_options train;
} mrc_fit_request;

/* request.c: checks what can be checked without data. */
mercer_status mrc_fit_check_request(mercer_context *context, mrc_fit_request *request);
/* Returns whether the caller asked for no ridge; 0 leaves the ridge to the fit. */
bool mrc_fit_has_no_ridge(const mrc_fit_request *request);

/* ---- Record ------------------------------------------------------------------------------------------------------ */

/* Where a value comes from. */
typedef enum mrc_origin { MRC_DEFAULT, MRC_GIVEN, MRC_FROM_DATA, MRC_FROM_SEARCH, MRC_RESUMED } mrc_origin;

enum { MRC_DECISIONS = 32, MRC_DECISION_CHARS = 256 };

typedef struct mrc_decision {
    const char *stage, *name; /* static */
    mrc_origin origin;
    char value[MERCER_KERNEL_TEXT]; /* for programs */
    char text[MRC_DECISION_CHARS];  /* a line of the plan; "": none */
} mrc_decision;

typedef struct mrc_fit_record {
    int64_t centers;        /* number of centers; 0: open, -1: all rows */
    double ridge;           /* 0: open, or none */
    mercer_switch converge; /* of the trainer */
    const char *resumes;    /* checkpoint of a training that goes on; NULL: none */
    mrc_decision decisions[MRC_DECISIONS];
    int decision_count;
} mrc_fit_record;

/* ---- A fit ------------------------------------------------------------------------------------------------------- */

struct mercer_fitting {
    mercer_context *context;
    const mrc_fit_request *request; /* owned */
    mrc_fit_record record;
    int stage;   /* next stage to run */
    bool failed; /* a stage failed: the fit cannot go on */
    bool centers_only;
    bool on_device;      /* training is done in the memory of a device */
    int64_t memory;      /* bytes in host memory for everything */
    int64_t device_each; /* for training on each of several ranks' devices; 0: they are not, or it is one */

    /* Artifacts of the stages, each set by one stage and handed on. */
    double *class_factors;                 /* (classes) weights of classes, owned; NULL: none */
    int64_t given_rows;                    /* rows of the data, before any are merged or held out */
    mercer_dataset_info info;              /* of the training rows */
    mercer_dataset *data, *validation;     /* training rows; held-out or given validation rows, or NULL */
    mercer_dataset *merged, *rest, *aside; /* owned, if they were made: `data` and `validation` are among them */
    mercer_dataset *weighted, *weighted_validation; /* the same, what the others are made of */
    bool watched;                                   /* validation rows are scored while training, not only at its end */

    mrc_units units;                  /* transform of the targets, from the training rows, owned */
    mercer_preprocess *preprocess;    /* fitted, owned; NULL if the model's own serves */
    const mercer_preprocess *applied; /* to samples: the one above, or the model's */
    mercer_kernel kernel;             /* as the model has it */

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
    bool model_borrowed; /* given by the caller */
    bool model_exists;   /* given, or read from the checkpoint */
    mercer_source source;
    mercer_matrix validation_x, validation_y; /* preprocessed, owned */
    const double *validation_weights;
    mercer_trainer *trainer;
    mercer_plan *plan; /* as prepared, owned; NULL before */
    mercer_report training;
    mercer_fit_report report;
};

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

/* stages.c: opens a fit with a checked request, which is copied; runs the first stage. */
mercer_status mrc_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                               const mrc_fit_request *request);
/* Run the stages up to the plan. */
mercer_status mrc_fitting_prepare(mercer_fitting *self);
/* Run all stages. */
mercer_status mrc_fitting_run(mercer_fitting *self);
/* Run the stages up to the centers only, with all centers on every rank. */
mercer_status mrc_fitting_centers(mercer_fitting *self);
/* The plan of a fit that has sizes (info) in place of data. */
mercer_status mrc_fit_plan_sizes(mercer_fitting *self, mercer_plan *plan);

/* Each sets what the table above says. */
mercer_status mrc_stage_samples(mercer_fitting *self);
mercer_status mrc_stage_search(mercer_fitting *self);
mercer_status mrc_stage_kernel(mercer_fitting *self);
mercer_status mrc_stage_size(mercer_fitting *self);
mercer_status mrc_stage_centers(mercer_fitting *self);
mercer_status mrc_stage_plan(mercer_fitting *self);
mercer_status mrc_stage_train(mercer_fitting *self);
mercer_status mrc_stage_calibrate(mercer_fitting *self);

/* record.c: start the record with the values of the request. */
void mrc_fit_start_record(mercer_fitting *self);
/* Adds a decision, or replaces that of the same stage and name. explain adds a line of text to it, for the plan. */
void mrc_fit_decide(mercer_fitting *self, const char *stage, const char *name, mrc_origin origin, const char *value);
void mrc_fit_explain(mercer_fitting *self, const char *stage, const char *name, const char *format, ...)
    MRC_PRINTF(4, 5);
/* hyperparameters.c and fit_centers.c: record the decisions of the stages search and size. */
void mrc_fit_record_search(mercer_fitting *self);
void mrc_fit_record_size(mercer_fitting *self);
/* Writes the lines of the record before the text of a plan. */
void mrc_fit_add_lines(const mercer_fitting *self, mercer_plan *plan);
const char *mrc_origin_name(mrc_origin origin);
/* Where a value comes from that a model brings with it, or that is given or chosen otherwise. */
mrc_origin mrc_fit_origin(const mercer_fitting *self, bool given, mrc_origin otherwise);
/* Sets the caller's report. */
void mrc_fitting_fill(const mercer_fitting *self, mercer_fit_report *report);
/* Writes a summary of the training into the model. */
mercer_status mrc_fit_write_note(const mercer_fitting *self);

/* fit_train.c: the trainer's options, with what the record decides. */
mercer_train_options mrc_fit_train_options(const mercer_fitting *self);
/* Adds the lines of the record, and the time of the other members of a mean, to a plan. */
void mrc_fit_complete_plan(mercer_fitting *self, mercer_plan *plan);

/* Whether a solver's centers are the samples, in their order. */
bool mrc_fit_samples_are_centers(const mercer_fitting *self);

/* class_weights.c: puts data and validation with weights of their own in the place of those given. */
mercer_status mrc_fit_weigh_classes(mercer_fitting *self);
bool mrc_fit_weighs_classes(const mercer_fit_options *options);
/* Whether probabilities are those of the population although classes are weighted. */
bool mrc_fit_shifts_classes(const mercer_fitting *self);
/* The row weights that calibration uses: without class weights, unless calibrate_to asks for them. */
mercer_status mrc_fit_population_weights(const mercer_fitting *self, const mercer_dataset *of, mrc_scope *scope,
                                         const double **out);
/* shift (classes) of scores at that temperature; 0 without class weights. */
void mrc_fit_class_shift(const mercer_fitting *self, double temperature, double *shift);

/* samples.c */
/* Whether equal samples are to be merged. */
bool mrc_fit_merges(const mercer_fitting *self);
/* The first row of each set of rows with equal features: *rows (*count), allocated in the scope, in their order. */
mercer_status mrc_fit_distinct_rows(mrc_scope *scope, const mercer_dataset *data, int64_t **rows, int64_t *count);

/* Returns the total weight of the samples. */
double mrc_fit_count_samples(const mercer_dataset *data);

/* fit_kernel.c: whether a model that exists is one of these data and options. */
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

/* hyperparameters.c: sets searches and report.search_skipped; warns about what is neither given nor searched. */
mercer_status mrc_fit_decide_search(mercer_fitting *self);
/* Sets effort and deadline. */
mercer_status mrc_fit_choose_effort(mercer_fitting *self);
/* Number of centers by the effort. */
int64_t mrc_fit_default_centers(const mercer_fitting *self);

/* fit_checkpoint.c: continues the search of a checkpoint, if record.resumes is set, and saves it as training does. */
mercer_status mrc_fit_open_search_state(mercer_fitting *self, mrc_search_task *task);
/* Opens a checkpoint and restores its effort. *searching: it holds a search and no training; else the ridge and what
   the search found are restored, too. */
mercer_status mrc_fit_open_checkpoint(mercer_fitting *self, const char *path, bool *searching);
/* Sets the record that checkpoints of the model carry. */
mercer_status mrc_fit_set_record(const mercer_fitting *self);

/* target_units.c: finds the transform of the targets from the training rows; gives it to the model. */
mercer_status mrc_fit_find_units(mercer_fitting *self);
mercer_status mrc_fit_set_units(mercer_fitting *self);

/* ridge.c: sets record.ridge by the error on held-out rows, for the kernel and preprocessing that are chosen. */
mercer_status mrc_fit_choose_ridge(mercer_fitting *self);

/* fit_centers.c: sets record.centers, if open, and record.converge of a fit that searches. */
void mrc_fit_choose_size(mercer_fitting *self);
bool mrc_fit_is_augmented(const mercer_fit_options *options);
int64_t mrc_fit_center_count(const mercer_fitting *self);
const char *mrc_fit_center_method(const mercer_fitting *self); /* given, all, or a name */
/* Whether the centers are the samples and every sample has a positive weight. */
bool mrc_fit_all_rows_count(const mercer_fitting *self);

/* budget.c */
mercer_status mrc_fit_find_memory(mercer_fitting *self);
/* The memory that training may use when the data, p centers with their weights, and the rest have theirs. It is
   computed from sizes, so that a training that is resumed gets the same. */
int64_t mrc_fit_memory_left(const mercer_fitting *self, int64_t p);
int64_t mrc_fit_validation_rows(const mercer_fitting *self);
mercer_dtype mrc_fit_target_type(const mercer_fitting *self);
/* Plan for p centers in the memory left for training; if they do not fit, fail and report the largest number that
   does. */
mercer_status mrc_fit_plan(mercer_fitting *self, int64_t p, mercer_plan *plan);
/* The same as mrc_fit_plan, but a plan that does not fit is not an error. */
bool mrc_fit_try_plan(const mercer_fitting *self, int64_t p, mercer_plan *plan);

/* fit_members.c: returns the number of models that the effort asks for. */
int64_t mrc_fit_member_count(const mercer_fitting *self);
/* Trains the members after the first, as many as the deadline allows, and adds them to the model. */
mercer_status mrc_fit_train_members(mercer_fitting *self);

/* hyperparameters.c: sets the predicted seconds of a fit whose search has ended, for its plan. */
void mrc_fit_predict(mercer_fitting *self, const mercer_plan *plan);
/* Whether the temperature is found by cross-validation. */
bool mrc_fit_is_cross_validated(const mercer_fitting *self);
/* log_factors (c): of the weights of classes, whose shifts are -T times that; NULL: none. */
mercer_status mrc_temperature(mercer_context *context, double *out, const mercer_matrix *scores, const int32_t *labels,
                              const double *weights, const double *log_factors);

#endif
