/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mercer.h: Mercer's everyday interface, written to be read from top to bottom.
 *
 * Mercer works with general kernel models  f(x) = sum_j alpha_j K(x, z_j)  whose p centers z_j are chosen freely.
 *
 *   1. version    3. context         5. kernel functions    7. fitting
 *   2. status     4. matrix views    6. datasets            8. models
 *
 * <mercer/advanced.h> has the parts that these are made of: kernel products, centers, trainers, checkpoints, and with
 * <mercer/samples.h>, which it includes, preprocessing, datasets and sources. <mercer/evaluation.h> tells how good
 * predictions are and how sure: measures, probabilities, intervals. <mercer/ranks.h> is for several processes that hold
 * one model together.
 *
 * Rules that hold for every function of the five headers, unless its comment says otherwise:
 *
 *   - It returns a mercer_status. MERCER_OK is 0. Details of a failure: mercer_last_error(context).
 *   - MERCER_ERROR_ARGUMENT (NULL where something is needed, a number out of range, struct_size not set) and
 *     MERCER_ERROR_MEMORY can come from any call. "Errors:" lists the others, without MERCER_ERROR_.
 *   - It never prints, exits or aborts. On failure outputs are untouched and created handles are NULL.
 *   - What a function makes is its first argument, `out`. It belongs to the caller, who releases it with the matching
 *     _free function (which accepts NULL). Other functions take what they work on, then outputs, inputs, options and a
 *     report, which may be NULL. Pointers that are returned are borrowed, never freed.
 *   - Structs begin with struct_size, so that they can grow: mercer_plan plan = MERCER_INIT(mercer_plan). The rest of
 *     them is then 0, which in options means "choose for me"; options that are NULL are all 0. mercer_matrix and
 *     mercer_kernel have a frozen layout instead.
 *   - A context and everything made from it is used by one thread at a time. Different contexts are independent.
 *   - Sizes are int64_t. Results have the same bits for any number of threads.
 */
#ifndef MERCER_MERCER_H
#define MERCER_MERCER_H

#include <stddef.h>
#include <stdint.h>

#if defined(MERCER_BUILDING) && !defined(_WIN32)
#define MERCER_API __attribute__((visibility("default")))
#else
#define MERCER_API
#endif

/* Initialises a struct that begins with struct_size, here and in C++. */
#ifdef __cplusplus
extern "C++" {
template <typename T> inline T mercer_init_of()
{
    T made = T();
    made.struct_size = sizeof(T);
    return made;
}
}
#define MERCER_INIT(type) mercer_init_of<type>()
extern "C" {
#else
#define MERCER_INIT(type)           \
    {                               \
        .struct_size = sizeof(type) \
    }
#endif

/* ---- 1. Version ----------------------------------------------------------------------------------------------- */

#define MERCER_VERSION_MAJOR 0
#define MERCER_VERSION_MINOR 2
#define MERCER_VERSION_PATCH 0

/* The version of the library that is loaded, as "major.minor.patch". Static storage; any thread. */
MERCER_API const char *mercer_version(void);

/* ---- 2. Status ------------------------------------------------------------------------------------------------ */

/* One list makes the enum and its texts. Values never change; new ones are added at the end. */
#define MERCER_STATUS_LIST(X)                                                                  \
    X(MERCER_OK, 0, "success")                                                                 \
    X(MERCER_ERROR_ARGUMENT, 1, "invalid argument")                                            \
    X(MERCER_ERROR_SHAPE, 2, "sizes are negative, too large or do not fit together")           \
    X(MERCER_ERROR_DTYPE, 3, "element type not accepted here")                                 \
    X(MERCER_ERROR_OVERLAP, 4, "output overlaps an input")                                     \
    X(MERCER_ERROR_DATA, 5, "data contain NaN, infinity or values out of range")               \
    X(MERCER_ERROR_KERNEL, 6, "kernel specification not understood")                           \
    X(MERCER_ERROR_MEMORY, 7, "out of memory")                                                 \
    X(MERCER_ERROR_UNSUPPORTED, 8, "not supported by this backend or machine")                 \
    X(MERCER_ERROR_NUMERIC, 9, "numerical breakdown")                                          \
    X(MERCER_ERROR_CALLBACK, 10, "a user callback reported failure")                           \
    X(MERCER_ERROR_INTERNAL, 11, "internal error")                                             \
    X(MERCER_ERROR_IO, 12, "reading or writing a file failed")                                 \
    X(MERCER_ERROR_FORMAT, 13, "file is damaged, truncated or of another format")              \
    X(MERCER_ERROR_MISSING, 14, "file does not exist")                                         \
    X(MERCER_ERROR_MISMATCH, 15, "file belongs to other data, another model or other options") \
    X(MERCER_ERROR_COMM, 16, "another rank died, stopped, failed or was started differently")

#define MERCER_STATUS_AS_ENUM(name, value, text) name = (value),
typedef enum mercer_status { MERCER_STATUS_LIST(MERCER_STATUS_AS_ENUM) MERCER_STATUS_MAX_ = 0x7fffffff } mercer_status;
#undef MERCER_STATUS_AS_ENUM

/* A short text for a status; "unknown status" for a number that is none. Static storage; any thread. */
MERCER_API const char *mercer_status_string(mercer_status status);

/* A choice that may be left to Mercer. */
typedef enum mercer_switch { MERCER_AUTO = 0, MERCER_ON = 1, MERCER_OFF = 2 } mercer_switch;

/* ---- 3. Context ----------------------------------------------------------------------------------------------- */

/* Owns the backend, the number of threads, the allocator, the log sink and the text of the last error. */
typedef struct mercer_context mercer_context;
/* What options may point to, and what reports tell: defined in advanced.h, the last in ranks.h. */
typedef struct mercer_allocator mercer_allocator;
typedef struct mercer_kernel mercer_kernel;
typedef struct mercer_train_options mercer_train_options;
typedef struct mercer_fit_report mercer_fit_report;
typedef struct mercer_comm mercer_comm;

typedef enum mercer_log_level {
    MERCER_LOG_ERROR = 1,
    MERCER_LOG_WARNING = 2,
    MERCER_LOG_INFO = 3,
    MERCER_LOG_DEBUG = 4
} mercer_log_level;

/* Receives one line at a time, without a newline. Must not call back into the same context. */
typedef void (*mercer_log_sink)(void *user, mercer_log_level level, const char *message);

typedef struct mercer_context_options {
    size_t struct_size;
    int threads;         /* worker threads; 0: one for each processor this process may run on */
    const char *backend; /* "cpu" (default), "cuda" or "cuda:1" (a GPU), "auto" (a GPU if there is one, else
                                          the CPU) or "reference" (scalar double, slow: to compare others with) */
    const char *isa;     /* "scalar", "avx2", "avx512", "avx512vnni", "amx"; NULL: MERCER_ISA, or the best */
    const mercer_allocator *allocator; /* copied; NULL: the C library's */
    mercer_log_sink log;               /* NULL: silent */
    void *log_user;
    mercer_log_level log_level; /* the most talkative level wanted; 0: MERCER_LOG_WARNING */
    const char *arithmetic;     /* of kernel products in float: "accurate"; "fast": a GPU may round points and kernel
                                   values to half precision (relative error about 2e-4); "auto" (NULL, too): accurate,
                                   but that the plan of a training may take fast, for its time, where its error is
                                   below what the samples justify; a check on held-back rows confirms that, or training
                                   begins again in accurate. On the CPU all three are the same */
    int32_t deferred;           /* not 0: a device starts in a thread while the caller reads data; see
                                   mercer_context_start */
} mercer_context_options;

/* Makes a context. Without one yet, the message of a failure is in mercer_last_error(NULL), kept for the calling
   thread. Errors: UNSUPPORTED, for a backend, device or instruction set that is not here. */
MERCER_API mercer_status mercer_context_create(mercer_context **out, const mercer_context_options *options);

/*
 * Waits for the device of a context that was made with `deferred` set, and tells whether it could be had, as
 * mercer_context_create does otherwise. Until then the context is one of the processor, which is enough to open
 * datasets, and only those should be made from it. Without `deferred`, and the second time, it does nothing. Errors:
 * UNSUPPORTED; the context then stays one of the processor.
 */
MERCER_API mercer_status mercer_context_start(mercer_context *context);

/* Releases a context. Everything made from it must have been released before. */
MERCER_API void mercer_context_free(mercer_context *context);

/* What went wrong in the last failed call on this context ("" if nothing did). Valid until the next call. */
MERCER_API const char *mercer_last_error(const mercer_context *context);

/* The option that the last failed call refused, as its field is named ("bandwidth", "target_transform"), or "" if the
   failure is about no single option. Static storage. */
MERCER_API const char *mercer_last_error_field(const mercer_context *context);

/*
 * Warnings: inputs that were ignored, dropped, rounded, guessed or overridden since the context was created or cleared.
 * Returns the text of warning `index`, from 0 in the order of their occurrence, or NULL beyond the last; *field (may be
 * NULL) is the option or column concerned, "" for none. At most 64 are recorded, equal ones once. The log sink receives
 * the same texts at level MERCER_LOG_WARNING. Both texts are valid until the next call on the context.
 */
MERCER_API const char *mercer_warning(const mercer_context *context, int index, const char **field);

/* Forgets the warnings recorded so far. */
MERCER_API void mercer_clear_warnings(mercer_context *context);

/* ---- 4. Matrix views ------------------------------------------------------------------------------------------ */

typedef enum mercer_dtype {
    MERCER_F64 = 1, /* double */
    MERCER_F32 = 2, /* float */
    MERCER_F16 = 3, /* IEEE binary16; storage only, arithmetic is float */
    MERCER_U8 = 4   /* unsigned bytes; distances and inner products of two u8 matrices are exact integers */
} mercer_dtype;

/* Where the elements of a matrix lie. */
typedef enum mercer_memory {
    MERCER_HOST = 0, /* in the processor's memory */
    MERCER_CUDA = 1  /* on the GPU that the context computes on */
} mercer_memory;

/*
 * A view of a row-major matrix that somebody else owns: element (i, j) is data[i * ld + j]. ld >= cols lets a view
 * be a part of a larger matrix. A row is a sample or a center. Frozen layout; keep reserved words 0.
 *
 * Kernel matrices and products, predictions, probabilities, datasets of arrays, batches of sources and steps of a
 * trainer take MERCER_CUDA, in any mixture with host memory; others say that they do not. What was queued on a stream
 * of the caller's must have been waited for: mercer_context_wait (advanced.h). Results are there when a call returns.
 */
typedef struct mercer_matrix {
    void *data;
    int64_t rows;
    int64_t cols;
    int64_t ld;
    mercer_dtype dtype;
    int32_t memory; /* MERCER_HOST or MERCER_CUDA */
    int64_t reserved[2];
} mercer_matrix;

/* A view of contiguous host memory. No checks: the functions that take the view check it. */
MERCER_API mercer_matrix mercer_matrix_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype);

/* ---- 5. Kernel functions -------------------------------------------------------------------------------------- */

/*
 * Kernel functions are named by a text, name:parameter=value,...: "laplace:bandwidth=10" is exp(-r/10), r the L2
 * distance |x - z|, and "polynomial:degree=2" is (x.z + 1)^2. What each is: docs/math.md, section 3.
 * mercer_kernel_name (advanced.h) lists them.
 */

/* ---- 6. Datasets ---------------------------------------------------------------------------------------------- */

/* Samples and their targets. */
typedef struct mercer_dataset mercer_dataset;

typedef enum mercer_task {
    MERCER_TASK_AUTO = 0, /* names, and whole numbers of which at most 20 differ (see below): classes; else values */
    MERCER_TASK_CLASSIFICATION = 1, /* targets are classes */
    MERCER_TASK_REGRESSION = 2,     /* targets are numbers */
    MERCER_TASK_UNLABELLED = 3      /* there are no targets, or they are not to be read */
} mercer_task;

/*
 * Where they come from:
 *
 *   npy            NumPy arrays: float64, float32, float16, uint8 mapped as they are; other integers, big-endian and
 *                  Fortran order converted in memory. X (n, d), or (n, ...) with the rest flattened; y (n) or (n, c)
 *   idx, idx.gz    MNIST's format: uint8 images (n, rows, cols), labels (n)
 *   csv, tsv       text, .gz too: numbers, words, dates and gaps (docs/tables.md), and target columns, numbers or (one
 *                  column) names
 *   libsvm         "label index:value ...", .gz too; made dense; indices from 1, or from 0, with a warning, if a 0
 *                  occurs
 *   raw            binary without a header; its shape is given in `raw`
 *   text           targets alone, one a line
 *
 * npy, idx and raw files are mapped: they may be larger than memory, and must not be changed in place meanwhile; gz
 * files and text are read. Names and the labels of idx files are classes; whole numbers are if at most 20 differ, in
 * text only if they occur three times on average too, or only two differ; all other targets are values.
 * "part-*.npy" means all files that match (* ? [0-9], in the name, not the folder; a file of that very name is meant
 * alone) as one: their rows stand one after the other, numbers in names compared as numbers, and every result is that
 * of a single file. They must agree in format, columns and type; csv files name their columns in the first, or in each.
 */
typedef struct mercer_dataset_options {
    size_t struct_size;
    const char *x;        /* file of samples (with its targets, for csv and libsvm), or a pattern of several */
    const char *y;        /* file of targets, or a pattern of several, or NULL */
    const char *format;   /* of x, as above; NULL or "auto": by name and content */
    const char *y_format; /* of y */
    const char *raw;      /* raw: "f32:1000x784" or "u8:784" (as many rows as there are), "@128" behind: skip bytes */
    /* csv: the target column (of y, if given): a name of the header, or an index from 0, -1: the last; or several with
       commas between them: values, that many outputs. NULL: the one that is named target, label, class or y; of y,
       all. */
    const char *target;
    mercer_switch header; /* csv: the first line names the columns; AUTO: if a text stands over a number in it */
    mercer_task task;
    int64_t features;          /* libsvm: d; 0: the largest index found */
    const char *const *labels; /* classes that may occur, in order; NULL: those found, sorted */
    int64_t label_count;
    int64_t first, rows; /* only `rows` rows from `first` on; rows = 0: all of the rest */
    int64_t memory;      /* refuse to hold more bytes than this; 0: half of what is free */
    /* (column_count) names of the features wanted, such as mercer_model_feature_names gives: csv columns come in this
       order, whatever theirs is, others are not read, and a missing one is an error. Data without names go by position
       and must have as many. NULL: all. */
    const char *const *columns;
    int64_t column_count;
    /* csv: what columns are, where that is not what they look like: "zip:category,id:drop"; kinds are number, boolean,
       date, date-dmy, date-mdy, category and drop, columns are names or indices from 0. NULL: found from the data. */
    const char *kinds;
    const char *only;          /* csv: the only columns that are features, names or indices with commas; NULL: all */
    const char *weight_column; /* csv: a column of weights >= 0, which is no feature; NULL: none */
    const char *id_column;     /* csv: a column that names the rows and is no feature; NULL: none */
    /* csv: words that mean "no value", with commas, in addition to NA,N/A,NaN,null,? and empty cells, or instead of
       these words if the list begins with "=". NULL: none. */
    const char *missing;
    /* csv: what a table was in training, as mercer_model_schema gives it: columns are found by their names (without
       names: by position) and become the same features. NULL: found from the data. */
    const char *schema;
    /* csv, and whatever is gzip'ed: what would take more bytes of memory than this, or more than are left of `memory`,
       lies in a temporary file (in the folder that TMPDIR names, else /tmp) and is mapped; 0: never. */
    int64_t spill;
    /* csv: a column that is no feature and says which rows belong together, or when they were (numbers or dates): a
       search (mercer_fit_options.tune) then judges on other groups, or on the latest rows. One of them at most; NULL:
       none. */
    const char *group_column, *time_column;
    /* MERCER_OFF: files are read into memory, which `memory` limits. Otherwise arrays are mapped: a file that is cut or
       written to while it is in use is an error where that is noticed in time (docs/reliability.md). */
    mercer_switch mapping;
} mercer_dataset_options;

/* Opens files. The message says file, line or offset, what is wrong and what to do. Errors: MISSING, IO, FORMAT, DATA,
   DTYPE, SHAPE, MISMATCH (a column is missing). */
MERCER_API mercer_status mercer_dataset_open(mercer_dataset **out, mercer_context *context,
                                             const mercer_dataset_options *options);

/* Samples in the caller's memory, which must outlive the dataset and stay as it is; names are copied. Of an X or Y on a
   GPU the dataset has a copy in host memory too: centers and bandwidths are chosen there, steps take the rows where
   they are. */
typedef struct mercer_dataset_arrays {
    size_t struct_size;
    const mercer_matrix *X;           /* (n, d) any dtype, finite */
    const mercer_matrix *Y;           /* (n, c) f32 or f64 values, or NULL; not with labels */
    const int32_t *labels;            /* (n) class numbers 0 .. classes - 1, or NULL */
    int64_t classes;                  /* with labels */
    const char *const *label_names;   /* (classes), or NULL */
    const char *const *feature_names; /* (d), or NULL */
    const double *weights;            /* (n) >= 0: a weight of 2 is a row that comes twice; NULL: all 1 */
    const char *schema;               /* of the table that X was made of; NULL: none */
    const double *groups, *times;     /* (n) as mercer_dataset_options.group_column and time_column; NULL: none */
} mercer_dataset_arrays;

/* A dataset of arrays. Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_dataset_from_arrays(mercer_dataset **out, mercer_context *context,
                                                    const mercer_dataset_arrays *arrays);

/* Releases a dataset. */
MERCER_API void mercer_dataset_free(mercer_dataset *dataset);

typedef struct mercer_dataset_info {
    size_t struct_size;
    int64_t rows, features, outputs;  /* outputs: classes, or columns of the targets; 0 if unlabelled */
    mercer_dtype dtype;               /* of the samples */
    mercer_task task;                 /* never AUTO */
    const char *format;               /* npy, idx, ..., synthetic */
    const char *const *labels;        /* (outputs) names of the classes; NULL unless classification */
    const char *const *feature_names; /* (features) names of the columns; NULL if unknown */
    int64_t height, width, channels;  /* of images; 0 if unknown */
    int mapped;                       /* samples are read from their files when needed */
    int64_t bytes;                    /* of all samples, as stored */
    const char *const *target_names;  /* of the columns of targets: one for classes, else (outputs); NULL if unknown */
    int64_t unused;                   /* columns of the file that `columns` did not ask for */
    const char *const *unused_names;  /* (unused) their names; NULL if there are none */
    int64_t distinct;   /* different targets, if they are whole numbers in one column; 0: other targets, or too many */
    const char *schema; /* what the columns of a table are, as JSON (docs/tables.md); NULL: numbers without gaps */
    int64_t left_out;   /* rows of the file that have no target */
} mercer_dataset_info;

/* What a dataset is. Texts are borrowed from it. */
MERCER_API mercer_status mercer_dataset_query(const mercer_dataset *dataset, mercer_dataset_info *info);

/* ---- 7. Fitting ----------------------------------------------------------------------------------------------- */

/* f(x) = sum_j alpha_j K(x, z_j): a kernel function, p centers and their weights (p, c). */
typedef struct mercer_model mercer_model;

/* Models that a model may be the mean of, at most. */
enum { MERCER_MEMBERS = 8 };

/* Called with the progress of the phases "search", "centers", "members" and "calibration". done: of members, the number
   from 0 of the model of a mean that is fitted. error: of the search, its held-out squared error over the variance of
   the targets, else 0. A non-zero result stops the fit, which ends with the model so far, or with MERCER_ERROR_CALLBACK
   if there is none. */
typedef int (*mercer_fit_callback)(void *user, const char *phase, int64_t done, int64_t total, double error);

/*
 * The whole way from a dataset to a model: rows held back, preprocessing, bandwidth, centers, the memory that is left
 * for training, training, calibration. mercer train and the Python estimators are this function: the same data, seed
 * and options give the same model file.
 */
typedef struct mercer_fit_options {
    size_t struct_size;
    const char *kernel;                   /* a text as in section 5; NULL: searched, without a search laplace */
    const mercer_kernel *kernel_function; /* instead of the text */
    double bandwidth;       /* of a text that has none; 0: the median distance between preprocessed samples */
    const char *preprocess; /* none, scale, standardise, minmax, unit, rank (samples.h); NULL or auto: by format */
    /* What is taken away from targets and put back by predictions: none; center, the mean; standardise, the same, and
       they are divided by their deviation; log and rank, of values, standardise their logarithm, or the normal quantile
       of their rank (see mercer_model_set_target_curve): losses are then those of what is learned. Targets of log must
       not be below 0; if one is 0, log(1 + y) is taken. NULL or auto: center for classes, standardise for values. */
    const char *target_transform;
    mercer_dtype precision; /* of weights and training: f32 or f64; 0: f64 for f64 samples, else f32 */

    int64_t centers; /* number of centers; 0: by the effort, at most all rows; -1: every row, in order */
    /* random, kmeans, rpcholesky, balanced (over classes), augmented (samples of `augment`); NULL: random. */
    const char *center_method;
    mercer_dataset *given_centers;           /* instead of chosen ones: in the units of the data */
    mercer_dtype center_type;                /* 0: that of the preprocessed samples */
    int64_t center_iterations, center_batch; /* of kmeans: most rounds, rows of a mini-batch (-1: all); 0: chosen */

    mercer_dataset *validation; /* watched while training; its classes and columns are those of the data */
    /* Instead: this share of the rows is held out. Rows of a group, or without groups rows with equal features, are
       held out together; with times, the latest rows are. Otherwise they are drawn at random. Of a file larger than a
       quarter of the memory, without groups and times, the last rows are held out; of computed samples, later ones. */
    double validation_fraction;
    /* Unless OFF: of up to 1,000,000 stored samples that fit a quarter of the memory, those with equal features and
       targets become one with the sum of their weights: a weight of 2 and a row that occurs twice give the same model.
       Centers are different rows. */
    mercer_switch merge;
    /* Finds the temperature of probabilities on the validation set. ON: without one, too, of at most 5,000 samples by
       cross-validation, of more on a row in twenty, at most 2,000, which are held back. AUTO: if there is one. */
    mercer_switch calibrate;
    const char *augment;                      /* new samples from those read: see mercer_stream_options */
    int64_t samples, height, width, channels; /* in a pass; of images: see there */

    uint64_t seed; /* of everything random */
    /* Bytes for everything but files that are mapped and arrays of the caller's; where devices compute, for training
       alone. 0: half of what is free; what the devices have. */
    int64_t memory;
    /* Of training itself: its seed, memory, classification and validation set are those of the fit. NULL: chosen. */
    const mercer_train_options *train;
    mercer_comm *comm;      /* ranks that share the model; NULL: none */
    int shards;             /* of a plan without comm: see mercer_shape */
    const char *checkpoint; /* that an earlier fit of the same data and options wrote: this one goes on from there */
    mercer_model *model;    /* trained further as it is, and handed out once more: it stays the caller's */
    mercer_fit_callback progress; /* of search, choice of centers and calibration; NULL: none */
    void *progress_user;
    /* The metric of the kernel in preprocessed samples: M (d, d), or weights (1, d); see mercer_preprocess_set_metric.
       NULL: the identity. */
    const mercer_matrix *metric;
    /* ON: the search learns a metric for the given kernel (NULL: laplace) and preprocessing (docs/features.md): a
       linear map of up to 40 features in the L2 norm, else a weight per feature. AUTO: as the search prefers. OFF is
       an alias of AUTO. Kernels must be functions of the L2 or L1 distance that have a name. */
    mercer_switch learn_features;
    /* Keeps errors of rows held back in the model, for mercer_model_interval. ON: without a validation set, too, of a
       row in ten, at most 2,000, which are held back. AUTO: if there is one. */
    mercer_switch intervals;
    /* What weights of samples are multiplied by, those of `validation` too: balanced, so that all classes weigh the
       same in sum; or by name of the class, "cat=2,dog=0.5", 1 for others. NULL or none: nothing. */
    const char *class_weight;
    /* Hyperparameter search (docs/tuning.md): kernel function, weights of the features, bandwidth and ridge, except for
       those that are given. AUTO: for tables of 50 rows or more. ON: also for other samples. OFF: only the ridge;
       train->lambda = -1 is the only way to none. */
    mercer_switch tune;
    /* Effort of search and training, 1 (quick) to 5 (thorough); 0: 3. It sets sizes and numbers of steps, never a time,
       so that equal efforts give equal models. After a search efforts 4 and 5 fit the mean of three models. */
    int effort;
    /* Seconds of wall-clock time for the whole fit; 0: no limit. The largest effort up to `effort` (0: 5) that is
       predicted to fit is taken, and search and training end at the deadline with the best model so far. */
    double budget;
    /* What probabilities are of where class_weight is set: population, the data as they are; weighted, the data as the
       weights make them. NULL: population. Classes are decided by the weighted scores in both cases. */
    const char *calibrate_to;
} mercer_fit_options;

/* Fits a model to data with targets; report may be NULL. Errors: SHAPE, DTYPE, DATA, KERNEL, MEMORY (the message says
   how many centers would fit), NUMERIC, CALLBACK, UNSUPPORTED, IO, MISMATCH (checkpoint, model, validation data or
   given centers of other columns or classes), COMM. */
MERCER_API mercer_status mercer_fit(mercer_model **out, mercer_context *context, mercer_dataset *data,
                                    const mercer_fit_options *options, mercer_fit_report *report);

/* ---- 8. Models ------------------------------------------------------------------------------------------------ */

/* Releases a model. */
MERCER_API void mercer_model_free(mercer_model *model);

/* F = f(X): X is (m, d), F is (m, c) f32 or f64. A row's result does not depend on the other rows. If the model has a
   preprocessing, X is given as it was before it; if it has units of its targets, F is in the units of the targets as
   they were given. A prediction is finite. The content of F is undefined after an error, because rows are computed in
   blocks. Errors: SHAPE, DTYPE, OVERLAP, DATA, NUMERIC (kernel values or predictions overflow), CALLBACK, UNSUPPORTED,
   COMM. */
MERCER_API mercer_status mercer_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X);

/* labels[i] = the output with the largest value at row i of X (the first of equals). Errors: as predict; the content of
   labels is then undefined. */
MERCER_API mercer_status mercer_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X);

/* P = softmax(f(X) / T), (m, c) f32 or f64: probabilities of the classes. T was found in training, on rows held back
   (mercer_fit_options.calibrate); without, it is 0.25: their order is then right, their size is not. Errors: as
   predict; the content of P is then undefined. */
MERCER_API mercer_status mercer_model_probabilities(mercer_model *model, const mercer_matrix *P,
                                                    const mercer_matrix *X);

/* The names of the classes, in the order of the outputs. NULL and *count = 0 if there are none; count may be NULL. */
MERCER_API const char *const *mercer_model_labels(const mercer_model *model, int64_t *count);

/* A model file has the safetensors layout, with checksums: docs/model-file.md. */
typedef struct mercer_save_options {
    size_t struct_size;
    mercer_dtype
        centers; /* type in the file: f64, f32, f16, or u8 if all values are whole numbers 0 .. 255; 0: theirs */
    mercer_dtype weights; /* f64 or f32; 0: theirs */
} mercer_save_options;

/* Writes a model file, to a temporary one beside `path` which takes its name only when all bytes are on disk: there is
   the old file or the new one, never a part. Errors: IO, MISSING (the folder), DTYPE, DATA (values that the type does
   not hold), UNSUPPORTED (a callback kernel), COMM. */
MERCER_API mercer_status mercer_model_save(mercer_model *model, const char *path, const mercer_save_options *options);

/* Reads a model file or checkpoint; every size, offset, type and checksum is checked. The file is mapped: it must not
   be changed in place while the model exists; replacing it (as mercer_model_save does) is fine. Errors: MISSING, IO,
   FORMAT, DATA, KERNEL. */
MERCER_API mercer_status mercer_model_load(mercer_model **out, mercer_context *context, const char *path);

typedef struct mercer_export_options {
    size_t struct_size;
    const char
        *format; /* "c99": a C file without dependencies; "onnx": a graph; NULL: by the ending of path, .c, .onnx */
    const char *name; /* c99: begins the names of the functions; NULL: "model" */
} mercer_export_options;

/* Writes the model as a file that predicts without Mercer, atomically: docs/export.md. Errors: IO, MISSING (the
   folder), UNSUPPORTED (what the format cannot express: a callback kernel, a model that ranks share). */
MERCER_API mercer_status mercer_model_export(mercer_model *model, const char *path,
                                             const mercer_export_options *options);

#ifdef __cplusplus
}
#endif
#endif
