/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mercer.h: the main interface of Mercer: read samples, fit a model, predict, save. Written to be read from the top.
 *
 * Mercer fits general kernel models  f(x) = sum_j alpha_j K(x, z_j)  with any choice of the p centers z_j.
 *
 *   1. version    4. matrix views        7. training
 *   2. status     5. kernel functions    8. fitting
 *   3. context    6. datasets            9. models
 *
 * Stability: stable. Later versions add declarations; they do not change or remove any.
 *
 * This header is complete: a fit needs no other header. <mercer/advanced.h> has the building blocks (kernel products,
 * centers, trainers, fits in steps). It includes <mercer/samples.h>: preprocessing, datasets, sources.
 * <mercer/evaluation.h> has error measures, probabilities and prediction intervals. <mercer/ranks.h> is for several
 * processes that share one model.
 *
 * Rules for every function of the five headers, unless its comment says otherwise:
 *
 *   - It returns a mercer_status. MERCER_OK is 0. mercer_last_error(context) describes the last failure.
 *   - Any call can return MERCER_ERROR_ARGUMENT (a required pointer is NULL, a number is out of range, struct_size is
 *     not set) or MERCER_ERROR_MEMORY. "Errors:" lists the other errors, without the prefix MERCER_ERROR_.
 *   - It never prints, exits or aborts. If it fails, outputs are unchanged and handles to be created are set to NULL.
 *   - A created object is returned through the first argument, `out`. The caller owns it and releases it with the
 *     matching _free function (which accepts NULL). Other functions take the object they work on, then outputs, inputs,
 *     options, and a report, which may be NULL. Returned pointers are borrowed: never free them.
 *   - Structs begin with struct_size, so that new versions can add fields: mercer_plan plan = MERCER_INIT(mercer_plan).
 *     All other fields are then 0, which in options means the default. Options that are NULL have all defaults.
 *     mercer_matrix, mercer_kernel and mercer_table_column have no struct_size: their layout is frozen. The groups of
 *     mercer_fit_options have reserved words instead, which must be 0.
 *   - A context and all objects made from it must be used by one thread at a time. Different contexts are independent.
 *   - Sizes are int64_t. Results are bitwise identical for any number of threads.
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

/* Initializes a struct that begins with struct_size, in C and C++: struct_size is set, all other fields are 0. */
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
#define MERCER_VERSION_MINOR 3
#define MERCER_VERSION_PATCH 0

/* Returns the version of the loaded library, as "major.minor.patch". Static string. Thread-safe. */
MERCER_API const char *mercer_version(void);

/* ---- 2. Status ------------------------------------------------------------------------------------------------ */

/* Status codes: name, value, text. Values never change; new codes are added at the end. */
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

/* Returns a short description of a status, or "unknown status" for other numbers. Static string. Thread-safe. */
MERCER_API const char *mercer_status_string(mercer_status status);

/* A yes-or-no option. AUTO is the default: Mercer decides. */
typedef enum mercer_switch { MERCER_AUTO = 0, MERCER_ON = 1, MERCER_OFF = 2 } mercer_switch;

/* ---- 3. Context ----------------------------------------------------------------------------------------------- */

/* The environment of all computations: backend, number of threads, allocator, log sink, last error, warnings. */
typedef struct mercer_context mercer_context;
/* Ranks: several processes that share a model (ranks.h). */
typedef struct mercer_comm mercer_comm;
/* A preprocessing of samples (samples.h). */
typedef struct mercer_preprocess mercer_preprocess;

/* Levels of log messages, from least to most verbose. */
typedef enum mercer_log_level {
    MERCER_LOG_ERROR = 1,
    MERCER_LOG_WARNING = 2,
    MERCER_LOG_INFO = 3,
    MERCER_LOG_DEBUG = 4
} mercer_log_level;

/* Receives one log line at a time, without a newline. It must not call functions on the same context. */
typedef void (*mercer_log_sink)(void *user, mercer_log_level level, const char *message);

/* Allocator of a context's memory. Both functions are called only from the thread that is inside a Mercer call, never
   from Mercer's worker threads. Both must be set, or both must be NULL, which selects the allocator of the C
   library. */
typedef struct mercer_allocator {
    size_t struct_size;
    /* Returns `bytes` bytes aligned to `alignment` (a power of two); NULL if there is not enough memory. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    /* Releases memory that `allocate` returned; it is never NULL. */
    void (*release)(void *user, void *memory);
    void *user; /* passed to both functions */
} mercer_allocator;

/* Options of a context. NULL or all 0: the CPU, all processors, no log. */
typedef struct mercer_context_options {
    size_t struct_size;
    int threads;         /* number of worker threads; 0: one per processor that this process may use */
    const char *backend; /* "cpu" (default); "cuda" or "cuda:1": a GPU; "auto": a GPU if there is one, else the CPU;
                            "reference": slow scalar code in double, for comparisons */
    const char *isa;     /* instruction set of the CPU: "scalar", "avx2", "avx512", "avx512vnni", "amx"; NULL: the
                            environment variable MERCER_ISA if it is set, else the best that the machine supports */
    const mercer_allocator *allocator; /* memory allocator, copied; NULL: the allocator of the C library */
    mercer_log_sink log;               /* receiver of log lines; NULL: no log */
    void *log_user;                    /* passed to `log` */
    mercer_log_level log_level;        /* most verbose level that is logged; 0: MERCER_LOG_WARNING */
    /* Precision of kernel products in float. "accurate": full float precision. "fast": a GPU may round points and
       kernel values to half precision (relative error about 2e-4). "auto" or NULL: accurate, but the planner may choose
       fast for a training run to save time. It does so only if the rounding error is below the statistical uncertainty
       of the training samples. Training then measures the error on held-out rows, and restarts in accurate mode if the
       error is too large. No effect on the CPU. */
    const char *arithmetic;
    int32_t deferred; /* nonzero: initialize the GPU in a background thread while the caller opens datasets. The first
                         later call that uses the context waits for the GPU, and fails if the GPU cannot be used. 0:
                         mercer_context_create initializes the GPU */
} mercer_context_options;

/* Creates a context; options may be NULL. If it fails, mercer_last_error(NULL) returns the message, which is stored per
   thread. Errors: UNSUPPORTED (the backend, device or instruction set is not available). */
MERCER_API mercer_status mercer_context_create(mercer_context **out, const mercer_context_options *options);

/* Releases a context. All objects made from it must be released first. */
MERCER_API void mercer_context_free(mercer_context *context);

/* Returns the message of the last failed call on this context, or "" if no call has failed. Valid until the next call
   on the context. context NULL: the last failure in this thread of a call that had no context. */
MERCER_API const char *mercer_last_error(const mercer_context *context);

/* Returns the name of the option field that the last failed call rejected, with its group ("epochs",
   "kernel.bandwidth"), or "" if the failure does not concern a single option. context may be NULL, as above. Static
   string. */
MERCER_API const char *mercer_last_error_field(const mercer_context *context);

/*
 * Returns the text of warning `index`, counted from 0 in order of occurrence, or NULL if there are fewer. Warnings
 * report inputs that were ignored, dropped, rounded, guessed or overridden since the context was created or cleared.
 * *field is set to the name of the option or column concerned, or to ""; field may be NULL. At most 64 warnings are
 * recorded; a repeated warning is recorded once. The log sink receives the same texts at level MERCER_LOG_WARNING. Both
 * strings are valid until the next call on the context.
 */
MERCER_API const char *mercer_warning(const mercer_context *context, int index, const char **field);

/* Removes all recorded warnings. */
MERCER_API void mercer_clear_warnings(mercer_context *context);

/* ---- 4. Matrix views ------------------------------------------------------------------------------------------ */

/* Element types of matrices. */
typedef enum mercer_dtype {
    MERCER_F64 = 1, /* double */
    MERCER_F32 = 2, /* float */
    MERCER_F16 = 3, /* IEEE binary16; for storage only, computations use float */
    MERCER_U8 = 4   /* unsigned byte; distances and inner products of two u8 matrices are exact integers */
} mercer_dtype;

/* Location of the elements of a matrix. */
typedef enum mercer_memory {
    MERCER_HOST = 0, /* host memory */
    MERCER_CUDA = 1  /* memory of the GPU that the context computes on */
} mercer_memory;

/*
 * A view of a row-major matrix; it does not own the memory. Element (i, j) is data[i * ld + j]. ld >= cols, in
 * elements, so a view can be a part of a larger matrix. A row is a sample or a center. The layout of this struct is
 * frozen; reserved words must be 0.
 *
 * MERCER_CUDA is accepted, and may be mixed with host memory, by kernel matrices and products, predictions,
 * probabilities, datasets from arrays, batches of sources, and steps of a trainer. Other functions reject it. If a CUDA
 * stream of the caller still writes the data, call mercer_context_wait (advanced.h) first. Results are complete when a
 * call returns.
 */
typedef struct mercer_matrix {
    void *data; /* first element */
    int64_t rows;
    int64_t cols;
    int64_t ld; /* elements from one row to the next */
    mercer_dtype dtype;
    int32_t memory;      /* MERCER_HOST or MERCER_CUDA */
    int64_t reserved[2]; /* must be 0 */
} mercer_matrix;

/* Returns a view of a contiguous matrix in host memory (ld = cols). Does not check its arguments; the functions that
   take the view do. */
MERCER_API mercer_matrix mercer_matrix_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype);

/* ---- 5. Kernel functions -------------------------------------------------------------------------------------- */

/*
 * A kernel function is specified by a string name:parameter=value,... For example, "laplace:bandwidth=10" is exp(-r/10)
 * with the L2 distance r = |x - z|, and "polynomial:degree=2" is (x.z + 1)^2. docs/math.md, section 3, defines all
 * kernel functions; mercer_kernel_list (advanced.h) lists them.
 */

/* Kinds of user-defined kernel functions. */
typedef enum mercer_kernel_id {
    MERCER_KERNEL_CALLBACK_DISTANCE = 100, /* user function of |x - z|, or of (sum |x_k - z_k|^p)^(1/p) */
    MERCER_KERNEL_CALLBACK_INNER = 101     /* user function of x.z, |x|^2 and |z|^2 */
} mercer_kernel_id;

/* Block of a kernel matrix that a user function computes: row i belongs to a row of X, column j to a row of Z. */
typedef struct mercer_kernel_block {
    size_t struct_size;      /* set by Mercer */
    int64_t rows;            /* number of rows */
    int64_t cols;            /* number of columns */
    int64_t ld;              /* distance between rows of `values`, in elements; >= cols */
    double *values;          /* (rows, ld): input: distances or inner products; output: kernel values */
    const double *x_sqnorms; /* (rows) |x|^2; NULL for a function of the distance */
    const double *z_sqnorms; /* (cols) |z|^2; NULL for a function of the distance */
} mercer_kernel_block;

/*
 * Replaces the block's values by kernel values. Returns 0, or any other value to make the call fail with
 * MERCER_ERROR_CALLBACK. It may be called from several threads at once and must be symmetric in x and z.
 */
typedef int (*mercer_kernel_callback)(void *user, const mercer_kernel_block *block);

/* A kernel function: plain data that may be copied, filled by mercer_kernel_parse or mercer_kernel_from_callback. The
   comments name the kernel functions that use a parameter (docs/math.md, section 3). Frozen layout. */
typedef struct mercer_kernel {
    int32_t id;     /* identifies the function; a mercer_kernel_id for a user-defined one */
    int32_t degree; /* polynomial */
    int32_t depth;  /* ntk, nngp: number of layers */
    int32_t reserved0;
    double bandwidth;                /* functions of the distance */
    double gamma;                    /* exppower, exppower-l1 */
    double alpha;                    /* rational-quadratic */
    double scale;                    /* polynomial */
    double offset;                   /* polynomial */
    double bias;                     /* ntk, nngp */
    mercer_kernel_callback callback; /* user-defined function; NULL for a built-in one */
    void *callback_user;             /* passed to `callback` */
    double p;            /* lpq; for a user-defined function of the distance: norm of that distance, 0 for 2 */
    double q;            /* lpq */
    int64_t reserved[2]; /* 0 */
} mercer_kernel;

/* Parses a kernel function, for example "laplace:bandwidth=10". The message of an error lists what is valid. context
   may be NULL (then errors are in mercer_last_error(NULL)). Errors: KERNEL. */
MERCER_API mercer_status mercer_kernel_parse(mercer_kernel *out, mercer_context *context, const char *spec);

/*
 * Writes a kernel as zero-terminated text to `text` (size bytes); mercer_kernel_parse reads it back to the same kernel.
 * *needed (may be NULL) receives the number of bytes required, including the zero. If that exceeds size, the call fails
 * with MERCER_ERROR_ARGUMENT and does not change text. text may be NULL if size is 0. Errors: KERNEL.
 */
MERCER_API mercer_status mercer_kernel_print(mercer_context *context, char *text, size_t size, size_t *needed,
                                             const mercer_kernel *kernel);

/* Makes a kernel from a function of the caller. on: the function's input, MERCER_KERNEL_CALLBACK_DISTANCE or
   MERCER_KERNEL_CALLBACK_INNER. `callback` and `user` must stay valid as long as the kernel is used. */
MERCER_API mercer_status mercer_kernel_from_callback(mercer_kernel *out, mercer_context *context, mercer_kernel_id on,
                                                     mercer_kernel_callback callback, void *user);

/* ---- 6. Datasets ---------------------------------------------------------------------------------------------- */

/* Samples, and usually their targets: class labels or numbers. */
typedef struct mercer_dataset mercer_dataset;

/* Kind of the targets. */
typedef enum mercer_task {
    MERCER_TASK_AUTO = 0, /* classification for names and for integers with at most 20 distinct values (details at
                             mercer_dataset_options), else regression */
    MERCER_TASK_CLASSIFICATION = 1, /* targets are class labels */
    MERCER_TASK_REGRESSION = 2,     /* targets are numbers */
    MERCER_TASK_UNLABELED = 3       /* there are no targets, or they are not read */
} mercer_task;

/*
 * Files that a dataset is read from, and how. Formats:
 *
 *   npy            NumPy arrays: float64, float32, float16, uint8 are mapped unchanged; other integers, big-endian and
 *                  Fortran order are converted in memory. X (n, d), or (n, ...) flattened to (n, d); y (n) or (n, c)
 *   idx, idx.gz    the format of MNIST: uint8 images (n, rows, cols), labels (n)
 *   csv, tsv       text, also .gz: columns of numbers, words, dates and missing values (docs/tables.md); one or several
 *                  target columns of numbers, or one target column of class names
 *   parquet        flat columns, read like a csv file with the same values (docs/tables.md)
 *   libsvm         "label index:value ...", also .gz; stored as a dense matrix. Indices start at 1; if index 0 occurs,
 *                  they start at 0 and a warning is recorded
 *   cifar10,       binary files of CIFAR-10 and CIFAR-100: uint8 images 32 x 32 x 3 with labels. cifar100 reads the
 *   cifar100       fine labels, or the coarse labels if `target` is "coarse"
 *   raw            binary without a header; the field `raw` has the shape
 *   text           targets only, one per line
 *
 * npy, idx, raw and parquet files are memory-mapped: they may be larger than memory, and must not be modified while in
 * use. Compressed files and text are read into memory; zst and xz files need libzstd and liblzma. Names and the labels
 * of idx files are classes. Integers, in integer arrays or in text, are classes if at most 20 of them are distinct; in
 * text each must also occur three times on average, unless only two are distinct. All other targets are values.
 *
 * A pattern such as "part-*.npy" (wildcards * ? [0-9] in the file name, not in the folder) stands for all matching
 * files; if a file with exactly that name exists, only that file is read. Rows of the files are concatenated; numbers
 * in file names are compared as numbers. Results are the same as for a single file. The files must have the same
 * format, columns and type. csv files have a header in the first file only, or in all of them.
 */
typedef struct mercer_dataset_options {
    size_t struct_size;
    const char *x; /* file of samples, a pattern, or several patterns separated by the character 31 (unit separator),
                      which are read as one file; csv, libsvm and cifar files may include the targets */
    const char *y; /* file of targets, or a pattern; NULL: no separate file */
    const char *format;   /* format of x: a name from the list above; NULL or "auto": from file name and content */
    const char *y_format; /* format of y, in the same way */
    const char *raw;      /* raw: type and shape, "f32:1000x784"; or "u8:784", where the number of rows follows from the
                             file size. With "@128" at the end, the first 128 bytes are skipped */
    /* csv: target column of y, or of x if y is NULL: a column name, or an index from 0; -1 is the last column. Several
       columns, separated by commas, are numbers with one output each. NULL: the column named target, label, class or y;
       in the file y, all columns. */
    const char *target;
    mercer_switch header;      /* csv: the first line has column names; AUTO: yes, if this line has text in a column
                                  whose next value is a number */
    mercer_task task;          /* kind of the targets; 0: AUTO */
    int64_t features;          /* libsvm: number of features; 0: the largest index in the file */
    const char *const *labels; /* (label_count) all class names, in the order of the outputs; NULL: the class names in
                                  the data, sorted */
    int64_t label_count;       /* 0 if labels is NULL */
    int64_t first, rows;       /* range to read: `rows` rows from row `first` (from 0) on; rows 0: all remaining rows */
    int64_t memory;            /* limit of the memory for samples, in bytes; larger data are an error; 0: half of the
                                  free memory */
    /* (column_count) names of the features to read, as in mercer_model_info. csv columns are put
       into this order and other columns are not read; a missing column is an error. Data without column names are
       matched by position and must have column_count columns. NULL: all columns. */
    const char *const *columns;
    int64_t column_count; /* 0 if columns is NULL */
    /* csv: column kinds that override the detected ones: "zip:category,id:drop". Kinds are number, boolean, date,
       date-dmy, date-mdy, category and drop; columns are names or indices from 0. NULL: all kinds are detected from the
       data. */
    const char *kinds;
    const char *only;          /* csv: columns to use as features: names or indices, separated by commas; NULL: all */
    const char *weight_column; /* csv: column of sample weights >= 0; not a feature; NULL: none */
    const char *id_column;     /* csv: column that identifies rows; not a feature; NULL: none */
    /* csv: words for missing values, separated by commas, in addition to empty cells and NA,N/A,NaN,null,?; after a
       leading "=", the listed words replace these words. NULL: no further words. */
    const char *missing;
    /* csv: schema of the table that a model was trained on, from mercer_model_info. Columns are found by name
       (without names, by position) and encoded as the same features. NULL: detected from the data. Not together with
       kinds, only or columns. */
    const char *schema;
    /* csv and gz files: size in bytes above which data go to a mapped temporary file (in the folder TMPDIR, else /tmp)
       instead of memory. Smaller data also go to the file if they exceed what is left of `memory`. 0: never. */
    int64_t spill;
    /* csv: column of groups (rows that belong together), or of times (numbers or dates); not a feature. Rows of a group
       are never split between training and held-out rows; with times the latest rows are held out (see
       mercer_fit_search.tune and mercer_fit_validation.fraction). At most one of the two may be set. NULL: none. */
    const char *group_column, *time_column;
    /* MERCER_OFF: files are read into memory, limited by `memory`. AUTO, ON: arrays are mapped. Truncating or modifying
       a mapped file during use is an error if it is detected in time (docs/reliability.md). */
    mercer_switch mapping;
} mercer_dataset_options;

/* Opens a dataset from files; options->x must be set. Error messages name the file with line or offset, the cause and a
   remedy. Errors: MISSING, IO, FORMAT, DATA, DTYPE, SHAPE, MISMATCH (a column is missing). */
MERCER_API mercer_status mercer_dataset_open(mercer_dataset **out, mercer_context *context,
                                             const mercer_dataset_options *options);

/* Samples in arrays of the caller, which are borrowed: they must outlive the dataset and stay unchanged. Names and
   schema are copied. X and Y on a GPU are also copied to host memory: centers and bandwidths are chosen from the copy,
   training steps read X on the GPU. */
typedef struct mercer_dataset_arrays {
    size_t struct_size;
    const mercer_matrix *X;           /* (n, d) samples of any dtype, finite */
    const mercer_matrix *Y;           /* (n, c) numeric targets, f32 or f64; NULL: none; not together with labels */
    const int32_t *labels;            /* (n) class numbers 0 .. classes - 1; NULL: no classes */
    int64_t classes;                  /* number of classes; 0 if labels is NULL */
    const char *const *label_names;   /* (classes) class names, or NULL */
    const char *const *feature_names; /* (d) column names of X, or NULL */
    const double *weights;        /* (n) sample weights >= 0; weight 2 is equivalent to two equal rows; NULL: all 1 */
    const char *schema;           /* schema of the table that X was encoded from; NULL: none */
    const double *groups, *times; /* (n) as group_column and time_column of mercer_dataset_options; NULL: none */
} mercer_dataset_arrays;

/* Creates a dataset from arrays in memory. Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_dataset_from_arrays(mercer_dataset **out, mercer_context *context,
                                                    const mercer_dataset_arrays *arrays);

/* Releases a dataset. */
MERCER_API void mercer_dataset_free(mercer_dataset *dataset);

/* Description of a dataset. Strings and lists are borrowed from the dataset. */
typedef struct mercer_dataset_info {
    size_t struct_size;
    int64_t rows, features, outputs;  /* outputs: number of classes or of target columns; 0 if unlabeled */
    mercer_dtype dtype;               /* element type of the samples */
    mercer_task task;                 /* kind of the targets, never AUTO */
    const char *format;               /* file format (npy, idx, ...), array, columns or synthetic */
    const char *const *labels;        /* (outputs) class names; NULL unless classification */
    const char *const *feature_names; /* (features) column names; NULL if unknown */
    int64_t height, width, channels;  /* image size; 0 if unknown */
    int mapped;                       /* nonzero: samples are read from a mapped file on access */
    int64_t bytes;                    /* size of all samples as stored */
    const char *const *target_names;  /* names of the target columns: 1 for classes, else (outputs); NULL if unknown */
    int64_t unused;                   /* number of columns of the file that are not in `columns` of the options */
    const char *const *unused_names;  /* (unused) names of these columns; NULL if there are none */
    int64_t distinct; /* number of distinct targets if they are integers in one column; 0: other targets or too many */
    const char *schema; /* encoding of the columns of a table, as JSON (docs/tables.md); NULL: plain numbers without
                           missing values */
    int64_t left_out;   /* number of rows of the file that were left out because they have no target */
} mercer_dataset_info;

/* Fills info, whose struct_size must be set. Its pointers are valid as long as the dataset. */
MERCER_API mercer_status mercer_dataset_query(const mercer_dataset *dataset, mercer_dataset_info *info);

/* ---- 7. Training ------------------------------------------------------------------------------------------------ */

/* Progress of a long computation, passed to a progress callback. Training reports at the end of every epoch (or CG
   step), and more often if progress_seconds is set. */
typedef struct mercer_progress {
    size_t struct_size;
    const char *stage;   /* "search", "centers", "training", "members", "calibration", "evaluation" or "importance" */
    int64_t done, total; /* steps of the stage that are done, and in total; 0 in "training". In "members" `done` is the
                            index from 0 of the model that is being fitted */
    double error;        /* "search": held-out squared error over the variance of the targets; "centers": error of the
                            method (mercer_center_report); else 0 */
    /* The fields below are set in stage "training"; they are 0 or NULL in other stages. */
    int64_t epoch;              /* epochs done */
    int64_t epochs;             /* epochs planned */
    int64_t samples;            /* samples processed so far */
    double seconds;             /* seconds since the start of training */
    double train_loss;          /* mean squared error over the epoch, each batch with the weights before its step */
    double train_accuracy;      /* share of correct classes over the epoch; NaN unless classification */
    double validation_loss;     /* mean squared error on the validation set; NaN without a validation set */
    double validation_accuracy; /* share of correct classes; NaN without a validation set or unless classification */
    double projection_residual; /* relative residual of the last projection; 0 if no projection is needed */
    double step;                /* eta / m, the factor of the last step */
    int64_t pass_samples;       /* samples processed in the current epoch; 0 at its end */
    int64_t pass_total;         /* samples per epoch */
    int64_t steps, projections; /* number so far */
    const char *phase;          /* current phase of set-up, for example "eigensystem"; NULL during the epochs. Reported
                                   only with progress_seconds > 0; losses are then NaN */
    double phase_share;         /* share of the phase that is done, 0 to 1; negative: unknown. The last phase of set-up
                                   is "ready", with 1 */
} mercer_progress;

/* Receives progress. A nonzero result stops the computation; the comment of the callback option says what the stopped
   call returns. */
typedef int (*mercer_progress_callback)(void *user, const mercer_progress *progress);

/* Options of training. A field that is 0 or NULL is chosen by Mercer unless its comment says otherwise; the plan
   (mercer_plan) reports the choice and its reason. An option that the solver does not use is an error; a size that
   it does not use is reported in the plan and may be a warning. */
typedef struct mercer_train_options {
    size_t struct_size;
    const char *solver;        /* name of a solver (mercer_solver_list in advanced.h); NULL or "auto": chosen */
    const char *projector;     /* name of a projector (mercer_projector_list); NULL or "auto": chosen */
    int64_t epochs;            /* passes over the samples; cg: largest number of steps (cg stops earlier at a relative
                                  gradient of 1e-4) */
    int64_t batch;             /* m, samples per step */
    int64_t nystrom;           /* s, samples that the preconditioner is computed from */
    int64_t eigenpairs;        /* q, eigenpairs of the preconditioner; -1: none */
    int64_t period;            /* T, batches between projections */
    int64_t projector_nystrom; /* centers that the projector's own preconditioner is computed from */
    int64_t projector_eigenpairs; /* eigenpairs of the projector's own preconditioner */
    int64_t projector_passes;     /* largest number of passes over K(Z, Z) per projection */
    double projector_tolerance;   /* relative residual at which a projection stops */
    int64_t projector_block;      /* centers per block of the projector bgs */
    mercer_switch carry;          /* ON: add the residual of a projection to the next projection */
    double step_factor;           /* gamma of the step rule, between 0 and 1 */
    double lambda;                /* ridge: factor of the penalty alpha' K(Z,Z) alpha. 0: chosen by mercer_fit, none in
                                     a trainer; -1: none */
    mercer_switch average;        /* ON: return the average of the later iterates */
    mercer_switch decay;          /* ON: decrease the step in the later epochs */
    int64_t polish;               /* number of CG steps on the true objective at the end; 0: none */
    uint64_t seed;                /* seed of all random choices; 0 is a valid seed */
    int64_t memory;               /* memory limit of training in bytes, without the caller's data; 0: half of the free
                                     memory */
    mercer_switch cache;          /* cache of K(X, Z); ON: use the cache if it fits into memory */
    mercer_switch classification; /* ON: targets are one-hot classes, and accuracies are reported */
    const mercer_matrix *validation_X; /* (n, d) validation samples, preprocessed, borrowed; NULL: none */
    const mercer_matrix *validation_Y; /* (n, c) targets of the validation samples, borrowed; NULL if and only if
                                          validation_X is NULL */
    int64_t patience; /* stop after this number of epochs without a better validation result, and return the best
                         weights; 0: never. Requires validation_X */
    /* Progress: stage "training". If it stops, the model gets the current weights (with `patience`, the best so far), a
       checkpoint is written if one was requested, and the training returns MERCER_OK. NULL: none. */
    mercer_progress_callback progress;
    void *progress_user; /* passed to `progress` */
    /* > 0: call `progress` also between steps, at least this number of seconds apart (validation results are then NaN),
       and during set-up; 0: only at the end of epochs. */
    double progress_seconds;
    const char *checkpoint; /* file that the state of training is written to, atomically; NULL: none */
    /* Longest time between checkpoints within an epoch, in seconds; 0: 600. Checkpoints are also written at the start,
       before an early end, and at the end of every epoch (cg: step). Some of them are skipped if epochs take less than
       a second or if writing takes long. */
    double checkpoint_seconds;
    const char *checkpoint_note;      /* note that the model in the checkpoint gets; NULL: none */
    const double *validation_weights; /* (rows of validation_X) weights >= 0, borrowed; NULL: all 1 */
    /* ON: auto chooses a solver that runs to convergence: krr, direct or cg. Other solvers are an error. */
    mercer_switch converge;
} mercer_train_options;

/* Capacity of a plan's text in bytes. */
enum { MERCER_PLAN_TEXT = 4096 };

/* Plan of a training run: the values of all options, estimates, and explanations. Fields without a comment have the
   meaning of the field of mercer_train_options with the same name, with the value that was given or chosen; 0 if the
   solver does not use it. */
typedef struct mercer_plan {
    size_t struct_size;
    char solver[16], projector[16];
    int64_t epochs, batch, nystrom, eigenpairs, period;
    int64_t projector_nystrom, projector_eigenpairs, projector_passes, projector_block;
    int carry, average, decay; /* 0 or 1 */
    int cache_data;            /* cache of K(X, Z): 0 none, 1 in the type of the weights, 2 in half precision */
    int cache_centers;         /* cache of K(Z, Z) or its factor: 0, 1 or 2 as above */
    mercer_dtype precision;    /* type of weights and kernel values */
    double step_factor, lambda;
    int64_t bytes;               /* planned peak memory in bytes, without the caller's data and the model */
    double flops, seconds;       /* estimates for the whole training run: operations, wall-clock time */
    char text[MERCER_PLAN_TEXT]; /* explanation of every choice, one line each */
    int64_t changes;             /* bytes at the end of the text that describe changes made by training */
} mercer_plan;

/* Reasons why training ended. */
typedef enum mercer_stop {
    MERCER_STOP_FINISHED = 0, /* all epochs were done, or the solver converged */
    MERCER_STOP_PATIENCE = 1, /* the validation result did not improve for `patience` epochs */
    MERCER_STOP_CALLBACK = 2, /* the progress callback requested a stop */
    MERCER_STOP_BUDGET = 3    /* the time budget of the fit was used up */
} mercer_stop;

/* Report of a training run: counts, results, times. */
typedef struct mercer_report {
    size_t struct_size;
    const mercer_plan *plan; /* plan with the values used; owned by the model, valid until the model is trained again */
    int64_t epochs, samples, steps, projections; /* epochs, samples, steps and projections done; samples: total over all
                                                    epochs */
    double train_loss, train_accuracy; /* mean squared error and share of correct classes in the last epoch, weighted by
                                          the sample weights */
    double validation_loss, validation_accuracy; /* the same measures for the returned weights on the validation set,
                                                    weighted by validation_weights; NaN without a validation set */
    double projection_residual_mean, projection_residual_last; /* relative residuals of the projections: mean, last; for
                                                                  cg, the last relative gradient */
    double tail, beta;                                         /* t = lambda_{q+1} and beta of the step rule */
    int64_t halvings;    /* number of times that the watchdog rolled back and halved the step size */
    mercer_stop stopped; /* reason for the end */
    /* Wall-clock times in seconds. Setup: eigensystems, factors. Forward: kernel values, predictions. Gradient: sums
       over the samples. Projection: onto the centers; for direct and cg, solves with their factors. */
    double seconds, setup_seconds, forward_seconds, gradient_seconds, projection_seconds, validation_seconds;
    double flops;       /* counted operations */
    int64_t peak_bytes; /* peak memory of the context in bytes, without what was allocated before training */
} mercer_report;

/* ---- 8. Fitting ------------------------------------------------------------------------------------------------- */

/* A model f(x) = sum_j alpha_j K(x, z_j): kernel function, p centers z_j and weights alpha (p, c) for c outputs. It may
   also be the mean of several such models (members). */
typedef struct mercer_model mercer_model;

/* Largest number of members of a model. */
enum { MERCER_MEMBERS = 8 };

/*
 * Options of mercer_fit, which does everything from a dataset to a model: holdout split, preprocessing, hyperparameter
 * search, choice of centers, training within the available memory, calibration. `mercer train` and the Python
 * estimators call this function: the same data, seed and options give the same model file.
 *
 *   data         rows and targets                       search   hyperparameter search, effort and time
 *   validation   held-out rows, and their use           train    training, in mercer_train_options
 *   kernel       kernel function                        run      seed, memory, checkpoint, ranks, progress
 *   centers      number and choice of the centers
 *
 * mercer_fit_options options = MERCER_INIT(mercer_fit_options) sets all groups to their defaults. Reserved words are
 * for options of later versions.
 */

/* Rows and targets of a fit. */
typedef struct mercer_fit_data {
    const char *preprocess; /* none, scale, standardize, minmax, unit, rank (samples.h); NULL or auto: by format */
    /* Transform of the targets, which predictions undo. none: unchanged. center: minus the mean. standardize: minus the
       mean, divided by the standard deviation. log, rank (regression only): logarithm, or normal quantile of the rank,
       then standardized (mercer_model_info.target_curve); losses then refer to the transformed targets. log requires
       targets >= 0; if a target is 0, the transform is log(1 + y). NULL or auto: center for classes, standardize for
       values. */
    const char *target_transform;
    /* Factor of the sample weights for each class, also applied to validation rows. balanced: all classes have the same
       total weight. "cat=2,dog=0.5": by class name, 1 for other classes. NULL or none: all 1. */
    const char *class_weight;
    /* Unless OFF: rows with equal features and targets are merged into one with the sum of their weights, so that a
       weight of 2 and a row that occurs twice give the same model. Applies to up to 20,000,000 stored samples, if they
       take at most a quarter of the memory. Centers are distinct rows. */
    mercer_switch merge;
    const char *augment; /* augmentation of samples while they are read: see mercer_stream_options; NULL: none */
    int64_t samples, height, width, channels; /* samples per pass, and image size: see mercer_stream_options */
    int64_t reserved[4];
} mercer_fit_data;

/* Held-out rows of a fit, and what is computed from them. */
typedef struct mercer_fit_validation {
    mercer_dataset *data; /* validation set, scored during training; must have the classes and columns of the training
                             data; NULL: none */
    /* Share of the rows to hold out as validation set, above 0 and below 1; not together with `data`. 0: none. Rows of
       a group, or without groups rows with equal features, are held out together; with times, the latest rows are held
       out; otherwise rows are drawn at random. If a file without groups and times is larger than a quarter of the
       memory, its last rows are held out. For synthetic samples, later samples of the sequence are held out. */
    double fraction;
    /* Fit of temperature and curvature of class probabilities on the validation set. AUTO: only if there is a
       validation set. ON: also without a validation set. Up to 5,000 samples are then cross-validated; of more samples,
       5 % (at most 2,000 rows) are held out. */
    mercer_switch calibrate;
    /* Whether the model stores its errors on held-out rows, for mercer_model_interval. AUTO: only if there is a
       validation set. ON: also without a validation set; then 10 % of the rows (at most 2,000) are held out. */
    mercer_switch intervals;
    /* Distribution that probabilities refer to if class_weight is set. population or NULL: the data without class
       weights. weighted: the data with class weights. Predicted classes follow the weighted scores in both cases. */
    const char *calibrate_to;
    /* Evaluation of predictions for rows that their model was not trained on (mercer_fit_parts.scores). AUTO, OFF:
       none; the caller may evaluate the validation set. ON: also without a validation set. Up to 5,000 stored rows are
       then cross-validated. With more rows, or synthetic samples, rows are held out as for `calibrate`. An exception is
       regression on stored rows: no rows are held out only for a score, because a model that is also trained on these
       rows is better. */
    mercer_switch score;
    int64_t reserved[3];
} mercer_fit_validation;

/* Kernel function of a fit. */
typedef struct mercer_fit_kernel {
    const char *spec; /* kernel function, a string as in section 5; NULL: searched; without a search, laplace */
    const mercer_kernel *function; /* kernel function as a struct, instead of the string; NULL: none */
    double bandwidth;              /* bandwidth > 0 if the string has none; 0: searched, or without a search the median
                                      distance between preprocessed samples */
    /* Metric on preprocessed samples: M (d, d), or weights (1, d); see mercer_preprocess_info. NULL: searched; without
       a search, the identity. */
    const mercer_matrix *metric;
    /* Weights (2, d) of preprocessing blend, each >= 0: of the ranks, then of the standardized values; see
       mercer_preprocess_info. Requires data.preprocess blend and search.tune OFF. NULL: chosen. */
    const mercer_matrix *blend;
    int64_t reserved[3];
} mercer_fit_kernel;

/* Number, choice and type of the centers of a fit. */
typedef struct mercer_fit_centers {
    int64_t count; /* number of centers; 0: by the effort, at most all rows; -1: every row, in order */
    /* Choice of centers: random, kmeans, rpcholesky, balanced (over classes), augmented (samples changed by
       data.augment); NULL: random. */
    const char *method;
    mercer_dataset *given; /* centers to use instead of chosen ones, not preprocessed; NULL: chosen */
    mercer_dtype type;     /* element type of the centers; 0: the type of the preprocessed samples */
    /* kmeans only: largest number of rounds, 0: default; rows of a mini-batch, 0: default, -1: all rows. */
    int64_t iterations, batch;
    int64_t reserved[4];
} mercer_fit_centers;

/* Hyperparameter search of a fit, and the work for search and training (docs/tuning.md). */
typedef struct mercer_fit_search {
    /* Search over kernel function, feature weights, bandwidth and ridge, except those that are given. AUTO: for tables
       with at least 50 distinct rows. ON: also for other samples. OFF: search of the ridge only; to train without any
       ridge, set train->lambda to -1. */
    mercer_switch tune;
    /* ON: search a metric for the given kernel (NULL: laplace) and preprocessing (docs/features.md): with the L2 norm
       and up to 40 features a linear map, otherwise one weight per feature. AUTO: the search decides. OFF: the same as
       AUTO. The kernel must be a built-in function of the L2 or L1 distance. */
    mercer_switch learn_features;
    /* Effort of search and training, 1 (quick) to 5 (thorough); 0: 3. It determines sizes and numbers of steps, not
       times, so equal efforts give equal models. With a search, efforts 4 and 5 fit the mean of
       three models. */
    int effort;
    /* Limit of the wall-clock time of the whole fit, in seconds; 0: none. Mercer uses the largest effort, up to
       `effort` (0: up to 5), whose predicted time fits. At the deadline search and training stop with the best model
       so far. */
    double budget;
    int64_t reserved[4];
} mercer_fit_search;

/* Seed, limits, checkpoint, ranks and progress of a fit. */
typedef struct mercer_fit_run {
    uint64_t seed; /* seed of all random choices */
    /* Limit of memory in bytes, without mapped files and arrays of the caller. On a device it limits training only. 0:
       half of the free memory of the host, or the memory of the devices. */
    int64_t memory;
    mercer_dtype precision; /* type of the weights and of training arithmetic: f32 or f64; 0: f64 for f64 samples, else
                               f32 */
    const char *checkpoint; /* checkpoint file of an earlier fit with the same data and options, to resume it; NULL:
                               none */
    mercer_model *model;    /* model to train further; kernel and centers stay unchanged. *out is then this same handle,
                               which the caller still owns: free it once. NULL: a new model */
    mercer_comm *comm;      /* ranks that share the model (ranks.h); NULL: none */
    int shards;             /* mercer_fit_plan without comm: see mercer_shape */
    /* Progress of all stages. If it stops, the fit returns the model so far, or MERCER_ERROR_CALLBACK if there is none.
       NULL: none. */
    mercer_progress_callback progress;
    void *progress_user; /* passed to `progress` */
    int64_t reserved[4];
} mercer_fit_run;

/* Options of a fit. NULL or all 0: defaults. */
typedef struct mercer_fit_options {
    size_t struct_size;
    mercer_fit_data data;
    mercer_fit_validation validation;
    mercer_fit_kernel kernel;
    mercer_fit_centers centers;
    mercer_fit_search search;
    /* Options of training; NULL: defaults. The fit replaces the fields seed, memory and classification by its own
       values. The fields progress, validation_X and validation_Y must be NULL: use run.progress and `validation`. */
    const mercer_train_options *train;
    mercer_fit_run run;
} mercer_fit_options;

/* Capacity of a kernel specification, in bytes. */
enum { MERCER_KERNEL_TEXT = 256 };

/* Report of a hyperparameter search. */
typedef struct mercer_search_report {
    size_t struct_size;
    const char *skipped;        /* reason why there is no search; NULL: there was or will be a search. Static string */
    double error;               /* held-out squared error over the variance of the targets */
    double ridge;               /* ridge per unit of sample weight */
    double seconds;             /* wall-clock time */
    int64_t rows, held_out;     /* training rows and held-out rows of the final small fits */
    int cut;                    /* 1: the time budget ended the search */
    const mercer_matrix *steps; /* (steps, 4) f64: stage, held-out error, exponent (0: fixed) and ridge of each step;
                                   borrowed from the mercer_fitting; NULL: none, and always after mercer_fit */
    int64_t centers[3];         /* center counts that were scored; 0: none */
    double center_errors[3];    /* held-out errors with these center counts */
    double more_centers;        /* predicted share of the error that doubling the centers would remove; NaN: unknown */
} mercer_search_report;

/* Report of a choice of centers. */
typedef struct mercer_center_report {
    size_t struct_size;
    int64_t iterations; /* kmeans: number of rounds */
    double error;       /* kmeans: mean squared distance of the rows to their nearest center; rpcholesky: share of the
                           trace of K(X, X) that the centers do not explain */
    int64_t reseeded;   /* kmeans: number of empty clusters that got a new center */
    double seconds;     /* wall-clock time */
} mercer_center_report;

/* Results of a fit, as far as they are known. mercer_fitting_decision (advanced.h) returns the decisions and their
   reasons. */
typedef struct mercer_fit_report {
    size_t struct_size;
    /* Reports of the parts: set by the caller, each with its own struct_size; NULL: not needed. */
    mercer_report *training;
    mercer_search_report *search;
    mercer_center_report *choice;           /* choice of the centers */
    int64_t rows, validation_rows, samples; /* training rows; validation rows; samples per epoch */
    int64_t centers, largest_centers;       /* number of centers; if they do not fit into memory, the largest number
                                               that fits, or -1 if no center fits */
    int64_t memory, device_memory;          /* memory: budget of the whole fit, in bytes; device_memory: budget of
                                               training on each rank's device, if several ranks train on devices, else
                                               0 */
    mercer_dtype points;                    /* type of preprocessed samples */
    char kernel[MERCER_KERNEL_TEXT];        /* kernel function, in the units of preprocessed samples */
    char preprocess[64];                    /* preprocessing, as text */
    char center_method[16];                 /* method of the options; or all, given, checkpoint */
    double temperature;       /* T of the probabilities; NaN: not calibrated; 0.25: no rows to calibrate on */
    int effort;               /* effort of search and training, 1 to 5 */
    int64_t members;          /* number of models whose predictions are averaged. Other fields describe the first model,
                                 except for the validation results, which describe the average */
    double predicted_seconds; /* predicted wall-clock time of the fit, by the measured speed of the machine */
    double curvature;         /* curvature of the class scores (evaluation.h); 0: none; NaN: not calibrated */
} mercer_fit_report;

/* Fits a model to a dataset with targets. options and report may be NULL. The dataset may be released after the call.
   Errors: SHAPE, DTYPE, DATA, KERNEL, MEMORY (the message has the number of centers that fit), NUMERIC, CALLBACK,
   UNSUPPORTED, IO, MISMATCH (checkpoint, model, validation data or given centers have other columns or classes),
   COMM. */
MERCER_API mercer_status mercer_fit(mercer_model **out, mercer_context *context, mercer_dataset *data,
                                    const mercer_fit_options *options, mercer_fit_report *report);

/* ---- 9. Models ------------------------------------------------------------------------------------------------ */

/* Releases a model. */
MERCER_API void mercer_model_free(mercer_model *model);

/* Computes predictions F = f(X) for samples X (m, d); F is (m, c), f32 or f64. X must not be preprocessed: the model
   applies its own preprocessing. Predictions are finite and in the original units of the targets. Each row of F
   depends only on the same row of X. After an error the content of F is undefined, because rows are computed in
   blocks. Errors: SHAPE, DTYPE, OVERLAP, DATA, NUMERIC (kernel values or predictions overflow), CALLBACK, UNSUPPORTED,
   COMM. */
MERCER_API mercer_status mercer_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X);

/* Sets labels[i], i < m, to the index of the largest output for row i of X (m, d); the first index if several outputs
   are equal. Errors: as mercer_model_predict; the content of labels is then undefined. */
MERCER_API mercer_status mercer_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X);

/* Computes class probabilities P = softmax((g(f(X)) + class_shift) / T), see mercer_model_info; P is (m, c), f32 or
   f64. Temperature and curvature were fitted to held-out rows (mercer_fit_validation.calibrate). Without calibration T
   is 0.25: the order of the classes is then right, but the values are not calibrated. Errors: as mercer_model_predict;
   the content of P is then undefined. */
MERCER_API mercer_status mercer_model_probabilities(mercer_model *model, const mercer_matrix *P,
                                                    const mercer_matrix *X);

/* Description of a model. Strings and arrays are borrowed from the model, until it is changed or released; parts that
   the model does not have are NULL. */
typedef struct mercer_model_info {
    size_t struct_size;
    int64_t features; /* number of columns of samples. Centers have as many columns, unless a metric maps samples to
                         fewer */
    int64_t outputs;  /* number of outputs c: classes or target columns */
    int64_t size;     /* number of centers, of all ranks together */
    const char *const *labels; /* (label_count) class names, in the order of the outputs */
    int64_t label_count;
    const char *const *feature_names; /* (features) names of the columns of samples */
    const char *const *target_names;  /* (target_count) names of the target columns */
    int64_t target_count;
    const char *schema;                  /* schema of the table that samples are made of, as JSON (docs/tables.md) */
    const char *note;                    /* text that was saved with the model (mercer_model_set_note); "" for none */
    const mercer_kernel *kernel;         /* kernel function */
    const mercer_preprocess *preprocess; /* preprocessing of samples */
    mercer_matrix centers; /* (size, d) centers, which must not be changed; with ranks only this rank's share
                              (ranks.h) */
    mercer_matrix weights; /* (size, c) weights, which may be changed between calls; with ranks only this rank's
                              share */
    const double *target_offset, *target_scale; /* (c) units of the targets (mercer_model_set_targets) */
    /* Monotone transform g of the targets, whose inverse is applied to predictions; offset and scale are then those of
       the transformed targets g(y). "log": g(y) = log(y + shift). "rank": normal quantile of the rank, linear between
       the ranks of the training targets and constant beyond them. */
    const char *target_curve;
    /* Probabilities are softmax((g(f) + class_shift) / temperature), g(f) = asinh(curvature f) / asinh(curvature), or f
       if curvature is 0. A fit with class weights sets the shifts to -temperature log(weight). Probabilities are then
       those of the unweighted population, while the predicted class (the largest score) follows the weights. */
    double temperature;
    int calibrated;            /* 1: the temperature was fitted or set; 0: the temperature is the default, 0.25 */
    const double *class_shift; /* (c) */
    mercer_task interval_task; /* kind of the targets that intervals are for (evaluation.h); UNLABELED: none */
    double interval_rows;      /* effective number of held-out rows that the intervals come from */
    /* (member_count) models whose predictions are averaged: this model, which has the fields above, and others with
       their own kernel, preprocessing, centers and weights. A single model has one member. */
    const mercer_model *const *members;
    int64_t member_count;
    double curvature; /* curvature of the class scores; 0: none */
} mercer_model_info;

/* Describes a model. */
MERCER_API mercer_status mercer_model_query(const mercer_model *model, mercer_model_info *info);

/* Types in a model file, which is a safetensors file with checksums: docs/model-file.md. NULL or all 0: unchanged. */
typedef struct mercer_save_options {
    size_t struct_size;
    mercer_dtype centers; /* type of the centers: f64, f32, f16, or u8 if all are integers 0 .. 255; 0: unchanged */
    mercer_dtype weights; /* type of the weights: f64 or f32; 0: unchanged */
} mercer_save_options;

/* Writes a model file atomically: to a temporary file in the same folder, which is renamed to `path` when all bytes are
   on disk. So `path` is always the complete old or the complete new file. options may be NULL. Errors: IO, MISSING (the
   folder), DTYPE, DATA (values that the type cannot represent), UNSUPPORTED (a callback kernel), COMM. */
MERCER_API mercer_status mercer_model_save(mercer_model *model, const char *path, const mercer_save_options *options);

/* Loads a model from a model file or checkpoint, and verifies every size, offset, type and checksum. The file is
   mapped: it must not be modified while the model exists, but may be replaced, as mercer_model_save does. comm: ranks
   that share the model (ranks.h), each of which maps its share of the file; NULL: only this process. Errors: MISSING,
   IO, FORMAT, DATA, KERNEL, COMM. */
MERCER_API mercer_status mercer_model_load(mercer_model **out, mercer_context *context, mercer_comm *comm,
                                           const char *path);

/* Options of mercer_model_export. NULL: all defaults. */
typedef struct mercer_export_options {
    size_t struct_size;
    const char *format; /* "c99": a C file without dependencies; "onnx": a graph; NULL: by the ending of path, .c or
                           .onnx */
    const char *name;   /* c99: prefix of the function names, a C identifier of at most 63 characters; NULL: "model" */
} mercer_export_options;

/* Exports the model, atomically, as a file that predicts without Mercer: docs/export.md. Errors: IO, MISSING (the
   folder), UNSUPPORTED (not expressible in the format: a callback kernel, a model shared by ranks). */
MERCER_API mercer_status mercer_model_export(mercer_model *model, const char *path,
                                             const mercer_export_options *options);

#ifdef __cplusplus
}
#endif
#endif
