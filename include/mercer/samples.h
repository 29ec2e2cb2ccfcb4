/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * samples.h: from files and arrays to batches of samples: preprocessing, datasets, sources. The rules at the top of
 * mercer.h apply.
 *
 *   1. preprocessing    2. datasets    3. sources of samples
 *
 * Stability: stable. Later versions add declarations; they do not change or remove any.
 */
#ifndef MERCER_SAMPLES_H
#define MERCER_SAMPLES_H

#include "mercer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Preprocessing ----------------------------------------------------------------------------------------- */

/*
 * A preprocessing: transform of the features of a sample before the kernel is applied. It is specified by a string:
 *
 *   none
 *   scale:factor=v      x v            default v = 1/255: pixels become 0 .. 1
 *   standardize         (x - mean) / standard deviation, per feature; constant features become 0
 *   minmax              (x - min) / (max - min), per feature; constant features become 0
 *   unit                x / |x|; a row of zeros is unchanged
 *   rank                the normal quantile of the rank of x, per feature
 *   auto                scale for bytes; minmax for libsvm files; none for f16 and synthetic data; else standardize
 *
 * check-words: allow spelling -ise (the name of 0.1 and 0.2)
 * "standardise" is an alias of standardize. Means, ranges and ranks come from the data that the preprocessing is fitted
 * to. Indicator features (of a category's levels, or of missing values, docs/tables.md) become 0 and 2 with standardize
 * and rank, and stay 0 and 1 with minmax. The result is f64 for f64 data, otherwise f32.
 */

/* Creates a preprocessing from `spec`, one of the strings above, and fits it to the samples of a dataset. Errors:
   SHAPE, DATA, IO (as mercer_dataset_read). */
MERCER_API mercer_status mercer_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                               mercer_dataset *dataset);
/* Releases a preprocessing. */
MERCER_API void mercer_preprocess_free(mercer_preprocess *preprocess);

/* Description of a preprocessing. Pointers are borrowed from the preprocessing. */
typedef struct mercer_preprocess_info {
    size_t struct_size;
    const char *spec; /* string that specifies the preprocessing, with all parameters ("scale:factor=0.00392...");
                         "none" for none */
    int64_t features; /* number of features that the preprocessing was fitted to; 0: any */
    int64_t width;    /* number of features of preprocessed samples; 0: the same number as before preprocessing */
    int identity;     /* 1: samples are unchanged. 0: preprocessed samples are f64 if the samples are f64, else f32 */
    /* Metric M of the kernel (mercer_fit_options.metric): (x - z) M (x - z)' replaces the squared distance |x - z|^2 of
       two samples, and x M z' replaces x.z. M is symmetric without negative eigenvalues, or given as its diagonal, all
       entries >= 0. The metric is the last step of the preprocessing, so solvers need no code for metrics: samples are
       mapped to x A, where M = A A' and A is (d, d'). Directions with eigenvalues below 1e-10 of the largest are
       dropped, so d' may be less than d. This field is A, f64, or its diagonal (1, d) if M is diagonal. Without a
       metric it has 0 rows. */
    mercer_matrix metric;
    /* A `scale` preprocessing can be folded into the bandwidth of a kernel that is a function of the distance: K(v x, v
       z) with bandwidth b equals K(x, z) with bandwidth b / v. A fit does so, because samples of bytes then need no
       conversion. Samples are unchanged, the model's kernel has bandwidth b / v, and this field is the kernel with
       bandwidth b. NULL: not folded. */
    const mercer_kernel *kernel;
    /* Weights (2, d) of preprocessing blend, f64: of the ranks, then of the standardized values. Only a preprocessing
       that was fitted in this process has them, because model files do not contain them. Otherwise 0 rows. */
    mercer_matrix blend;
} mercer_preprocess_info;

/* Describes a preprocessing; NULL: no preprocessing. */
MERCER_API mercer_status mercer_preprocess_query(const mercer_preprocess *preprocess, mercer_preprocess_info *info);
/* Writes the preprocessed X into out, which has the rows of X and mercer_preprocess_info.width columns.
   Its type is f32, f64, or that of X if samples are unchanged. Errors: SHAPE, DTYPE, OVERLAP. */
MERCER_API mercer_status mercer_preprocess_apply(const mercer_preprocess *preprocess, const mercer_matrix *out,
                                                 const mercer_matrix *X);

/* Sets the preprocessing of a model to a copy. mercer_model_predict and mercer_model_classify apply it to X, and model
   files include it. The model's centers must be preprocessed already. NULL: none. Errors: SHAPE. */
MERCER_API mercer_status mercer_model_set_preprocess(mercer_model *model, const mercer_preprocess *preprocess);

/* ---- 2. Datasets ---------------------------------------------------------------------------------------------- */

/* Description of a file format that can be read. */
typedef struct mercer_format_info {
    size_t struct_size;
    const char *name; /* name of the format; static string */
    int samples;      /* 1: files can contain samples */
    int targets;      /* 1: files can be files of targets only */
} mercer_format_info;

/* Describes file format number `index`, from 0. Returns 1; 0 if there is no such format. Thread-safe. */
MERCER_API int mercer_format_list(mercer_format_info *out, int index);

/* Returns the samples (n, d), borrowed. The field data is NULL if the samples are synthetic or in several files: use
   mercer_dataset_read instead. */
MERCER_API mercer_matrix mercer_dataset_samples(const mercer_dataset *dataset);
/* Returns the class numbers (n), borrowed; NULL unless the task is classification with stored labels. */
MERCER_API const int32_t *mercer_dataset_labels(const mercer_dataset *dataset);

/*
 * Creates a dataset of synthetic samples, which are computed whenever they are read and never stored. Sample i is a
 * function of (spec, seed, i). The dataset has samples first .. first + rows - 1 of an infinite sequence. Kinds:
 *
 *   digits:noise=v        the ten digits drawn with random strokes: 28 x 28 uint8, 10 classes
 *   spirals:classes=k,noise=v           k interleaved spirals in the plane, f32
 *   clusters:d=D,classes=k,centers=P,overlap=s,noise=v    P normal clusters of width s in k classes, f32
 *   teacher:d=D,c=C,centers=P,noise=v,kernel=NAME,bandwidth=b    y = K(x, Z*) alpha* + noise, X normal, f32
 *
 * Errors: SHAPE, KERNEL.
 */
MERCER_API mercer_status mercer_dataset_synthesize(mercer_dataset **out, mercer_context *context, const char *spec,
                                                   int64_t first, int64_t rows, uint64_t seed);
/* A column of a table in memory. The layout is frozen. */
typedef struct mercer_table_column {
    const char *name; /* column name; NULL for all columns: they are matched by position */
    /* number, boolean, date, category, text (words that may be numbers or dates); or, not a feature: target, weight,
       group or time */
    const char *kind;
    const double *values;     /* (rows) numbers, booleans as 0 and 1, dates as days since 2000-01-01; NaN: missing */
    const int32_t *codes;     /* (rows) category and text, instead of values: index into words; -1: missing */
    const char *const *words; /* (word_count) the words of a category or text */
    int64_t word_count;
} mercer_table_column;

/* Creates a dataset from the columns of a table, encoded like a table from a file (docs/tables.md). columns (count) of
   `rows` rows each are copied. Targets are one column of codes, whose words are the classes, or columns of values;
   without them, categories with many levels have no statistics of the targets. schema: schema of the table in training
   (mercer_dataset_info); NULL: detected from the data. For a value that does not fit its column,
   mercer_last_error_field returns what was expected: "columns.date", "columns.number", or "columns.order" if the order
   of day and month is unclear. Errors: MISMATCH, SHAPE, DATA, FORMAT. */
MERCER_API mercer_status mercer_dataset_from_columns(mercer_dataset **out, mercer_context *context,
                                                     const mercer_table_column *columns, int64_t count, int64_t rows,
                                                     const char *schema);
/* Creates a dataset of the rows rows[0 .. count - 1], count > 0, copied into memory, with the same classes and names.
   Errors: SHAPE. */
MERCER_API mercer_status mercer_dataset_take(mercer_dataset **out, const mercer_dataset *from, const int64_t *rows,
                                             int64_t count);
/* Copies samples rows[0 .. m - 1], or first .. first + m - 1 if rows is NULL, into X (m, d), and applies preprocess
   unless it is NULL. Y (m, outputs), f32 or f64, receives the targets, one-hot for classes; labels (m) receives the
   class numbers. Y and labels may be NULL. Errors: SHAPE, DTYPE, OVERLAP, IO (a mapped file was modified while in
   use). */
MERCER_API mercer_status mercer_dataset_read(const mercer_dataset *dataset, const mercer_matrix *X,
                                             const mercer_matrix *Y, int32_t *labels,
                                             const mercer_preprocess *preprocess, const int64_t *rows, int64_t first);
/* Computes the smallest error that any model can reach on synthetic samples of known distribution, as a mean over the
   first `rows` samples: the share of wrong classes for clusters, the mean squared error for a teacher. Errors:
   UNSUPPORTED (other datasets), SHAPE (rows below 1). */
MERCER_API mercer_status mercer_dataset_least_error(const mercer_dataset *dataset, double *out, int64_t rows);
/* Computes a fingerprint, a number that changes if shape, type or contents change. The fingerprint is a hash of all
   targets and all samples; if samples take more than 1 GiB, only 64 evenly spaced blocks are hashed. */
MERCER_API mercer_status mercer_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out);
/* Computes a hash of every byte for any size, which reads all samples. Up to 1 GiB it equals the fingerprint. */
MERCER_API mercer_status mercer_dataset_checksum(const mercer_dataset *dataset, uint64_t *out);
/* Writes the samples to x_path, and the targets to y_path unless it is NULL, atomically, each in the format of its file
   name: .npy, .csv or .tsv; another ending is an error. Works row by row, so datasets may be larger than memory. Text
   files have a header if there are names, numbers with the fewest digits that read back exactly, and class names.
   Errors: IO, MISSING, DATA (a class name that text cannot represent). */
MERCER_API mercer_status mercer_dataset_write(const mercer_dataset *dataset, const char *x_path, const char *y_path);
/* Writes a matrix as an NPY file, atomically. Errors: SHAPE, DTYPE, IO, MISSING. */
MERCER_API mercer_status mercer_matrix_write_npy(mercer_context *context, const mercer_matrix *matrix,
                                                 const char *path);

/* ---- 3. Sources of samples ------------------------------------------------------------------------------------ */

/* A batch of samples, which belong to the source and are valid until its next call. The source sets all fields but
   struct_size. */
typedef struct mercer_batch {
    size_t struct_size;    /* set by the caller that requests the batch */
    mercer_matrix X;       /* (m, d) samples of any dtype, the same in every batch */
    mercer_matrix Y;       /* (m, c) targets, f32 or f64 */
    const double *weights; /* (m) sample weights >= 0; NULL: all 1 */
    /* (m) row numbers of the samples, 0 .. source.rows - 1; NULL: unknown. With row numbers Mercer can cache results
       per sample; solvers whose centers are the samples require row numbers. */
    const int64_t *rows;
} mercer_batch;

/*
 * A source of samples. Training reads it in passes ("epochs") of batches, which must be independent random draws, so
 * shuffle well. The functions return 0 on success; any other result stops training with MERCER_ERROR_CALLBACK, and
 * last_error may then return a message.
 */
typedef struct mercer_source {
    size_t struct_size;
    int64_t rows;       /* number of samples in a pass */
    int64_t features;   /* number of features d */
    int64_t outputs;    /* number of outputs c */
    mercer_dtype dtype; /* element type of X */
    /* Starts pass number `epoch`: 0, 1, ..., or -1 for the pass that the preconditioner's samples are drawn from. */
    int (*restart)(void *user, int64_t epoch);
    /* Fills `batch` with the next samples, at most `most` rows; 0 rows: the pass is over. */
    int (*next)(void *user, int64_t most, mercer_batch *batch);
    const char *(*last_error)(void *user); /* returns the message of the last failure; may be NULL */
    void (*release)(void *user);           /* frees what `user` points to; may be NULL */
    void *user;                            /* passed to all functions */
    /* Skips the next `rows` samples of the pass without producing them, after restart, to resume in the middle of a
       pass. NULL: the samples are read and dropped. */
    int (*skip)(void *user, int64_t rows);
} mercer_source;

/* Initializes *out as a source over arrays in host memory, which are borrowed: X, weights, and Y or labels; labels
   become one-hot targets. Other fields are not used. Each pass has a new random order, determined by seed. Errors:
   SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_source_from_arrays(mercer_source *out, mercer_context *context,
                                                   const mercer_dataset_arrays *arrays, uint64_t seed);
/* Releases the memory of a source and sets all its fields to 0. */
MERCER_API void mercer_source_free(mercer_source *source);

/*
 * How a dataset is read in batches. The order of samples is random, a function of (seed, pass). Rows in memory are
 * shuffled individually. Large mapped files are read in contiguous blocks in random order; a few blocks at a time are
 * in memory, and rows are shuffled among them. A thread reads ahead while the caller computes.
 *
 * Augmentation changes samples randomly while they are read: sample k of pass e is a function of (seed, e, k). It is
 * applied before preprocessing, in the units of the data (0 .. 255 for bytes; the result is rounded to bytes). Parts,
 * joined by "+", act in the given order:
 *
 *   noise:sigma=v       + v N(0, 1) for each feature
 *   shift:pixels=k      the image moved by up to k pixels in each direction, 0 outside
 *   crop:pad=k          k pixels of 0 around the image, then a random window of its size; distributed as shift
 *   flip                the image mirrored left to right, with probability 1/2
 *   mixup:alpha=a       l x + (1 - l) x' with another sample of the same block, l ~ Beta(a, a); targets in the same way
 */
typedef struct mercer_stream_options {
    size_t struct_size;
    uint64_t seed;                       /* seed of order and augmentation */
    const mercer_preprocess *preprocess; /* preprocessing, borrowed: it must outlive the source; NULL: none */
    const char *augment;                 /* augmentation, as above; NULL: none */
    int64_t height, width, channels;     /* image size for shift, crop and flip; 0: the image size of the dataset */
    int64_t samples;        /* samples per pass; 0: number of rows. If larger, rows are augmented or repeat */
    int64_t block;          /* rows read together; 0: default; 1: rows are shuffled individually */
    mercer_switch prefetch; /* thread that reads ahead; AUTO: if samples cost more than a copy */
} mercer_stream_options;

/* Initializes *out as a source over a dataset, which is borrowed. Targets are one-hot for classification. Release it
   with mercer_source_free. Errors: SHAPE, UNSUPPORTED. */
MERCER_API mercer_status mercer_source_from_dataset(mercer_source *out, mercer_dataset *dataset,
                                                    const mercer_stream_options *options);

#ifdef __cplusplus
}
#endif

#endif
