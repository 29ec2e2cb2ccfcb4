/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * advanced.h: the parts that fitting and predicting are made of. The rules at the top of mercer.h hold here too.
 *
 *   1. kernel functions                   3. models      5. training
 *   2. kernel matrices and products       4. centers     6. fitting in steps
 *
 * Preprocessing, datasets and sources of samples are in samples.h, which this header includes.
 */
#ifndef MERCER_ADVANCED_H
#define MERCER_ADVANCED_H

#include "samples.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context's memory comes from these two functions. `allocate` returns memory aligned to `alignment` (a power of two),
   or NULL; `release` gets what `allocate` returned, never NULL. Both are called only from the thread that is inside a
   Mercer call, never from its worker threads. */
struct mercer_allocator {
    size_t struct_size;
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
};

typedef struct mercer_context_info {
    size_t struct_size;
    const char *backend; /* static */
    const char *isa;     /* static */
    int threads;
    int64_t bytes_now;  /* held through the allocator at this moment */
    int64_t bytes_peak; /* the most that was ever held */
    int device;         /* the number of its GPU; -1: it computes on the processor */
    void *stream;       /* of a GPU: the cudaStream_t that its work goes to, borrowed; NULL: none */
    /* Seconds that making the context took: until its GPU could be used, and to load and start cuBLAS and cuSOLVER. */
    double device_seconds, library_seconds;
} mercer_context_info;

/* What the context decided and what it uses. */
MERCER_API mercer_status mercer_context_query(mercer_context *context, mercer_context_info *info);

/* What has been queued on this cudaStream_t so far (NULL and 1: the default stream, 2: that of the calling thread)
   happens before all that the context computes from now on: call it before handing over what the stream still writes.
   On a context that computes on the processor it does nothing. Errors: UNSUPPORTED (a stream that is not there). */
MERCER_API mercer_status mercer_context_wait(mercer_context *context, void *stream);

/* How many devices "cuda" has here, numbered from 0; 1 for a backend that computes on the processor; 0: it is not in
   this build, or there is none. Any thread. */
MERCER_API int mercer_device_count(const char *backend);
/* Bytes of host memory that are free or easily freed; a guess of 1 GiB where the system does not say. Any thread. */
MERCER_API int64_t mercer_free_memory(void);
/* Bytes of a text, at least 1: "500MB", "8G" or "8GiB" (powers of 1024, but of 1000 with B alone), "64000". The context
   keeps the message of a text that is no size; NULL: this thread does. */
MERCER_API mercer_status mercer_parse_bytes(int64_t *bytes, mercer_context *context, const char *text);

/* ---- 1. Kernel functions -------------------------------------------------------------------------------------- */

/* The kernel functions, 0 .. count - 1: the name, a text that is read as one, the names of its parameters, 0, 1, ...
   until NULL. NULL for numbers outside. Static storage; any thread. The other lists are alike. */
MERCER_API int mercer_kernel_count(void);
MERCER_API const char *mercer_kernel_name(int index);
MERCER_API const char *mercer_kernel_example(int index);
MERCER_API const char *mercer_kernel_parameter(int index, int parameter);

typedef enum mercer_kernel_id {
    MERCER_KERNEL_CALLBACK_DISTANCE = 100, /* user function of |x - z|, or of (sum |x_k - z_k|^p)^(1/p) */
    MERCER_KERNEL_CALLBACK_INNER = 101     /* user function of x.z, |x|^2 and |z|^2 */
} mercer_kernel_id;

/* A block of a kernel matrix handed to a user function: rows belong to X, columns to Z. */
typedef struct mercer_kernel_block {
    size_t struct_size; /* set by Mercer */
    int64_t rows;
    int64_t cols;
    int64_t ld;
    double *values;          /* (rows, ld): in, distances or inner products; out, kernel values */
    const double *x_sqnorms; /* (rows) |x|^2; NULL for a function of the distance */
    const double *z_sqnorms; /* (cols) |z|^2; NULL for a function of the distance */
} mercer_kernel_block;

/*
 * Replaces the block's values by kernel values; returns 0, or anything else to make the call fail with
 * MERCER_ERROR_CALLBACK. It may be called from several threads at once and must be symmetric in x and z.
 */
typedef int (*mercer_kernel_callback)(void *user, const mercer_kernel_block *block);

/* A kernel function: plain data, may be copied. Filled by the two functions below. Frozen layout. */
struct mercer_kernel {
    int32_t id;     /* which of the list; mercer_kernel_id for one of the user's */
    int32_t degree; /* polynomial */
    int32_t depth;  /* ntk, nngp */
    int32_t reserved0;
    double bandwidth; /* functions of the distance */
    double gamma;     /* exppower, exppower-l1 */
    double alpha;     /* rational-quadratic */
    double scale;     /* polynomial */
    double offset;    /* polynomial */
    double bias;      /* ntk, nngp */
    mercer_kernel_callback callback;
    void *callback_user;
    double p; /* lpq; of a user's function of the distance: the norm of that distance, 0 for 2 */
    double q; /* lpq */
    int64_t reserved[2];
};

/* Reads "laplace:bandwidth=10". The message of a failure says what is valid. context may be NULL (then:
   mercer_last_error(NULL)). Errors: KERNEL. */
MERCER_API mercer_status mercer_kernel_parse(mercer_kernel *out, mercer_context *context, const char *spec);

/*
 * Writes the text that mercer_kernel_parse reads back to the same kernel, zero-terminated, into text (size bytes).
 * *needed, if not NULL, gets the bytes it takes with its zero; if that exceeds size the call fails with
 * MERCER_ERROR_ARGUMENT and leaves text alone. text may be NULL when size is 0. Errors: KERNEL.
 */
MERCER_API mercer_status mercer_kernel_print(mercer_context *context, char *text, size_t size, size_t *needed,
                                             const mercer_kernel *kernel);

/* A kernel given by a function of the caller's; on is MERCER_KERNEL_CALLBACK_DISTANCE or ..._INNER. */
MERCER_API mercer_status mercer_kernel_from_callback(mercer_kernel *out, mercer_context *context, mercer_kernel_id on,
                                                     mercer_kernel_callback callback, void *user);

/* K(x, z) of two rows of d doubles by the scalar double reference: the definition all fast code is compared
   with. Errors: KERNEL, SHAPE, DATA, CALLBACK. */
MERCER_API mercer_status mercer_kernel_value(mercer_context *context, double *out, const mercer_kernel *kernel,
                                             int64_t d, const double *x, const double *z);

/* ---- 2. Kernel matrices and products -------------------------------------------------------------------------- */

/*
 * X is (m, d), Z is (p, d), of any dtypes. K, Y, W and the diagonal are f32 or f64. If any operand is f64, all
 * arithmetic is double; otherwise it is float, with exact integer distances where X and Z are both u8. Sums over
 * centers are carried in double between tiles. A row of the result does not depend on the other rows of X: a batch
 * may be split anywhere. Rows that coincide get the exact kernel value (K(x, x) = 1 for functions of the distance).
 *
 * All inputs must be finite, and products of inner-product kernels within the range of the arithmetic. Memory beyond
 * the arguments is a few tiles for each thread, never m x p. Only a user callback that fails midway leaves a part of
 * the output written. Errors: KERNEL, SHAPE, DTYPE, OVERLAP, DATA, UNSUPPORTED (a kernel that the backend has not),
 * CALLBACK.
 */

/* K = K(X, Z), K is (m, p). */
MERCER_API mercer_status mercer_kernel_eval(mercer_context *context, const mercer_matrix *K,
                                            const mercer_kernel *kernel, const mercer_matrix *X,
                                            const mercer_matrix *Z);

/* Y = K(X, Z) W without forming K(X, Z). W is (p, c), Y is (m, c). With p = 0, Y becomes 0. */
MERCER_API mercer_status mercer_kernel_matmul(mercer_context *context, const mercer_matrix *Y,
                                              const mercer_kernel *kernel, const mercer_matrix *X,
                                              const mercer_matrix *Z, const mercer_matrix *W);

/* D = the diagonal K(x_i, x_i), D is (m, 1). */
MERCER_API mercer_status mercer_kernel_diagonal(mercer_context *context, const mercer_matrix *D,
                                                const mercer_kernel *kernel, const mercer_matrix *X);

/* ---- 3. Models ------------------------------------------------------------------------------------------------ */

/*
 * Makes a model with weights 0. The centers (p, d), of any dtype, are copied and keep their dtype. `weights` is the
 * type of the weights and of training: MERCER_F32, MERCER_F64, or 0 to choose (f64 if the centers are f64). The
 * context must outlive the model. Errors: KERNEL, SHAPE, DTYPE, DATA.
 */
MERCER_API mercer_status mercer_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                                             const mercer_matrix *centers, int64_t outputs, mercer_dtype weights);

/* Its parts, valid as long as the model; weights may be read, and written between calls. */
MERCER_API const mercer_kernel *mercer_model_kernel(const mercer_model *model);
MERCER_API mercer_matrix mercer_model_centers(const mercer_model *model);
MERCER_API mercer_matrix mercer_model_weights(const mercer_model *model);
/* One of the models that the model is the mean of: number 0 has its kernel, centers
   and weights, further ones their own; borrowed, to be looked at. NULL: there is none of that number. */
MERCER_API const mercer_model *mercer_model_member(const mercer_model *model, int64_t number);

/* Columns that samples have: those of the centers, unless a metric (samples.h) maps samples to fewer. */
MERCER_API int64_t mercer_model_features(const mercer_model *model);

/*
 * The units of the targets. A model with an offset and a scale (> 0) for each output is
 *     f_k(x) = offset_k + scale_k sum_j alpha_jk K(x, z_j)
 * and training fits the sum to (y - offset) / scale, computed in double: with mean and standard deviation as offset
 * and scale a target may lie anywhere, and be in any unit. Losses are reported in the units of y. A model begins
 * without: 0 and 1. Set them before training: they change what the weights mean, not the weights. NULL: 0, or 1.
 * Copied; model files keep them. Errors: DATA.
 */
MERCER_API mercer_status mercer_model_set_targets(mercer_model *model, const double *offset, const double *scale);
/* (c), until the next call that sets them; both NULL if the model has none. */
MERCER_API const double *mercer_model_target_offset(const mercer_model *model);
MERCER_API const double *mercer_model_target_scale(const mercer_model *model);

/*
 * Beside offset and scale, which are then those of g(y), a monotone function g of the targets: predictions are turned
 * back by it, losses are those of g(y). log: g(y) = log(y + shift), numbers (c, 1) are the shifts. rank: normal
 * quantiles of the ranks, numbers (2 c, k) are k values and their quantiles, rows 2 j and 2 j + 1 for output j, both
 * ascending; between them g is linear, beyond them constant. Copied; model files keep it; mercer_model_set_targets
 * drops it. Errors: SHAPE, DTYPE, DATA.
 */
MERCER_API mercer_status mercer_model_set_target_curve(mercer_model *model, const char *name,
                                                       const mercer_matrix *numbers);
/* Its name; NULL without. Static storage. */
MERCER_API const char *mercer_model_target_curve(const mercer_model *model);

/* Mean and standard deviation (c each) of targets Y (n, c) f32 or f64, n > 0, with sample weights (n) or NULL: an
   offset and a scale for them. The deviation of a constant target is given as 1; one below 1e-150 is an error. Errors:
   SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_target_moments(mercer_context *context, double *mean, double *deviation,
                                               const mercer_matrix *Y, const double *weights);

/* The JSON header of a model file or checkpoint, checked, zero-terminated. Sizes as in mercer_kernel_print. Errors:
   MISSING, IO, FORMAT. */
MERCER_API mercer_status mercer_model_file_header(mercer_context *context, char *text, size_t size, size_t *needed,
                                                  const char *path);

/* The names of the classes, in the order of the outputs; copied. count is 0, or the model's number of outputs (2 names
   are allowed for a single output). Model files keep them. Errors: SHAPE. */
MERCER_API mercer_status mercer_model_set_labels(mercer_model *model, const char *const *labels, int64_t count);

/*
 * The names of the columns that samples had, in the order of the features; copied, kept in model files and checkpoints.
 * count is 0 (columns go by position), or the model's number of features. Names may repeat. Errors: SHAPE.
 */
MERCER_API mercer_status mercer_model_set_feature_names(mercer_model *model, const char *const *names, int64_t count);
/* NULL and *count = 0 if the model has none. count may be NULL. */
MERCER_API const char *const *mercer_model_feature_names(const mercer_model *model, int64_t *count);
/* The names of the columns that targets had: one, or as many as outputs; the same rules. */
MERCER_API mercer_status mercer_model_set_target_names(mercer_model *model, const char *const *names, int64_t count);
MERCER_API const char *const *mercer_model_target_names(const mercer_model *model, int64_t *count);
/*
 * Which columns of a table are the model's features: columns[j] (d), counted from 0, is that of feature j among the
 * `count` columns with these names. Columns that the model does not know are passed over; one that it needs and does
 * not find is MERCER_ERROR_MISMATCH, and the message names it and the nearest there is. Without names, of the model or
 * of the table (NULL), columns go by position and their number must be d. Errors: MISMATCH, SHAPE.
 */
MERCER_API mercer_status mercer_model_match(const mercer_model *model, int64_t *columns, const char *const *names,
                                            int64_t count);

/* A text of the caller's that the model file carries, for instance a summary of the training as JSON. Copied. */
MERCER_API mercer_status mercer_model_set_note(mercer_model *model, const char *note);
MERCER_API const char *mercer_model_note(const mercer_model *model); /* "" if there is none */
/* What the columns of a table are that samples are made of (docs/tables.md), copied; NULL: samples are features. It
   must make as many features as the model has. Errors: FORMAT, SHAPE. */
MERCER_API mercer_status mercer_model_set_schema(mercer_model *model, const char *schema);
/* Borrowed; NULL if there is none. */
MERCER_API const char *mercer_model_schema(const mercer_model *model);

/* ---- 4. Centers ----------------------------------------------------------------------------------------------- */

/* Called now and then; done and total in the same unit. Non-zero stops with what there is (kmeans). */
typedef int (*mercer_center_callback)(void *user, int64_t done, int64_t total, double error);

typedef struct mercer_center_options {
    size_t struct_size;
    const char *method; /* random, kmeans, rpcholesky, balanced; NULL: random */
    uint64_t seed;
    const mercer_kernel *kernel; /* of the model: rpcholesky needs it, kmeans refuses one of another distance than L2 */
    const int32_t *labels;       /* balanced: class numbers (n) of X */
    int64_t classes;
    int64_t iterations; /* kmeans: at most so many rounds; 0: chosen */
    int64_t batch;      /* kmeans: rows of a mini-batch; 0: chosen, -1: all (Lloyd) */
    int64_t memory;     /* bytes to hold at most; 0: half of what is free */
    mercer_center_callback progress;
    void *progress_user;
    mercer_comm *comm;     /* its ranks choose together, from the same data; NULL: this process alone */
    int64_t total_centers; /* > 0: `centers` is this rank's share of so many; 0: all of them */
} mercer_center_options;

typedef struct mercer_center_report {
    size_t struct_size;
    int64_t iterations; /* kmeans rounds */
    double error;       /* kmeans: mean squared distance to the nearest center; rpcholesky: share of the trace left */
    int64_t reseeded;   /* kmeans: empty clusters that got a new center */
    double seconds;
} mercer_center_report;

/* Fills centers (p, d), p <= n, from the rows of X (n, d). Values are rounded when the centers are u8. Errors: SHAPE,
   DTYPE, OVERLAP, DATA, KERNEL, CALLBACK, COMM. */
MERCER_API mercer_status mercer_choose_centers(mercer_context *context, const mercer_matrix *centers,
                                               const mercer_matrix *X, const mercer_center_options *options,
                                               mercer_center_report *report);
/* The same from a dataset, preprocessed; a random part of the rows serves where all would not fit the memory. Labels
   for `balanced` are the dataset's. The same errors. */
MERCER_API mercer_status mercer_choose_centers_from(mercer_dataset *dataset, const mercer_matrix *centers,
                                                    const mercer_preprocess *preprocess,
                                                    const mercer_center_options *options, mercer_center_report *report);

/* For every row of X (n, d) the nearest row of Z (p, d), p > 0, the first of equals: numbers (n), and squared distances
   (n) unless NULL. Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_nearest_rows(mercer_context *context, int32_t *nearest, double *sqdistances,
                                             const mercer_matrix *X, const mercer_matrix *Z);

/* The same with the distance that the kernel is a function of, in its norm; distances (n), not squared, unless NULL.
   Errors: SHAPE, DTYPE, DATA, KERNEL. */
MERCER_API mercer_status mercer_kernel_nearest_rows(mercer_context *context, int32_t *nearest, double *distances,
                                                    const mercer_kernel *kernel, const mercer_matrix *X,
                                                    const mercer_matrix *Z);

/* The median distance between rows of X (of a random part of at most 2000): a bandwidth to start from. Errors: SHAPE,
   DTYPE, DATA. */
MERCER_API mercer_status mercer_median_distance(mercer_context *context, double *out, const mercer_matrix *X,
                                                uint64_t seed);
/* The same with the distance that the kernel is a function of, in its norm. Errors: SHAPE, DTYPE, DATA, KERNEL. */
MERCER_API mercer_status mercer_kernel_median_distance(mercer_context *context, double *out,
                                                       const mercer_kernel *kernel, const mercer_matrix *X,
                                                       uint64_t seed);

/* ---- 5. Training ---------------------------------------------------------------------------------------------- */

/* The solvers, and the projectors that some of them use: how many, and of number 0 to count - 1 the name and a line
   that says what it is (NULL for any other number). "auto" is none of them. Static storage; any thread. */
MERCER_API int mercer_solver_count(void);
MERCER_API const char *mercer_solver_name(int index);
MERCER_API const char *mercer_solver_says(int index);
/* What kind of solver has that name. */
typedef enum mercer_solver_kind {
    MERCER_SOLVER_NONE = 0,      /* there is none of that name */
    MERCER_SOLVER_DIRECT = 1,    /* it solves once: there are no epochs */
    MERCER_SOLVER_STEPS = 2,     /* steps over all samples, which count as epochs */
    MERCER_SOLVER_BATCHES = 3,   /* epochs of batches; the only kind for mercer_trainer_step */
    MERCER_SOLVER_ON_SAMPLES = 4 /* epochs of batches; the centers are the samples */
} mercer_solver_kind;
MERCER_API mercer_solver_kind mercer_solver_kind_of(const char *name);
MERCER_API int mercer_projector_count(void);
MERCER_API const char *mercer_projector_name(int index);
MERCER_API const char *mercer_projector_says(int index);

enum { MERCER_PLAN_TEXT = 4096 };

/* What training will do and why. */
typedef struct mercer_plan {
    size_t struct_size;
    char solver[16], projector[16];
    int64_t epochs, batch, nystrom, eigenpairs, period;
    int64_t projector_nystrom, projector_eigenpairs, projector_passes, projector_block;
    int carry, average, decay; /* 0 or 1 */
    int cache_data;            /* K(X, Z) is kept: 1 as the weights, 2 in half precision */
    int cache_centers;         /* K(Z, Z) or its factor is kept: 1, or 2 in half precision */
    mercer_dtype precision;    /* of weights and kernel values */
    double step_factor, lambda;
    int64_t bytes;               /* planned peak, beyond the caller's data and the model */
    double flops, seconds;       /* estimates for the whole training */
    char text[MERCER_PLAN_TEXT]; /* every choice in words, one line each */
} mercer_plan;

/* Why a training ended. */
typedef enum mercer_stop {
    MERCER_STOP_FINISHED = 0, /* all epochs were done, or the solver had converged */
    MERCER_STOP_PATIENCE = 1, /* validation had not got better for long enough */
    MERCER_STOP_CALLBACK = 2, /* the progress callback said so */
    MERCER_STOP_BUDGET = 3    /* the time budget of the fit was used up */
} mercer_stop;

/* What training did. */
typedef struct mercer_report {
    size_t struct_size;
    const mercer_plan *plan; /* with all numbers as they were used; belongs to the model, until it is trained again */
    int64_t epochs, samples, steps, projections;
    double train_loss, train_accuracy;           /* means that count the sample weights; below, validation_weights */
    double validation_loss, validation_accuracy; /* of the returned weights; NaN without a validation set */
    double projection_residual_mean, projection_residual_last;
    double tail, beta; /* t = lambda_{q+1} and beta of the step rule */
    int64_t halvings;  /* times the watchdog rolled back and halved the step */
    mercer_stop stopped;
    /* Setup: eigensystems, factors. Forward: kernel values, predictions. Gradient: sums over the samples. Projection:
       onto the centers; for direct and cg, solves with their factors. */
    double seconds, setup_seconds, forward_seconds, gradient_seconds, projection_seconds, validation_seconds;
    double flops;       /* done, counted */
    int64_t peak_bytes; /* most memory held through the context, beyond what was held before */
} mercer_report;

/* How training goes: handed to the progress callback at the end of every epoch (or CG step), and on request. */
typedef struct mercer_progress {
    size_t struct_size;
    int64_t epoch;              /* passes done */
    int64_t epochs;             /* passes planned */
    int64_t samples;            /* samples seen */
    double seconds;             /* since the start of fit */
    double train_loss;          /* mean squared error over the pass, of the iterates as they were */
    double train_accuracy;      /* share of right labels among them; only if classification */
    double validation_loss;     /* NaN without a validation set */
    double validation_accuracy; /* NaN without, or if not classification */
    double projection_residual; /* relative residual the last projection left; 0 if none is needed */
    double step;                /* eta / m, the factor of the last step */
    int64_t pass_samples;       /* samples of the pass under way; 0 at the end of an epoch */
    int64_t pass_total;         /* samples in a pass */
    int64_t steps, projections; /* so far */
    const char *phase;          /* what set-up does now, "eigensystem" or such; NULL while samples are used. Only with
                                   progress_seconds > 0; losses are NaN then */
    double phase_share;         /* of that phase, done; negative: not known. The last one of set-up is "ready", 1 */
} mercer_progress;

/* Non-zero stops cleanly: the model keeps the best weights so far, a checkpoint is written if one is asked for, and fit
   returns MERCER_OK. */
typedef int (*mercer_progress_callback)(void *user, const mercer_progress *progress);

/* What is left open is chosen: mercer_plan tells how. */
struct mercer_train_options {
    size_t struct_size;
    const char *solver;    /* auto, or a mercer_solver_name */
    const char *projector; /* auto, or a mercer_projector_name */
    int64_t epochs;        /* passes over the samples; for cg, most steps (it stops at a relative gradient of 1e-4) */
    int64_t batch;         /* m */
    int64_t nystrom;       /* s, samples of the preconditioner */
    int64_t eigenpairs;    /* q; -1 for none */
    int64_t period;        /* T, batches between projections */
    int64_t projector_nystrom; /* the same two for the projector's own */
    int64_t projector_eigenpairs;
    int64_t projector_passes;   /* at most so many passes over K(Z, Z) in a projection */
    double projector_tolerance; /* stop a projection at this relative residual */
    int64_t projector_block;    /* centers in a block of bgs */
    mercer_switch carry;        /* add what a projection leaves over to the next */
    double step_factor;         /* gamma in (0, 1) of the step rule */
    double lambda;              /* ridge: + lambda alpha' K(Z,Z) alpha. 0: mercer_fit chooses it, a trainer has none;
                                   -1: none */
    mercer_switch average;      /* return the average of the later iterates */
    mercer_switch decay;        /* let the step fall in the later epochs */
    int64_t polish;             /* this many CG steps on the true objective at the end */
    uint64_t seed;
    int64_t memory;               /* bytes this training may hold, beyond the caller's data; 0: half of what is free */
    mercer_switch cache;          /* keep K(X,Z) if it fits */
    mercer_switch classification; /* outputs are one-hot classes: report accuracies */
    const mercer_matrix *validation_X; /* borrowed; both or neither */
    const mercer_matrix *validation_Y;
    int64_t patience; /* stop after so many epochs without a better validation result; 0: never */
    mercer_progress_callback progress;
    void *progress_user;
    double progress_seconds; /* > 0: called between steps too, when so many seconds have passed (validation is NaN), and
                                  while training is set up */
    const char *checkpoint;  /* file to write the state of training to, atomically; NULL: none */
    double checkpoint_seconds; /* within an epoch, after so long; 0: 600. Others: at the start, before an early end, and
                                  at the end of every epoch (step of cg), or of some, should they be shorter than a
                                  second */
    const char *checkpoint_note;      /* a text that the checkpoint carries; its model's note */
    const double *validation_weights; /* (rows of validation_X) >= 0, borrowed; NULL: all 1 */
    /* ON: auto takes a solver that goes on until weights are as good as exact: krr, direct, cg. Others are refused. */
    mercer_switch converge;
};

/* A field of mercer_train_options that a person may set. The program makes its options and their help of these rows. */
typedef enum mercer_option_type {
    MERCER_OPTION_INTEGER = 1, /* int64_t */
    MERCER_OPTION_NUMBER = 2,  /* double */
    MERCER_OPTION_SWITCH = 3,  /* mercer_switch */
    MERCER_OPTION_NAME = 4     /* const char *: of a solver or projector */
} mercer_option_type;
typedef struct mercer_option {
    size_t struct_size;
    const char *name;  /* of the field */
    const char *alias; /* another name for it, or NULL */
    mercer_option_type type;
    size_t offset;     /* of the field */
    const char *words; /* "auto", "auto|none": what 0 and -1 are called; NULL: 0 is a number */
    double limit;      /* values are below it; 0: there is no limit */
    const char *help;  /* half a sentence */
} mercer_option;
/* Row `index` of the list; NULL behind the last. Static storage; any thread. */
MERCER_API const mercer_option *mercer_train_option(int index);

/* Plans without training, as a trainer of this model would for so many samples of the type of its centers (of a model
   that is shared among ranks, from its sizes alone). Batch and period are estimates until the data have been seen.
   Errors: MEMORY, if no solver fits; SHAPE. */
MERCER_API mercer_status mercer_plan_model(mercer_model *model, mercer_plan *out, int64_t samples,
                                           const mercer_train_options *options);

/* As many shards as suit the number of centers: a power of two from 8 to 1024. */
enum { MERCER_SHARDS_AUTO = -1 };

/* Sizes of a training. */
typedef struct mercer_shape {
    size_t struct_size;
    int64_t samples, centers, features, outputs;
    mercer_dtype points;  /* of samples and centers; 0: f32 */
    mercer_dtype weights; /* f32 or f64; 0: f64 if points are, else f32 */
    int shards;           /* of the centers: for ranks, as many, or MERCER_SHARDS_AUTO; 0: one, for a process alone */
    mercer_switch on_samples; /* ON: the centers are the samples, each once, none of weight 0; else they may not be */
} mercer_shape;

/* The same from sizes alone, without a model. */
MERCER_API mercer_status mercer_plan_shape(mercer_context *context, mercer_plan *out, const mercer_shape *shape,
                                           const mercer_train_options *options);

/* How fast a machine is at kernel products. Seconds are the best of a few runs. */
typedef struct mercer_speed {
    size_t struct_size;
    double product;                /* seconds for K(X, Z) W, operands where the machine computes */
    double plain;                  /* seconds for X Z' alone by its own library; 0: it has none for these sizes */
    double to_device, from_device; /* bytes a second of copies; 0: there is no device */
    double median;                 /* of the seconds of the product */
} mercer_speed;

/* Measures products of a shape, for benchmarks: X (samples, features), Z (centers, features), W (centers, outputs).
   Errors: KERNEL, SHAPE, DTYPE, UNSUPPORTED. */
MERCER_API mercer_status mercer_measure_speed(mercer_context *context, mercer_speed *out, const mercer_kernel *kernel,
                                              const mercer_shape *shape);

typedef struct mercer_trainer mercer_trainer;

/* Makes a trainer, which trains a model's weights. The model, and comm (NULL: one rank), must outlive it. Weights other
   than 0 in the model are a warm start. Names and numbers of the options that are never valid are refused here.
   Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_trainer_create(mercer_trainer **out, mercer_model *model, mercer_comm *comm,
                                               const mercer_train_options *options);
MERCER_API void mercer_trainer_free(mercer_trainer *trainer); /* releases it; its report stays valid */

/*
 * The plan of the next fit, which follows it, for that source. Solver, projector and epochs are final. Set-up may
 * refine the sizes of batches, and a solver that auto chose and that breaks down is replaced: the report's plan then
 * has the new numbers, and its text a line more, which begins with "refined:" or "replaced:". All ranks call it
 * together. Errors: MEMORY, if no solver fits; SHAPE, DTYPE, MISMATCH, COMM.
 */
MERCER_API mercer_status mercer_trainer_plan(mercer_trainer *trainer, mercer_plan *out, const mercer_source *source);

/*
 * Trains on a source and writes the weights into the model. report may be NULL. On failure the model keeps the weights
 * it had; the weights never contain NaN. Errors: those of the plan; DATA, NUMERIC (training broke down), CALLBACK (the
 * source or a kernel function failed), IO (a checkpoint that has to be there), UNSUPPORTED.
 */
MERCER_API mercer_status mercer_trainer_fit(mercer_trainer *trainer, const mercer_source *source,
                                            mercer_report *report);

/*
 * One step on the caller's own batch (streaming, partial fit), with an iterative solver. The first call must bring at
 * least as many rows as it should draw the preconditioner from (some hundreds or more); they serve as the sample too.
 * The model's weights are current after each call that ended in a projection, and after mercer_trainer_finish.
 * Errors: SHAPE, DTYPE, DATA, NUMERIC, UNSUPPORTED (the solver is not iterative), COMM.
 */
MERCER_API mercer_status mercer_trainer_step(mercer_trainer *trainer, const mercer_matrix *X, const mercer_matrix *Y,
                                             const double *weights);
/* Projects what is pending and brings the model up to date. Errors: NUMERIC, COMM. */
MERCER_API mercer_status mercer_trainer_finish(mercer_trainer *trainer);
/* What training did so far, in steps or in the last fit. */
MERCER_API mercer_status mercer_trainer_report(mercer_trainer *trainer, mercer_report *report);

/*
 * The next fit goes on where the checkpoint was written, to the same weights, bit for bit, as a training that was never
 * interrupted (same machine and version, same source and options; the number of threads may differ). The model should
 * have been loaded from the checkpoint, which is a model file as well. Errors: MISSING, IO, FORMAT, MISMATCH (options,
 * sizes or centers differ; what only fit can see, it refuses).
 */
MERCER_API mercer_status mercer_trainer_resume(mercer_trainer *trainer, const char *path);
/*
 * Asks for a checkpoint now: a fit that runs writes one between two of its steps, or at the next moment that it would
 * have written one at, and goes on. May be called from a callback and from any thread, for any rank. Errors: ARGUMENT
 * (there is no options.checkpoint), told by mercer_last_error(NULL); that it cannot be written is a warning.
 */
MERCER_API mercer_status mercer_trainer_checkpoint(mercer_trainer *trainer);

/* The eigenvalues of K(X_s, X_s) / s that the last fit's preconditioner was made from, descending: the top q + 1 of
   them. Writes at most `room` of them; *count tells how many there are, 0 for solvers without. */
MERCER_API mercer_status mercer_trainer_spectrum(const mercer_trainer *trainer, double *values, int64_t room,
                                                 int64_t *count);

/* ---- 6. Fitting in steps -------------------------------------------------------------------------------------- */

/* Length of a kernel as text. */
enum { MERCER_KERNEL_TEXT = 256 };

/* What was chosen, and what came of it, as far as it is known. */
struct mercer_fit_report {
    size_t struct_size;
    mercer_report *training; /* set by the caller, with its struct_size: where the report of training goes, or NULL */
    int64_t rows, validation_rows, samples; /* trained on; validated on; in a pass */
    int held_at_end;                        /* validation rows are the last ones: the file is too large to draw them */
    int64_t centers, largest_centers;       /* how many; the most that fit if those do not, -1: none do */
    int64_t memory, device_memory;          /* bytes for everything; of each of several ranks' devices, or 0 */
    mercer_dtype points;                    /* type of preprocessed samples */
    double bandwidth;                       /* the median distance, if it was looked for; else 0 */
    char kernel[MERCER_KERNEL_TEXT];        /* in the units of preprocessed samples */
    char preprocess[64];
    int folded;             /* the factor of the preprocessing is in the kernel's bandwidth */
    char center_method[16]; /* as asked for, or all, given, checkpoint */
    int64_t center_iterations;
    double center_error, center_seconds; /* see mercer_center_report */
    double temperature; /* T of softmax(f(x) / T); NaN if it was not looked for, 0.25: nothing to find it on */
    /* Of a mercer_fitting, borrowed; NULL before there are any, and from mercer_fit. */
    mercer_dataset *train, *validation;
    mercer_model *model;
    mercer_trainer *trainer;
    /* Hyperparameter search. */
    int effort;                        /* effort of search and training, 1 to 5 */
    const char *search_skipped;        /* why there was no search; NULL: there was or will be one */
    double search_error;               /* held-out squared error over the variance of the targets */
    double search_ridge;               /* ridge per unit of sample weight */
    double search_seconds;             /* wall-clock time */
    int64_t search_rows, search_held;  /* training rows and held-out rows of the final small fits */
    int search_cut;                    /* ended by the budget */
    const mercer_matrix *search_steps; /* (steps, 4) f64: stage, held-out error, exponent (0: fixed) and ridge of
                                            each step; of a mercer_fitting, borrowed; NULL: none */
    int64_t search_centers[3];         /* numbers of centers that were scored; 0: none */
    double search_center_errors[3];    /* their held-out errors */
    double search_more_centers;        /* predicted share of the error that twice the centers would remove, or NaN */
    double predicted_seconds;          /* predicted wall-clock time of the fit, by the measured speed of the machine */
    int64_t members; /* models whose predictions are averaged; numbers above are of the first, but for validation */
};

/*
 * mercer_fit in steps, to look at the plan before it is followed: open (samples are merged and held back), prepare
 * (everything up to the plan), run. Data, and what the options point to, must outlive it. Errors: as mercer_fit.
 */
typedef struct mercer_fitting mercer_fitting;
MERCER_API mercer_status mercer_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                                             const mercer_fit_options *options);
MERCER_API mercer_status mercer_fitting_prepare(mercer_fitting *fitting, mercer_plan *plan); /* plan may be NULL */
MERCER_API mercer_status mercer_fitting_run(mercer_fitting *fitting, mercer_fit_report *report);
/* Instead of prepare: the centers alone, all of them on every rank, preprocessed. Borrowed. */
MERCER_API mercer_status mercer_fitting_centers(mercer_fitting *fitting, mercer_matrix *centers);
MERCER_API mercer_status mercer_fitting_query(const mercer_fitting *fitting, mercer_fit_report *report);

/* A decision of a fit: what was chosen, by which stage, and where the value comes from. Texts are valid until the next
   call on the fitting. */
typedef struct mercer_decision {
    size_t struct_size;
    const char *stage;  /* samples, search, kernel, size, centers, plan, train or calibrate */
    const char *name;   /* kernel, ridge, centers, ... */
    const char *origin; /* given, default, data, search or resumed */
    const char *value;
    const char *text; /* a line for people, as in the plan's text; "" for none */
} mercer_decision;
/* Sets *out to decision `index`, counted from 0 in the order in which they were made, and *exists to 1; to 0 beyond the
   last. */
MERCER_API mercer_status mercer_fitting_decision(const mercer_fitting *fitting, int index, mercer_decision *out,
                                                 int *exists);
/* The model, once it is prepared, becomes the caller's; the trainer goes. */
MERCER_API mercer_status mercer_fitting_take_model(mercer_fitting *fitting, mercer_model **out);
MERCER_API void mercer_fitting_free(mercer_fitting *fitting); /* releases it */

/* What can be said of options without data. context may be NULL (then: mercer_last_error(NULL)). Errors: KERNEL,
   DTYPE. */
MERCER_API mercer_status mercer_fit_check(mercer_context *context, const mercer_fit_options *options);
/* The plan of a fit to data of these sizes (rows, features, outputs, dtype, task, format, mapped, bytes), which are not
   read. The report tells the number of centers and, should they not fit, how many would. Errors: SHAPE, KERNEL. */
MERCER_API mercer_status mercer_fit_plan(mercer_context *context, mercer_plan *out, const mercer_dataset_info *data,
                                         const mercer_fit_options *options, mercer_fit_report *report);

#ifdef __cplusplus
}
#endif
#endif
