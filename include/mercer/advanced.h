/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * advanced.h: the building blocks of fitting and prediction. The rules at the top of mercer.h hold here too.
 *
 *   1. kernel functions                   3. models      5. training
 *   2. kernel matrices and products       4. centers     6. fitting in steps
 *
 * Preprocessing, datasets and sources of samples are declared in samples.h, which this header includes.
 *
 * Stability: may change in a minor version; CHANGELOG.md lists every change.
 */
#ifndef MERCER_ADVANCED_H
#define MERCER_ADVANCED_H

#include "evaluation.h"
#include "samples.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mercer_context_info {
    size_t struct_size;
    const char *backend; /* name of the backend: "cpu", "cuda", ...; static storage */
    const char *isa;     /* instruction set of the CPU code; static storage */
    int threads;         /* number of worker threads */
    int64_t bytes_now;   /* bytes currently allocated */
    int64_t bytes_peak;  /* maximum of bytes_now so far */
    int device;          /* number of the context's GPU; -1: the context computes on the CPU */
    void *stream;        /* cudaStream_t that the context computes on, borrowed; NULL on the CPU */
    /* Parts of the time to create the context, in seconds: until the GPU was usable; to load and start cuBLAS and
       cuSOLVER. */
    double device_seconds, library_seconds;
} mercer_context_info;

/* Describes the context: the choices that were left to Mercer, and the memory in use. Errors: UNSUPPORTED (a `deferred`
   device cannot be used). */
MERCER_API mercer_status mercer_context_query(mercer_context *context, mercer_context_info *info);

/* Makes all later computations of the context wait for the work queued so far on a cudaStream_t of the caller (NULL
   or 1: the default stream; 2: the default stream of the calling thread). Call it before passing device memory that
   the stream may still be writing. Does not block the caller. No effect on a context that computes on the CPU. Errors:
   UNSUPPORTED (the stream does not exist). */
MERCER_API mercer_status mercer_context_wait(mercer_context *context, void *stream);

/* Returns the number of devices of a backend ("cuda"), which are numbered from 0; 1 for backends that compute on the
   CPU; 0 if the backend is not in this build, or has no device. Thread-safe. */
MERCER_API int mercer_device_count(const char *backend);
/* Returns the bytes of host memory that are free or easily freed; 1 GiB if the system does not report it.
   Thread-safe. */
MERCER_API int64_t mercer_free_memory(void);
/* Parses a size in bytes, at least 1: "64000", "500MB" (powers of 1000), "8G" or "8GiB" (powers of 1024). context may
   be NULL (then errors are in mercer_last_error(NULL)). Any other string fails with MERCER_ERROR_ARGUMENT. */
MERCER_API mercer_status mercer_parse_bytes(int64_t *bytes, mercer_context *context, const char *text);

/* ---- 1. Kernel functions -------------------------------------------------------------------------------------- */

/* Description of a built-in kernel function. Static strings. */
typedef struct mercer_kernel_info {
    size_t struct_size;
    const char *name;          /* name of the function */
    const char *example;       /* text that mercer_kernel_parse accepts, with values for all parameters */
    const char *parameters[6]; /* names of the parameters; NULL after the last */
} mercer_kernel_info;

/*
 * Describes built-in kernel function number `index`, from 0. Returns 1; 0 if there is no such function. Thread-safe.
 * The other functions whose names end with _list work in the same way:
 *
 *     mercer_kernel_info kernel = MERCER_INIT(mercer_kernel_info);
 *     for (int i = 0; mercer_kernel_list(&kernel, i); i++) puts(kernel.name);
 */
MERCER_API int mercer_kernel_list(mercer_kernel_info *out, int index);

/* ---- 2. Kernel matrices and products -------------------------------------------------------------------------- */

/*
 * X is (m, d), Z is (p, d), of any dtypes. K, Y, W and the diagonal D are f32 or f64. If any operand is f64, all
 * arithmetic is double; otherwise it is float, with exact integer distances if X and Z are both u8. Sums over centers
 * are accumulated in double between tiles. A row of the result does not depend on the other rows of X: a batch may be
 * split anywhere. Rows of X and Z that are equal get the exact kernel value (K(x, x) = 1 for functions of the
 * distance).
 *
 * All inputs must be finite, and the results of inner-product kernels must be within the range of the arithmetic.
 * Scratch memory is a few tiles per thread, never m x p. The output is unchanged after an error, except if a user
 * callback fails: then it may be partly written. Errors: KERNEL, SHAPE, DTYPE, OVERLAP, DATA, UNSUPPORTED (a kernel
 * that the backend does not have), CALLBACK.
 */

/* Computes the kernel matrix K = K(X, Z), (m, p). */
MERCER_API mercer_status mercer_kernel_eval(mercer_context *context, const mercer_matrix *K,
                                            const mercer_kernel *kernel, const mercer_matrix *X,
                                            const mercer_matrix *Z);

/* Computes Y = K(X, Z) W without forming K(X, Z). W is (p, c), Y is (m, c). With p = 0, Y becomes 0. */
MERCER_API mercer_status mercer_kernel_matmul(mercer_context *context, const mercer_matrix *Y,
                                              const mercer_kernel *kernel, const mercer_matrix *X,
                                              const mercer_matrix *Z, const mercer_matrix *W);

/* Computes D (m, 1), the diagonal K(x_i, x_i) of K(X, X). */
MERCER_API mercer_status mercer_kernel_diagonal(mercer_context *context, const mercer_matrix *D,
                                                const mercer_kernel *kernel, const mercer_matrix *X);

/* ---- 3. Models ------------------------------------------------------------------------------------------------ */

/*
 * Creates a model with zero weights. The centers (p, d), of any dtype, are copied and keep their dtype. `weights` is
 * the type of the weights and of the arithmetic of training: MERCER_F32, MERCER_F64, or 0: f64 if the centers are f64,
 * else f32. The context must outlive the model.
 *
 * comm: ranks that share the model (ranks.h); NULL: only this process. All ranks call this function, each with its own
 * share of the centers (mercer_comm_share). The communicator must outlive the model. Errors: KERNEL, SHAPE, DTYPE,
 * DATA, COMM.
 */
MERCER_API mercer_status mercer_model_create(mercer_model **out, mercer_context *context, mercer_comm *comm,
                                             const mercer_kernel *kernel, const mercer_matrix *centers, int64_t outputs,
                                             mercer_dtype weights);

/*
 * Sets the units of the targets: an offset and a scale (> 0) per output, (c) each. The model is then
 *     f_k(x) = offset_k + scale_k sum_j alpha_jk K(x, z_j)
 * and training fits the sum to (y - offset) / scale, computed in double. With the mean and the standard deviation of
 * the targets as offset and scale, targets may have any mean and unit. Losses are reported in the units of y. A new
 * model has offsets 0 and scales 1, which NULL restores. Set them before training, because they change the meaning of
 * the weights but not the weights. Copied; model files save them. Removes the transform g of a model that was fitted
 * with target_transform "log" or "rank", whose offsets and scales are those of g(y). Errors: DATA.
 */
MERCER_API mercer_status mercer_model_set_targets(mercer_model *model, const double *offset, const double *scale);

/* Computes the mean and the standard deviation, (c) each, of targets Y (n, c) f32 or f64, n > 0, with sample weights
   (n) or NULL: an offset and a scale for mercer_model_set_targets. The deviation of a constant target is set to 1;
   other deviations below 1e-150 are an error. Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_target_moments(mercer_context *context, double *mean, double *deviation,
                                               const mercer_matrix *Y, const double *weights);

/* Reads and checks a model file or checkpoint, and writes its JSON header as zero-terminated text. text, size and
   needed are as in mercer_kernel_print. Errors: MISSING, IO, FORMAT. */
MERCER_API mercer_status mercer_model_file_header(mercer_context *context, char *text, size_t size, size_t *needed,
                                                  const char *path);

/* Lists of names of a model. */
typedef enum mercer_names {
    MERCER_NAMES_LABELS = 1,   /* names of the classes, in the order of the outputs: one per output, or 2 for a single
                                  output */
    MERCER_NAMES_FEATURES = 2, /* names of the columns of samples, one per feature; without names, columns are matched
                                  by position. Names may repeat */
    MERCER_NAMES_TARGETS = 3   /* names of the target columns: one, or one per output */
} mercer_names;
/* Sets one of the lists of names to a copy of names (count); count 0: none. Model files save them. Errors: SHAPE. */
MERCER_API mercer_status mercer_model_set_names(mercer_model *model, mercer_names list, const char *const *names,
                                                int64_t count);
/*
 * Finds the model's features among the columns of a table, by name: columns[j], for each of the d features, receives
 * the index from 0 of feature j among `names` (count). Columns that the model does not use are ignored. A feature
 * without a column is MERCER_ERROR_MISMATCH; the message names it and the most similar column. If the model has no
 * names, or names is NULL, columns are matched by position, and count must be d. Errors: MISMATCH, SHAPE.
 */
MERCER_API mercer_status mercer_model_match(const mercer_model *model, int64_t *columns, const char *const *names,
                                            int64_t count);

/* Sets a note, any text of the caller, which model files save, for example a summary of the training run as JSON.
   Copied; NULL: none. */
MERCER_API mercer_status mercer_model_set_note(mercer_model *model, const char *note);
/* Sets the schema, which describes the table columns that samples are made of, as JSON (docs/tables.md). Copied; NULL:
   no schema, samples already are features. The schema must define as many features as the model has. Errors: FORMAT,
   SHAPE. */
MERCER_API mercer_status mercer_model_set_schema(mercer_model *model, const char *schema);

/* ---- 4. Centers ----------------------------------------------------------------------------------------------- */

typedef struct mercer_center_options {
    size_t struct_size;
    const char *method;          /* random, kmeans, rpcholesky, or balanced (over classes); NULL: random */
    uint64_t seed;               /* seed of the choice */
    const mercer_kernel *kernel; /* kernel of the model, borrowed: required by rpcholesky; kmeans rejects functions of a
                                    distance other than L2; NULL: none */
    const int32_t *labels;       /* balanced: (n) class numbers of X in 0 .. classes - 1, borrowed; NULL otherwise */
    int64_t classes;             /* balanced: number of classes */
    int64_t iterations;          /* kmeans: largest number of rounds; 0: automatic */
    int64_t batch;               /* kmeans: rows per mini-batch; 0: automatic, -1: all rows (Lloyd's algorithm) */
    int64_t memory;              /* memory limit in bytes; 0: half of the free memory */
    /* Progress: stage "centers", the k-means rounds or rpcholesky centers that are done, and the error so far. If it
       stops, k-means returns its current centers, and rpcholesky fails with MERCER_ERROR_CALLBACK. NULL: none. */
    mercer_progress_callback progress;
    void *progress_user;   /* passed to `progress` */
    mercer_comm *comm;     /* ranks that choose the centers together, from the same data; NULL: only this process */
    int64_t total_centers; /* > 0: number of centers on all ranks; `centers` is then this rank's share
                              (mercer_comm_share); 0: `centers` is all of them */
} mercer_center_options;

/* Chooses centers from the rows of X (n, d) and writes them to centers (p, d), p <= n, of any dtype; values are rounded
   if the centers are u8. report may be NULL. Errors: SHAPE, DTYPE, OVERLAP, DATA, KERNEL, CALLBACK, COMM. */
MERCER_API mercer_status mercer_choose_centers(mercer_context *context, const mercer_matrix *centers,
                                               const mercer_matrix *X, const mercer_center_options *options,
                                               mercer_center_report *report);
/* Chooses centers from the preprocessed rows of a dataset (preprocess NULL: unchanged rows). If the rows do not fit
   into the memory limit, the centers are chosen from a random subset. The method balanced uses the labels of the
   dataset. Errors: those of mercer_choose_centers; IO (as mercer_dataset_read). */
MERCER_API mercer_status mercer_choose_centers_from(mercer_dataset *dataset, const mercer_matrix *centers,
                                                    const mercer_preprocess *preprocess,
                                                    const mercer_center_options *options, mercer_center_report *report);

/* Finds, for each row of X (n, d), the nearest row of Z (p, d), p > 0 (for ties, the first one), by the distance that
   the kernel is a function of; kernel NULL: the L2 distance. nearest (n) receives its index. distances (n), which may
   be NULL, receives the distance, or without a kernel the squared L2 distance, which is exact for bytes. Errors: SHAPE,
   DTYPE, DATA, KERNEL. */
MERCER_API mercer_status mercer_nearest_rows(mercer_context *context, int32_t *nearest, double *distances,
                                             const mercer_kernel *kernel, const mercer_matrix *X,
                                             const mercer_matrix *Z);

/* Computes the median distance between rows of X (at most 2000 random ones), by the distance that the kernel is a
   function of; kernel NULL: the L2 distance. The median is a first guess of the bandwidth. Errors: SHAPE, DTYPE, DATA,
   KERNEL. */
MERCER_API mercer_status mercer_median_distance(mercer_context *context, double *out, const mercer_kernel *kernel,
                                                const mercer_matrix *X, uint64_t seed);

/* ---- 5. Training ---------------------------------------------------------------------------------------------- */

/* Kinds of solvers. */
typedef enum mercer_solver_kind {
    MERCER_SOLVER_NONE = 0,      /* no solver has that name */
    MERCER_SOLVER_DIRECT = 1,    /* solves a linear system once, without epochs */
    MERCER_SOLVER_STEPS = 2,     /* iterates with steps over all samples, which count as epochs */
    MERCER_SOLVER_BATCHES = 3,   /* iterates over batches of samples; the only kind for mercer_trainer_step */
    MERCER_SOLVER_ON_SAMPLES = 4 /* iterates over batches of samples; requires that the centers are the samples */
} mercer_solver_kind;
/* Returns the kind of the solver with that name. Thread-safe. */
MERCER_API mercer_solver_kind mercer_solver_kind_of(const char *name);

/* Description of a solver or projector. Static strings. */
typedef struct mercer_solver_info {
    size_t struct_size;
    const char *name;        /* name in options and plans */
    const char *description; /* one line of text */
    mercer_solver_kind kind; /* NONE for projectors */
} mercer_solver_info;

/* Describes solver number `index`, from 0; "auto" is not in the list. See mercer_kernel_list. */
MERCER_API int mercer_solver_list(mercer_solver_info *out, int index);
/* Describes projector number `index`, from 0. Some solvers use a projector to project updates onto the centers. See
   mercer_kernel_list. */
MERCER_API int mercer_projector_list(mercer_solver_info *out, int index);

/* Types of the options listed by mercer_train_option. */
typedef enum mercer_option_type {
    MERCER_OPTION_INTEGER = 1, /* int64_t */
    MERCER_OPTION_NUMBER = 2,  /* double */
    MERCER_OPTION_SWITCH = 3,  /* mercer_switch */
    MERCER_OPTION_NAME = 4     /* const char *: name of a solver or projector */
} mercer_option_type;
/* Description of a field of mercer_train_options that a user may set. The options of the command line and their help
   are generated from these descriptions. */
typedef struct mercer_option {
    size_t struct_size;
    const char *name;  /* name of the field */
    const char *alias; /* another name of the option; NULL: none */
    mercer_option_type type;
    size_t offset;     /* offset of the field in mercer_train_options, in bytes */
    const char *words; /* keyword for 0, or for 0 and -1: "auto", "auto|none"; NULL: no keywords, 0 is a number */
    double limit;      /* exclusive upper limit of the values; 0: no limit */
    const char *help;  /* help text: a phrase without a period */
} mercer_option;
/* Returns option `index`, from 0; NULL after the last. Static storage; thread-safe. */
MERCER_API const mercer_option *mercer_train_option(int index);

/* Value of `shards` that lets Mercer choose the number of shards by the number of centers: a power of two from 8 to
   1024. */
enum { MERCER_SHARDS_AUTO = -1 };

/* Sizes of a training run. */
typedef struct mercer_shape {
    size_t struct_size;
    int64_t samples, centers, features, outputs; /* n, p, d, c; at least 1 */
    mercer_dtype points;                         /* type of samples and centers; 0: f32 */
    mercer_dtype weights;                        /* type of the weights, f32 or f64; 0: f64 if `points` is f64, else
                                                    f32 */
    int shards;               /* shards of the centers (ranks.h), or MERCER_SHARDS_AUTO; 0: one, for a single process */
    mercer_switch on_samples; /* ON: the centers are the samples, each once, none with weight 0; otherwise unknown */
} mercer_shape;

/* Plans a training run from its sizes only, without a model. Errors: MEMORY, if no solver fits; SHAPE,
   DTYPE. */
MERCER_API mercer_status mercer_plan_shape(mercer_context *context, mercer_plan *out, const mercer_shape *shape,
                                           const mercer_train_options *options);

/* Speed of kernel products on a machine. Seconds are the best of a few runs. */
typedef struct mercer_speed {
    size_t struct_size;
    double product;                /* seconds for K(X, Z) W, with operands in the memory of the device that computes */
    double plain;                  /* seconds for X Z' without kernel values, by the backend's matrix library; 0: not
                                      supported */
    double to_device, from_device; /* bytes per second of copies to and from the device; 0: no device memory */
    double median;                 /* median instead of the best time for K(X, Z) W, in seconds */
} mercer_speed;

/* Measures products of a shape, for benchmarks: X (samples, features), Z (centers, features), W (centers, outputs).
   Errors: KERNEL, SHAPE, DTYPE, UNSUPPORTED. */
MERCER_API mercer_status mercer_measure_speed(mercer_context *context, mercer_speed *out, const mercer_kernel *kernel,
                                              const mercer_shape *shape);

/* Trains the weights of a model. */
typedef struct mercer_trainer mercer_trainer;

/* Creates a trainer. The model and comm must outlive the trainer. comm NULL: the model's communicator; if the model has
   none, a single rank. Training starts from the weights of the model: weights other than 0 are a warm start. Options
   with invalid names or numbers are an error here, before any computation. Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_trainer_create(mercer_trainer **out, mercer_model *model, mercer_comm *comm,
                                               const mercer_train_options *options);
/* Releases a trainer. Reports of its fits stay valid. */
MERCER_API void mercer_trainer_free(mercer_trainer *trainer);

/*
 * Plans the next fit with that source; the fit then uses this plan. Solver, projector and epochs are final, with one
 * exception: a solver that auto chose and that breaks down numerically is replaced. Set-up may also refine the sizes of
 * batches. In both cases the report's plan has the new values, and its text has an additional line that begins with
 * "refined:" or "replaced:". All ranks must call it. Errors: MEMORY, if no solver fits; SHAPE, DTYPE, MISMATCH, COMM.
 */
MERCER_API mercer_status mercer_trainer_plan(mercer_trainer *trainer, mercer_plan *out, const mercer_source *source);

/*
 * Trains on a source and writes the weights into the model. report may be NULL. After an error the model has the
 * weights that it had before; weights never contain NaN. All ranks must call it. Errors: those of
 * mercer_trainer_plan; DATA, NUMERIC (training broke down), CALLBACK (the source or a kernel function failed), IO (a
 * required checkpoint could not be written), UNSUPPORTED.
 */
MERCER_API mercer_status mercer_trainer_fit(mercer_trainer *trainer, const mercer_source *source,
                                            mercer_report *report);

/*
 * Makes one step on a batch of the caller (streaming, partial fit): samples X (m, d), preprocessed, targets Y (m, c),
 * weights (m) or NULL. Requires a solver of the kind MERCER_SOLVER_BATCHES. The preconditioner is computed from the
 * rows of the first call, which should be a few hundred or more. The model's weights are up to date after each call
 * that ended with a projection, and after mercer_trainer_finish. Errors: SHAPE, DTYPE, DATA, NUMERIC, UNSUPPORTED (the
 * solver is not iterative), COMM.
 */
MERCER_API mercer_status mercer_trainer_step(mercer_trainer *trainer, const mercer_matrix *X, const mercer_matrix *Y,
                                             const double *weights);
/* Projects the pending steps and writes the weights into the model. Errors: NUMERIC, COMM. */
MERCER_API mercer_status mercer_trainer_finish(mercer_trainer *trainer);
/* Reports on the last fit, or on all calls of mercer_trainer_step so far. */
MERCER_API mercer_status mercer_trainer_report(mercer_trainer *trainer, mercer_report *report);

/*
 * Makes the next fit resume from a checkpoint. The weights become bitwise identical to those of a training run that was
 * never interrupted, on the same machine and version, with the same source and options; the number of threads may
 * differ. The model should have been loaded from the checkpoint, which is also a model file. Errors: MISSING, IO,
 * FORMAT, MISMATCH (options, sizes or centers differ). Differences that can be detected only during the fit are errors
 * of the fit.
 */
MERCER_API mercer_status mercer_trainer_resume(mercer_trainer *trainer, const char *path);
/*
 * Requests a checkpoint from a running fit, which writes it before its next step, or at its next opportunity, and
 * continues. May be called from a callback, from any thread, and for any rank. Errors: ARGUMENT (options.checkpoint is
 * not set), with the message in mercer_last_error(NULL). A failure to write the file is only a warning.
 */
MERCER_API mercer_status mercer_trainer_checkpoint(mercer_trainer *trainer);

/* Copies the eigenvalues of K(X_s, X_s) / s from which the preconditioner of the last fit was computed: the largest
   q + 1, descending. Writes up to `capacity` of them to values (capacity); *count (may be NULL) receives their total
   number, 0 for solvers without a preconditioner. */
MERCER_API mercer_status mercer_trainer_spectrum(const mercer_trainer *trainer, double *values, int64_t capacity,
                                                 int64_t *count);

/* ---- 6. Fitting in steps -------------------------------------------------------------------------------------- */

/*
 * mercer_fit in steps, so that the plan can be inspected before training starts. Errors of all steps: those of
 * mercer_fit.
 */
typedef struct mercer_fitting mercer_fitting;
/* Opens a fit: merges equal samples and holds out validation rows. The data, and everything that the options point to,
   must outlive the fitting. */
MERCER_API mercer_status mercer_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                                             const mercer_fit_options *options);
/* Does everything up to the plan of training: search, kernel, centers. plan may be NULL. */
MERCER_API mercer_status mercer_fitting_prepare(mercer_fitting *fitting, mercer_plan *plan);
/* Does the remaining steps: training and calibration, and mercer_fitting_prepare if it was not called. report may be
   NULL. */
MERCER_API mercer_status mercer_fitting_run(mercer_fitting *fitting, mercer_fit_report *report);
/* Chooses the centers without planning the training. Call it instead of mercer_fitting_prepare. *centers becomes a view
   of all preprocessed centers, on every rank, borrowed from the fitting. */
MERCER_API mercer_status mercer_fitting_centers(mercer_fitting *fitting, mercer_matrix *centers);
/* Reports the results that exist so far. */
MERCER_API mercer_status mercer_fitting_query(const mercer_fitting *fitting, mercer_fit_report *report);

/* Parts of a fitting, borrowed from it; NULL until they exist. */
typedef struct mercer_fit_parts {
    size_t struct_size;
    mercer_dataset *train, *validation; /* training rows; validation rows */
    mercer_model *model;
    mercer_trainer *trainer;
    /* Evaluation of cross-validated predictions for the training rows: each row is predicted by a model with the same
       hyperparameters that was trained on other rows. NULL: there was no cross-validation (see
       mercer_fit_validation.score), and always before mercer_fitting_run. */
    const mercer_evaluation *scores;
} mercer_fit_parts;
/* Returns the parts of a fitting that exist so far. */
MERCER_API mercer_status mercer_fitting_parts(const mercer_fitting *fitting, mercer_fit_parts *out);

/* Decision of a fit: its value, the stage that made it, and the origin of the value. Strings are borrowed until the
   next call on the fitting. */
typedef struct mercer_decision {
    size_t struct_size;
    const char *stage;  /* samples, effort, search, kernel, size, centers, plan, train or calibrate */
    const char *name;   /* name of the value: kernel, ridge, centers, ... */
    const char *origin; /* given, default, data, search, resumed, or budget: chosen to fit the time budget */
    const char *value;  /* value as text, for programs */
    const char *text;   /* explanation for users, one line of the plan's text; "" for none */
} mercer_decision;
/* Sets *out to decision `index`, counted from 0 in the order in which they were made, and *exists to 1. If index is
   beyond the last decision, *exists is set to 0. */
MERCER_API mercer_status mercer_fitting_decision(const mercer_fitting *fitting, int index, mercer_decision *out,
                                                 int *exists);
/* Passes ownership of the model to the caller and releases the trainer. Requires mercer_fitting_prepare or _run. */
MERCER_API mercer_status mercer_fitting_take_model(mercer_fitting *fitting, mercer_model **out);
/* Releases a fitting and, unless it was taken, its model. */
MERCER_API void mercer_fitting_free(mercer_fitting *fitting);

/* Checks everything in the options that can be checked without data. context may be NULL (then errors are in
   mercer_last_error(NULL)). Errors: KERNEL, DTYPE. */
MERCER_API mercer_status mercer_fit_check(mercer_context *context, const mercer_fit_options *options);
/* Plans a fit from a description of the data (rows, features, outputs, dtype, task, format, mapped, bytes), without
   reading data. The report (may be NULL) receives the number of centers and, if they do not fit into memory, the
   largest number that fits. Errors: SHAPE, KERNEL. */
MERCER_API mercer_status mercer_fit_plan(mercer_context *context, mercer_plan *out, const mercer_dataset_info *data,
                                         const mercer_fit_options *options, mercer_fit_report *report);

#ifdef __cplusplus
}
#endif
#endif
