/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fit: from a dataset to a trained model, as a list of stages (stages.c). All stages read one request (request.c), the
 * caller's options, which are checked once and never written. They write their decisions with their origins to one
 * record (record.c), from which the plan's lines, the report and the note are made.
 *
 *   samples    samples.c, class_weights.c, target_units.c     size     fit_centers.c, ridge.c
 *   search     hyperparameters.c                              centers  fit_centers.c
 *   kernel     fit_kernel.c                                   plan     budget.c, fit_train.c
 *   calibrate  calibrate.c                                    train    fit_train.c, fit_members.c
 *
 * fit_checkpoint.c saves and restores the state of the running stage.
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

/* Largest table that is cross-validated for calibration and score. Three more models take too long with more rows. */
enum { MRC_CROSS_VALIDATED_ROWS = 5000 };

/* ---- Request ----------------------------------------------------------------------------------------------------- */

/* The caller's options. `train` replaces options.train: a copy with the seed and the progress callback of the fit. */
typedef struct mrc_fit_request {
    mercer_fit_options options;
    mercer_train_options train;
} mrc_fit_request;

/* request.c: checks everything that can be checked without data. */
mercer_status mrc_fit_check_request(mercer_context *context, mrc_fit_request *request);
/* Returns whether the caller asked for a fit without ridge (-1). An option of 0 lets the fit choose the ridge. */
bool mrc_fit_has_no_ridge(const mrc_fit_request *request);

/* ---- Record ------------------------------------------------------------------------------------------------------ */

/* Origin of a value. */
typedef enum mrc_origin {
    MRC_DEFAULT,
    MRC_GIVEN,
    MRC_FROM_DATA,
    MRC_FROM_SEARCH,
    MRC_RESUMED,
    MRC_FROM_BUDGET
} mrc_origin;

enum { MRC_DECISIONS = 32, MRC_DECISION_CHARS = 256, MRC_SEARCH_TEXT = 512 };

typedef struct mrc_decision {
    const char *stage, *name; /* static strings */
    mrc_origin origin;
    char value[MERCER_KERNEL_TEXT]; /* machine-readable value */
    char text[MRC_DECISION_CHARS];  /* line in the plan; "": none */
} mrc_decision;

typedef struct mrc_fit_record {
    int effort;             /* 1 to 5; 0: not chosen yet */
    int64_t centers;        /* number of centers; 0: not chosen yet, -1: all rows */
    double ridge;           /* 0: not chosen yet, or no ridge */
    mercer_switch converge; /* converge option of the trainer */
    const char *resumes;    /* path of the checkpoint that training resumes from; NULL: none (stage effort) */
    mrc_decision decisions[MRC_DECISIONS];
    int decision_count;
} mrc_fit_record;

/* ---- A fit ------------------------------------------------------------------------------------------------------- */

struct mercer_fitting {
    mercer_context *context;
    const mrc_fit_request *request;    /* owned */
    const mercer_fit_options *options; /* options of the request */
    mrc_fit_record record;
    int stage;           /* next stage to run */
    bool failed;         /* a stage failed: the fit cannot continue */
    bool untrained;      /* only centers or a plan are made, for a new model: a given model or checkpoint is not used */
    bool on_device;      /* training uses device memory */
    int64_t memory;      /* host memory budget of the whole fit, in bytes */
    int64_t device_each; /* bytes for training per rank if several ranks train on devices, else 0 */

    /* Results of the stages, each set by one stage and used by later ones. */
    double *class_factors;                 /* (classes) weights of classes, owned; NULL: none */
    int64_t given_rows;                    /* rows of the data, before any are merged or held out */
    mercer_dataset_info info;              /* description of the training rows */
    mercer_dataset *data, *validation;     /* training rows; validation rows, given or held out, or NULL; borrowed */
    mercer_dataset *merged, *rest, *aside; /* owned, or NULL; `data` and `validation` may point to them */
    /* owned, or NULL: datasets with class weights, from which the datasets above are made */
    mercer_dataset *weighted, *weighted_validation;
    /* validation rows are scored during training, not only at its end */
    bool watched;

    mrc_units units;                  /* transform of the targets, from the training rows, owned */
    mercer_preprocess *preprocess;    /* fitted, owned; NULL: `applied` is the model's */
    const mercer_preprocess *applied; /* preprocessing of the samples: `preprocess`, or the preprocessing of an existing
                                         model */
    mercer_kernel kernel;             /* kernel of the model */

    double opened, deadline; /* start and deadline on the clock of mrc_seconds; deadline 0: none */
    bool late;               /* the deadline stopped training */
    double rate;             /* measured flops per second in double; 0: not measured yet */
    bool searches;           /* hyperparameters are searched, or were searched before the checkpoint was written */
    mrc_search_state search; /* owned */
    char search_found[MRC_SEARCH_TEXT]; /* description of the search in the checkpoint */
    const mrc_search_task *search_task; /* task of the running search, else NULL */
    double search_saved;                /* time of the search's last checkpoint */
    mercer_matrix journal;              /* view of the search's journal */
    const mercer_fitting *outer;    /* calibration: fit whose kernel and preprocessing this one reuses; NULL: none */
    const mercer_fitting *ensemble; /* fit of an averaged model that this fit is a member of; NULL: none */
    int64_t number;                 /* index of this member */
    mercer_fitting *members[MERCER_MEMBERS]; /* fits of the members after the first; owned */

    mercer_evaluation *scores; /* evaluation of cross-validated predictions, owned; NULL: none */
    double spread;             /* bandwidth divided by the median distance between rows; 0: unknown */
    bool centers_are_rows; /* center i is row i, in the same type, for all rows, and every row has a positive weight */
    mercer_matrix centers; /* centers of this rank, owned until the model has copied them */
    mercer_model *model;
    bool model_borrowed; /* the caller owns the model */
    bool model_exists;   /* the model was given, or read from the checkpoint */
    mercer_source source;
    mercer_matrix validation_x, validation_y; /* preprocessed validation rows and their targets, owned */
    const double *validation_weights;
    mercer_trainer *trainer;
    mercer_plan *plan; /* plan after preparation, owned; NULL before */
    mercer_report training;
    mercer_search_report search_report;
    mercer_center_report choice;
    mercer_fit_report report;
};

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

/* stages.c: opens a fit with a checked request, which is copied, and runs the first stage. */
mercer_status mrc_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                               const mrc_fit_request *request);
/* Run the stages up to and including the plan. */
mercer_status mrc_fitting_prepare(mercer_fitting *self);
/* Run all stages. */
mercer_status mrc_fitting_run(mercer_fitting *self);
/* Run the stages up to and including the centers, for a caller that trains nothing: every rank gets all centers. */
mercer_status mrc_fitting_centers(mercer_fitting *self);
/* Plans a fit from the sizes in `info`, without data. */
mercer_status mrc_fit_plan_sizes(mercer_fitting *self, mercer_plan *plan);

/* The stages; the table at the top of this file lists the files of each. */
mercer_status mrc_stage_samples(mercer_fitting *self);
mercer_status mrc_stage_effort(mercer_fitting *self);
mercer_status mrc_stage_search(mercer_fitting *self);
mercer_status mrc_stage_kernel(mercer_fitting *self);
mercer_status mrc_stage_size(mercer_fitting *self);
mercer_status mrc_stage_centers(mercer_fitting *self);
mercer_status mrc_stage_plan(mercer_fitting *self);
mercer_status mrc_stage_train(mercer_fitting *self);
mercer_status mrc_stage_calibrate(mercer_fitting *self);

/* record.c: start the record with the values of the request. */
void mrc_fit_start_record(mercer_fitting *self);
/* Adds a decision with a formatted value, or replaces the decision of the same stage and name. mrc_fit_explain sets its
   line in the plan. */
void mrc_fit_decide(mercer_fitting *self, const char *stage, const char *name, mrc_origin origin, const char *format,
                    ...) MRC_PRINTF(5, 6);
void mrc_fit_explain(mercer_fitting *self, const char *stage, const char *name, const char *format, ...)
    MRC_PRINTF(4, 5);
/* hyperparameters.c and fit_centers.c: record the decisions of the stages search, size and centers. */
void mrc_fit_record_search(mercer_fitting *self);
void mrc_fit_record_size(mercer_fitting *self);
void mrc_fit_record_centers(mercer_fitting *self);
/* Inserts the lines of the record at the beginning of a plan's text. */
void mrc_fit_add_lines(const mercer_fitting *self, mercer_plan *plan);
const char *mrc_origin_name(mrc_origin origin);
/* Returns the origin of a value: GIVEN or RESUMED if the value comes with an existing model. In other cases returns
   GIVEN if `given` is true, or else `otherwise`. */
mrc_origin mrc_fit_origin(const mercer_fitting *self, bool given, mrc_origin otherwise);
/* Fills the caller's report. */
void mrc_fitting_fill(const mercer_fitting *self, mercer_fit_report *report);
/* Stores a summary of the training in the model's note. */
mercer_status mrc_fit_write_note(const mercer_fitting *self);
/* Reads ridge and total weight of the samples from the note of a fit. Returns false if the model has no such note. */
bool mrc_fit_read_note(const mercer_model *model, double *ridge, double *weight);

/* fit_train.c: returns the trainer's options, completed by the decisions of the record. */
mercer_train_options mrc_fit_train_options(const mercer_fitting *self);
/* Adds the lines of the record, and the time for the other members of an averaged model, to a plan. */
void mrc_fit_complete_plan(mercer_fitting *self, mercer_plan *plan);

/* class_weights.c: replaces `data` and `validation` by copies whose row weights include the class weights. */
mercer_status mrc_fit_weigh_classes(mercer_fitting *self);
bool mrc_fit_weighs_classes(const mercer_fit_options *options);
/* Returns whether probabilities are shifted back to the population although the classes are weighted. */
bool mrc_fit_shifts_classes(const mercer_fitting *self);
/* Returns the row weights for calibration, without class weights unless calibrate_to asks for them. */
mercer_status mrc_fit_population_weights(const mercer_fitting *self, const mercer_dataset *dataset, mrc_scope *scope,
                                         const double **out);
/* Computes the shift (classes) of the scores at a temperature; 0 without class weights. */
void mrc_fit_class_shift(const mercer_fitting *self, double temperature, double *shift);

/* samples.c */
/* Returns whether equal samples are merged: unless the option is off, or a comparison of the rows would take too
   long. */
bool mrc_fit_merges(const mercer_fitting *self);
/* Finds the first row of each set of rows with equal features. *rows (*count): these row numbers, ascending; owned by
   the scope. */
mercer_status mrc_fit_distinct_rows(mrc_scope *scope, const mercer_dataset *data, int64_t **rows, int64_t *count);

/* Returns the total weight of the samples. */
double mrc_fit_count_samples(const mercer_dataset *data);

/* fit_kernel.c: checks that an existing model matches the data and the options. */
mercer_status mrc_fit_check_model(mercer_fitting *self);
mercer_status mrc_fit_open_stream(mercer_fitting *self, uint64_t seed, int64_t samples, mercer_source *source);
mercer_status mrc_fit_create_model(mercer_fitting *self);
mercer_status mrc_fit_read_validation(mercer_fitting *self);
/* Predicts the type of the preprocessed samples, without reading them. */
mercer_dtype mrc_fit_points(const mercer_fit_options *options, const mercer_dataset_info *info);
/* Returns the preprocessing that the options select for these data. */
const char *mrc_fit_preprocess(const mercer_fit_options *options, const mercer_dataset_info *info);

/* Parses the kernel of the options. Sets *open to whether its specification has no bandwidth, so that `bandwidth` is
   used. */
mercer_status mrc_fit_parse_kernel(const mercer_fit_options *options, mercer_context *context, double bandwidth,
                                   mercer_kernel *out, bool *open);
/* Adds a metric to the preprocessing as its last step: weights, or for norm 2 also a matrix M. */
mercer_status mrc_fit_set_metric(mercer_context *context, mercer_preprocess *preprocess, const mercer_kernel *kernel,
                                 const mercer_matrix *metric, int64_t features);
/* Returns the reason why a fit does not search hyperparameters; NULL: the fit searches, if it has enough rows. */
const char *mrc_fit_search_skipped(const mercer_fit_options *options, const mercer_dataset_info *info, int64_t memory);
/* Returns the number of columns of preprocessed samples in training. */
int64_t mrc_fit_width(const mercer_fitting *self);

/* hyperparameters.c: returns whether the caller set the bandwidth. */
bool mrc_fit_has_bandwidth(const mercer_fit_options *options);
/* hyperparameters.c: returns whether the caller asked for a search. */
bool mrc_fit_asks_for_search(const mercer_fit_options *options);
/* Returns the number of centers of the effort level. */
int64_t mrc_fit_default_centers(const mercer_fitting *self);

/* fit_checkpoint.c: checks that a search in the checkpoint, if there is one, has the options of this search. Makes the
   task save its state as the checkpoint options of training request. */
mercer_status mrc_fit_open_search_state(mercer_fitting *self, mrc_search_task *task);
/* Restores effort and results from a checkpoint. Sets *searching to whether it was written during a search, whose state
   is restored. A checkpoint of a training run has the ridge and the results of the search. */
mercer_status mrc_fit_open_checkpoint(mercer_fitting *self, const char *path, bool *searching);
/* Sets the model's record, which checkpoints store. */
mercer_status mrc_fit_set_record(const mercer_fitting *self);

/* target_units.c: determine the transform of the targets from the training rows; store it in the model. */
mercer_status mrc_fit_find_units(mercer_fitting *self);
mercer_status mrc_fit_set_units(mercer_fitting *self);

/* ridge.c: sets record.ridge unless it is given or restored from a checkpoint: the result of the search, the ridge of
   the model's note, or a search by the error on held-out rows. No other function chooses the ridge. */
mercer_status mrc_fit_choose_ridge(mercer_fitting *self);

/* fit_centers.c: sets record.centers and record.converge of a fit that searches, unless they are given. */
mercer_status mrc_fit_choose_size(mercer_fitting *self);
/* Chooses the centers: this rank's share if `shared`, else all of them on every rank. */
mercer_status mrc_fit_choose_centers(mercer_fitting *self, bool shared);
bool mrc_fit_is_augmented(const mercer_fit_options *options);
int64_t mrc_fit_center_count(const mercer_fitting *self);
const char *mrc_fit_center_method(const mercer_fitting *self); /* "given", "all", or the name of a method */
/* Returns whether the centers are the samples and every sample has a positive weight. */
bool mrc_fit_all_rows_count(const mercer_fitting *self);

/* budget.c */
mercer_status mrc_fit_find_memory(mercer_fitting *self);
/* Returns the bytes left for training p centers (see the formula in budget.c). They are computed from sizes only, so
   that a resumed run gets the same value. */
int64_t mrc_fit_memory_left(const mercer_fitting *self, int64_t p);
int64_t mrc_fit_validation_rows(const mercer_fitting *self);
mercer_dtype mrc_fit_target_type(const mercer_fitting *self);
/* Plans a training run with p centers in the remaining memory. Fails if they do not fit; the message and
   report.largest_centers then give the largest number that fits. plan may be NULL. */
mercer_status mrc_fit_plan(mercer_fitting *self, int64_t p, mercer_plan *plan);
/* Returns whether p centers fit, and then sets *plan. */
bool mrc_fit_try_plan(const mercer_fitting *self, int64_t p, mercer_plan *plan);

/* fit_members.c: returns the number of models to average at this effort. */
int64_t mrc_fit_member_count(const mercer_fitting *self);
/* Trains the members after the first, as many as the deadline allows, and adds them to the model. */
mercer_status mrc_fit_train_members(mercer_fitting *self);

/* hyperparameters.c: predicts the total seconds of a fit when its training is planned. */
void mrc_fit_predict(mercer_fitting *self, const mercer_plan *plan);
/* Returns whether calibration or score are determined by cross-validation, which trains three more models. */
bool mrc_fit_is_cross_validated(const mercer_fitting *self);
/* Finds the temperature and curvature that minimize the log loss of the labels. log_factors (c): logarithms of the
   class weights, by which logits are shifted; NULL: none. */
mercer_status mrc_calibrate(mercer_context *context, double *temperature, double *curvature,
                            const mercer_matrix *scores, const int32_t *labels, const double *weights,
                            const double *log_factors);

#endif
