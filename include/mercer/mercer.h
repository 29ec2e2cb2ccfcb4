/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mercer.h: the whole public C API of Mercer, written to be read from top to bottom.
 *
 * Mercer works with general kernel models  f(x) = sum_j alpha_j K(x, z_j)  whose p centers z_j are chosen
 * freely. This header is grouped from simple to advanced:
 *
 *   1. version            4. matrix views                    7. models
 *   2. status             5. kernel functions                8. sources of samples
 *   3. context            6. kernel matrices and products    9. training
 *
 * Rules that hold for every function, unless its comment says otherwise:
 *
 *   - It returns a mercer_status. MERCER_OK is 0. Details of a failure: mercer_last_error(context).
 *   - It never prints, exits or aborts. On failure outputs are untouched and created handles are NULL.
 *   - A constructor takes `out` first; what it returns through `out` belongs to the caller, who releases it with
 *     the matching _free function (which accepts NULL). A returned pointer is borrowed, never freed.
 *   - A context and everything made from it is used by one thread at a time. Different contexts are independent.
 *   - Sizes are int64_t. Results have the same bits for any number of threads.
 */
#ifndef MERCER_MERCER_H
#define MERCER_MERCER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define MERCER_API
#elif defined(MERCER_BUILDING)
#define MERCER_API __attribute__((visibility("default")))
#else
#define MERCER_API
#endif

/* ---- 1. Version ---------------------------------------------------------------------------------------------- */

#define MERCER_VERSION_MAJOR 0
#define MERCER_VERSION_MINOR 1
#define MERCER_VERSION_PATCH 0

/* The version of the library that is loaded, as "major.minor.patch". Static storage; any thread. */
MERCER_API const char *mercer_version(void);

/* ---- 2. Status ----------------------------------------------------------------------------------------------- */

/* One list makes the enum and its texts. Values never change; new ones are added at the end. */
#define MERCER_STATUS_LIST(X)                                                        \
    X(MERCER_OK, 0, "success")                                                       \
    X(MERCER_ERROR_ARGUMENT, 1, "invalid argument")                                  \
    X(MERCER_ERROR_SHAPE, 2, "sizes are negative, too large or do not fit together") \
    X(MERCER_ERROR_DTYPE, 3, "element type not accepted here")                       \
    X(MERCER_ERROR_OVERLAP, 4, "output overlaps an input")                           \
    X(MERCER_ERROR_DATA, 5, "data contain NaN, infinity or values out of range")     \
    X(MERCER_ERROR_KERNEL, 6, "kernel specification not understood")                 \
    X(MERCER_ERROR_MEMORY, 7, "out of memory")                                       \
    X(MERCER_ERROR_UNSUPPORTED, 8, "not supported by this backend or machine")       \
    X(MERCER_ERROR_NUMERIC, 9, "numerical breakdown")                                \
    X(MERCER_ERROR_CALLBACK, 10, "a user callback reported failure")                 \
    X(MERCER_ERROR_INTERNAL, 11, "internal error")

#define MERCER_STATUS_AS_ENUM(name, value, text) name = (value),
typedef enum mercer_status { MERCER_STATUS_LIST(MERCER_STATUS_AS_ENUM) MERCER_STATUS_MAX_ = 0x7fffffff } mercer_status;
#undef MERCER_STATUS_AS_ENUM

/* A short text for a status; "unknown status" for a number that is none. Static storage; any thread. */
MERCER_API const char *mercer_status_string(mercer_status status);

/* ---- 3. Context ---------------------------------------------------------------------------------------------- */

/* Owns the backend, the number of threads, the allocator, the log sink and the text of the last error. */
typedef struct mercer_context mercer_context;

/*
 * Memory comes from these two functions. `allocate` returns memory aligned to `alignment` (a power of two), or
 * NULL; `release` gets what `allocate` returned, never NULL. Both are called only from the thread that is inside a
 * Mercer call, never from its worker threads.
 */
typedef struct mercer_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
} mercer_allocator;

typedef enum mercer_log_level {
    MERCER_LOG_ERROR = 1,
    MERCER_LOG_WARNING = 2,
    MERCER_LOG_INFO = 3,
    MERCER_LOG_DEBUG = 4
} mercer_log_level;

/* Receives one line at a time, without a newline. Must not call back into the same context. */
typedef void (*mercer_log_sink)(void *user, mercer_log_level level, const char *message);

/* Every field may be 0: it then means "choose for me". */
typedef struct mercer_context_options {
    size_t struct_size;         /* sizeof(mercer_context_options), set by INIT: lets the struct grow later */
    int threads;                /* worker threads; 0: one for each processor this process may run on */
    const char *backend;        /* "cpu" (default) or "reference" (scalar double, slow, for judging others) */
    const char *isa;            /* "scalar", "avx2", "avx512", "avx512vnni"; NULL: MERCER_ISA, or the best there is */
    mercer_allocator allocator; /* {0}: the C library's */
    mercer_log_sink log;        /* NULL: silent */
    void *log_user;
    mercer_log_level log_level; /* the most talkative level wanted; 0: MERCER_LOG_WARNING */
} mercer_context_options;

#define MERCER_CONTEXT_OPTIONS_INIT                                                   \
    {                                                                                 \
        sizeof(mercer_context_options), 0, 0, 0, {0, 0, 0}, 0, 0, (mercer_log_level)0 \
    }

/* The same as the INIT macro, for languages without it. struct_size is sizeof what the caller compiled. */
MERCER_API mercer_status mercer_context_options_init(mercer_context_options *options, size_t struct_size);

/*
 * Makes a context. options may be NULL. Without a context yet, the message of a failure is in
 * mercer_last_error(NULL), kept for the calling thread.
 */
MERCER_API mercer_status mercer_context_create(mercer_context **out, const mercer_context_options *options);

/* Releases a context. Everything made from it must have been released before. NULL is fine. */
MERCER_API void mercer_context_free(mercer_context *context);

/* What went wrong in the last failed call on this context ("" if nothing did). Valid until the next call. */
MERCER_API const char *mercer_last_error(const mercer_context *context);

typedef struct mercer_context_info {
    size_t struct_size;  /* set by the caller: sizeof(mercer_context_info) */
    const char *backend; /* borrowed, static */
    const char *isa;     /* borrowed, static */
    int threads;
    int64_t bytes_now;  /* held through the allocator at this moment */
    int64_t bytes_peak; /* the most that was ever held */
} mercer_context_info;

/* What the context decided and what it uses. */
MERCER_API mercer_status mercer_context_query(mercer_context *context, mercer_context_info *info);

/* ---- 4. Matrix views ----------------------------------------------------------------------------------------- */

typedef enum mercer_dtype {
    MERCER_F64 = 1, /* double */
    MERCER_F32 = 2, /* float */
    MERCER_F16 = 3, /* IEEE binary16; storage only, arithmetic is float */
    MERCER_U8 = 4   /* unsigned bytes; distances and inner products of two u8 matrices are exact integers */
} mercer_dtype;

typedef enum mercer_memory { MERCER_HOST = 0 } mercer_memory;

/*
 * A view of a row-major matrix that somebody else owns: element (i, j) is data[i * ld + j]. ld >= cols lets a view
 * be a part of a larger matrix. A row is a sample or a center. Frozen layout; keep reserved words 0.
 */
typedef struct mercer_matrix {
    void *data;
    int64_t rows;
    int64_t cols;
    int64_t ld;
    mercer_dtype dtype;
    mercer_memory memory;
    int64_t reserved[2];
} mercer_matrix;

/* A view of contiguous host memory. No checks: the functions that take the view check it. */
MERCER_API mercer_matrix mercer_matrix_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype);

/* ---- 5. Kernel functions ------------------------------------------------------------------------------------- */

/*
 * Kernel functions are named by a text, name:parameter=value,...  With r the L2 distance |x - z| and b the bandwidth:
 *
 *   laplace:bandwidth=b                      exp(-r / b)                        (L2 distance, not L1)
 *   gaussian:bandwidth=b                     exp(-r^2 / (2 b^2))
 *   matern32:bandwidth=b                     (1 + sqrt(3) r/b) exp(-sqrt(3) r/b)
 *   matern52:bandwidth=b                     (1 + sqrt(5) r/b + 5/3 (r/b)^2) exp(-sqrt(5) r/b)
 *   exppower:bandwidth=b,gamma=g             exp(-(r / b)^g),                   0 < g <= 2
 *   cauchy:bandwidth=b                       1 / (1 + r^2 / b^2)
 *   rational-quadratic:bandwidth=b,alpha=a   (1 + r^2 / (2 a b^2))^-a           a = 1 if not given
 *   polynomial:degree=k,scale=s,offset=o     (s x.z + o)^k                      k = 3, s = 1, o = 1
 *   linear                                   x.z
 *   ntk:depth=L,bias=v                       neural tangent kernel of L hidden ReLU layers, L = 1, v = 0
 *   nngp:depth=L,bias=v                      the Gaussian-process kernel of the same network
 */
typedef enum mercer_kernel_id {
    MERCER_KERNEL_LAPLACE = 1,
    MERCER_KERNEL_GAUSSIAN = 2,
    MERCER_KERNEL_MATERN32 = 3,
    MERCER_KERNEL_MATERN52 = 4,
    MERCER_KERNEL_EXPPOWER = 5,
    MERCER_KERNEL_CAUCHY = 6,
    MERCER_KERNEL_RATIONAL_QUADRATIC = 7,
    MERCER_KERNEL_POLYNOMIAL = 8,
    MERCER_KERNEL_LINEAR = 9,
    MERCER_KERNEL_NTK = 10,
    MERCER_KERNEL_NNGP = 11,
    MERCER_KERNEL_CALLBACK_DISTANCE = 100, /* user function of |x - z| */
    MERCER_KERNEL_CALLBACK_INNER = 101     /* user function of x.z, |x|^2 and |z|^2 */
} mercer_kernel_id;

/* A block of a kernel matrix handed to a user function: rows belong to X, columns to Z. */
typedef struct mercer_kernel_block {
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
typedef struct mercer_kernel {
    int32_t id;     /* mercer_kernel_id */
    int32_t degree; /* polynomial */
    int32_t depth;  /* ntk, nngp */
    int32_t reserved0;
    double bandwidth; /* functions of the distance */
    double gamma;     /* exppower */
    double alpha;     /* rational-quadratic */
    double scale;     /* polynomial */
    double offset;    /* polynomial */
    double bias;      /* ntk, nngp */
    mercer_kernel_callback callback;
    void *callback_user;
    int64_t reserved[4];
} mercer_kernel;

/* Reads "laplace:bandwidth=10". Errors say what is valid. context may be NULL (then: mercer_last_error(NULL)). */
MERCER_API mercer_status mercer_kernel_parse(mercer_context *context, mercer_kernel *out, const char *spec);

/*
 * Writes the text that mercer_kernel_parse reads back to the same kernel, zero-terminated, into text (size bytes).
 * *needed, if not NULL, gets the bytes it takes with its zero; if that exceeds size the call fails with
 * MERCER_ERROR_ARGUMENT and leaves text alone. text may be NULL when size is 0.
 */
MERCER_API mercer_status mercer_kernel_print(mercer_context *context, const mercer_kernel *kernel, char *text,
                                             size_t size, size_t *needed);

/* A kernel given by a function of the caller's; on is MERCER_KERNEL_CALLBACK_DISTANCE or ..._INNER. */
MERCER_API mercer_status mercer_kernel_from_callback(mercer_context *context, mercer_kernel *out, mercer_kernel_id on,
                                                     mercer_kernel_callback callback, void *user);

/* K(x, z) of two rows of d doubles by the scalar double reference: the definition all fast code is judged by. */
MERCER_API mercer_status mercer_kernel_value(mercer_context *context, double *out, const mercer_kernel *kernel,
                                             int64_t d, const double *x, const double *z);

/* ---- 6. Kernel matrices and products ------------------------------------------------------------------------- */

/*
 * X is (m, d), Z is (p, d), of any dtypes. K, Y, W and the diagonal are f32 or f64. If any operand is f64, all
 * arithmetic is double; otherwise it is float, with exact integer distances where X and Z are both u8. Sums over
 * centers are carried in double between tiles. A row of the result does not depend on the other rows of X: a batch
 * may be split anywhere. Rows that coincide get the exact kernel value (K(x, x) = 1 for functions of the distance).
 *
 * All inputs must be finite, and products of inner-product kernels within the range of the arithmetic. Memory beyond
 * the arguments is a few tiles for each thread, never m x p. Only a user callback that fails midway leaves a part of
 * the output written.
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

/* ---- 7. Models ----------------------------------------------------------------------------------------------- */

/* f(x) = sum_j alpha_j K(x, z_j): a kernel function, p centers and their weights (p, c). */
typedef struct mercer_model mercer_model;

/*
 * Makes a model with weights 0. The centers (p, d), of any dtype, are copied and keep their dtype. `weights` is the
 * type of the weights and of training: MERCER_F32, MERCER_F64, or 0 to choose (f64 if the centers are f64). The
 * context must outlive the model.
 */
MERCER_API mercer_status mercer_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                                             const mercer_matrix *centers, int64_t outputs, mercer_dtype weights);
MERCER_API void mercer_model_free(mercer_model *model);

/* F = f(X): X is (m, d), F is (m, c) f32 or f64. A row's result does not depend on the other rows. */
MERCER_API mercer_status mercer_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X);

/* labels[i] = the output with the largest value at row i of X (the first of equals). */
MERCER_API mercer_status mercer_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X);

/* Borrowed views, valid as long as the model; weights may be read, and written between calls. */
MERCER_API const mercer_kernel *mercer_model_kernel(const mercer_model *model);
MERCER_API mercer_matrix mercer_model_centers(const mercer_model *model);
MERCER_API mercer_matrix mercer_model_weights(const mercer_model *model);

/* ---- 8. Sources of samples ----------------------------------------------------------------------------------- */

/* A few samples, borrowed until the next call on their source. */
typedef struct mercer_batch {
    mercer_matrix X;       /* (m, d) any dtype, the same in every batch */
    mercer_matrix Y;       /* (m, c) f32 or f64 */
    const double *weights; /* (m) >= 0, or NULL: all 1 */
    const int64_t
        *rows; /* (m) which samples these are, 0 .. source.rows - 1, or NULL: unknown. Known rows let Mercer keep
                              what it has computed for them, and are needed by solvers whose centers are the samples. */
} mercer_batch;

/*
 * Where samples come from. Training reads passes ("epochs") of batches. Batches must be independent draws: shuffle
 * well. The functions return 0, or anything else to stop with MERCER_ERROR_CALLBACK; last_error may be NULL.
 */
typedef struct mercer_source {
    size_t struct_size; /* sizeof(mercer_source) */
    int64_t rows;       /* samples in a pass */
    int64_t features;   /* d */
    int64_t outputs;    /* c */
    mercer_dtype dtype; /* of X */
    /* The next batch begins pass number `epoch`: 0, 1, ...; -1 is the pass that the preconditioner's sample is drawn from. */
    int (*restart)(void *user, int64_t epoch);
    int (*next)(void *user, int64_t most, mercer_batch *batch); /* at most `most` rows; 0 rows: the pass is over */
    const char *(*last_error)(void *user);
    void (*release)(void *user); /* may be NULL */
    void *user;
} mercer_source;

/*
 * A source over matrices in memory, which are borrowed: X (n, d), Y (n, c) f32 or f64, weights (n) or NULL. Each pass
 * is a fresh random order drawn from seed. Release with mercer_source_release.
 */
MERCER_API mercer_status mercer_source_from_matrices(mercer_source *out, mercer_context *context,
                                                     const mercer_matrix *X, const mercer_matrix *Y,
                                                     const double *weights, uint64_t seed);
/* The same for classification: labels (n) in 0 .. classes - 1 become one-hot rows. */
MERCER_API mercer_status mercer_source_from_labels(mercer_source *out, mercer_context *context, const mercer_matrix *X,
                                                   const int32_t *labels, int64_t classes, const double *weights,
                                                   uint64_t seed);
MERCER_API void mercer_source_release(mercer_source *source);

/* ---- 9. Training --------------------------------------------------------------------------------------------- */

/* Ranks among which the centers are shared out. */
typedef struct mercer_comm mercer_comm;

/* `ranks` ranks inside this process, one after the other: the same model as with one rank, up to rounding. */
MERCER_API mercer_status mercer_comm_create_virtual(mercer_comm **out, mercer_context *context, int ranks);
MERCER_API void mercer_comm_free(mercer_comm *comm);

typedef enum mercer_switch { MERCER_AUTO = 0, MERCER_ON = 1, MERCER_OFF = 2 } mercer_switch;

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
} mercer_progress;

/* Non-zero stops cleanly: the model keeps the best weights so far and fit returns MERCER_OK. */
typedef int (*mercer_progress_callback)(void *user, const mercer_progress *progress);

/* Every field may be 0: it then means "choose for me". What was chosen: mercer_plan. */
typedef struct mercer_train_options {
    size_t struct_size;
    const char *solver;    /* auto, direct, cg, ep4, ep3, ep3-exact, ep2, ep1, richardson, pegasos, nytro, gd */
    const char *projector; /* auto, exact, ep2, pcg, bgs */
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
    double lambda;              /* ridge: + lambda alpha' K(Z,Z) alpha */
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
} mercer_train_options;

/* All zero but struct_size. (A macro that lists 29 fields would be no help: initialise with {0} and set
   struct_size.) */
MERCER_API mercer_status mercer_train_options_init(mercer_train_options *options, size_t struct_size);

enum { MERCER_PLAN_TEXT = 4096 };

/* What training will do and why. */
typedef struct mercer_plan {
    size_t struct_size;
    char solver[16], projector[16];
    int64_t epochs, batch, nystrom, eigenpairs, period;
    int64_t projector_nystrom, projector_eigenpairs, projector_passes, projector_block;
    int carry, average, decay; /* 0 or 1 */
    int cache_data;            /* K(X, Z) is kept */
    int cache_centers;         /* K(Z, Z) or its factor is kept */
    mercer_dtype precision;    /* of weights and kernel values */
    double step_factor, lambda;
    int64_t bytes;               /* planned peak, beyond the caller's data and the model */
    double flops, seconds;       /* estimates for the whole training */
    char text[MERCER_PLAN_TEXT]; /* every choice in words, one line each */
} mercer_plan;

/* Plans without training. options may be NULL. The plan's batch and period are estimates until the data have been
   seen. */
MERCER_API mercer_status mercer_train_plan(mercer_model *model, mercer_plan *out, int64_t samples,
                                           const mercer_train_options *options);

/* Trains a model's weights. */
typedef struct mercer_trainer mercer_trainer;

/* The model, and comm (NULL: one rank), must outlive the trainer. Weights other than 0 in the model are a warm
   start. */
MERCER_API mercer_status mercer_trainer_create(mercer_trainer **out, mercer_model *model, mercer_comm *comm,
                                               const mercer_train_options *options);
MERCER_API void mercer_trainer_free(mercer_trainer *trainer);

typedef struct mercer_report {
    size_t struct_size;
    mercer_plan plan; /* with all numbers as they were used */
    int64_t epochs, samples, steps, projections;
    double train_loss, train_accuracy;
    double validation_loss, validation_accuracy; /* of the returned weights; NaN without a validation set */
    double projection_residual_mean, projection_residual_last;
    double tail, beta; /* t = lambda_{q+1} and beta of the step rule */
    int64_t halvings;  /* times the watchdog rolled back and halved the step */
    int stopped;       /* 0 finished, 1 early stopping, 2 progress callback */
    double seconds, setup_seconds, forward_seconds, gradient_seconds, projection_seconds, validation_seconds;
    double flops;       /* done, counted */
    int64_t peak_bytes; /* most memory held through the context, beyond what was held before */
} mercer_report;

/*
 * Trains on a source and writes the weights into the model. report may be NULL. On failure the model keeps the weights
 * it had; the weights never contain NaN.
 */
MERCER_API mercer_status mercer_trainer_fit(mercer_trainer *trainer, mercer_report *report,
                                            const mercer_source *source);

/*
 * One step on the caller's own batch (streaming, partial fit), with an iterative solver. The first call must bring at
 * least as many rows as it should draw the preconditioner from (some hundreds or more); they serve as the sample too.
 * The model's weights are current after each call that ended in a projection, and after mercer_trainer_finish.
 */
MERCER_API mercer_status mercer_trainer_step(mercer_trainer *trainer, const mercer_matrix *X, const mercer_matrix *Y,
                                             const double *weights);
/* Projects what is pending and brings the model up to date. */
MERCER_API mercer_status mercer_trainer_finish(mercer_trainer *trainer);
MERCER_API mercer_status mercer_trainer_report(mercer_trainer *trainer, mercer_report *report);

#ifdef __cplusplus
}
#endif
#endif
