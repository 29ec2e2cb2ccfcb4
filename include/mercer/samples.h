/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * samples.h: samples from files or memory to batches. The rules at the top of mercer.h hold here too.
 *
 *   1. preprocessing    2. datasets    3. sources, streams
 */
#ifndef MERCER_SAMPLES_H
#define MERCER_SAMPLES_H

#include "mercer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Preprocessing ----------------------------------------------------------------------------------------- */

/*
 * What happens to the features of a sample before the kernel sees them:
 *
 *   none
 *   scale:factor=v      x v            v = 1/255 if not given: pixels become 0 .. 1
 *   standardise         (x - mean) / standard deviation, each feature; constant features become 0
 *   minmax              (x - min) / (max - min), each feature; constant features become 0
 *   unit                x / |x|; a row of zeros stays one
 *   rank                the normal quantile of the rank of x, each feature
 *   auto                scale for bytes; minmax for libsvm files; none for f16 and computed data; else standardise
 *
 * Means, ranges and ranks are those of the data it was fitted to. Features that say which level a category has, or that
 * a value is missing (docs/tables.md), are made 0 and 2 by standardise and rank, and stay 0 and 1 for minmax. The
 * result is f64 for f64 data and f32 otherwise.
 */
typedef struct mercer_preprocess mercer_preprocess;

/* Fits one to the samples of a dataset. Errors: SHAPE, DATA. */
MERCER_API mercer_status mercer_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                               mercer_dataset *dataset);
/* The same for a matrix. Errors: DTYPE too. */
MERCER_API mercer_status mercer_preprocess_fit_matrix(mercer_preprocess **out, mercer_context *context,
                                                      const char *spec, const mercer_matrix *X);
/* What auto stands for. format is that of a dataset ("csv", "npy", ...), or NULL: a matrix. Static storage. */
MERCER_API const char *mercer_preprocess_auto(const char *format, mercer_dtype dtype);
MERCER_API void mercer_preprocess_free(mercer_preprocess *preprocess); /* releases one */

/*
 * For `scale` and a function of the distance: K(v x, v z) with bandwidth b is K(x, z) with bandwidth b / v. Changes the
 * kernel in that way; from then on the preprocessing leaves samples as they are, so that bytes stay bytes, and
 * mercer_preprocess_kernel tells the kernel as it was. Does nothing for other kinds and kernels. *folded (may be NULL)
 * tells which. A preprocessing is folded once. Errors: KERNEL.
 */
MERCER_API mercer_status mercer_preprocess_fold(mercer_preprocess *preprocess, mercer_kernel *kernel, int *folded);
/* The kernel before folding; NULL if nothing was folded. */
MERCER_API const mercer_kernel *mercer_preprocess_kernel(const mercer_preprocess *preprocess);
/* The text it was made from, with its numbers ("scale:factor=0.00392..."). */
MERCER_API const char *mercer_preprocess_spec(const mercer_preprocess *preprocess);

/*
 * The metric of the kernel, in preprocessed samples: r^2 = (x - z) M (x - z)' in place of |x - z|^2, and x M z' in
 * place of x.z. metric is M (features, features), symmetric without negative eigenvalues, or the weights of a diagonal
 * one, (1, features) or (features, 1), none below 0; f32 or f64. It becomes the last step of the preprocessing: samples
 * are mapped once, x A with M = A A' and A (features, d'), and solvers know nothing of it. Directions with eigenvalues
 * below 1e-10 of the largest are left out: d' may be less than features. It replaces one that is there. Not for a
 * preprocessing that is folded. Errors: SHAPE, DTYPE, DATA (the message says what was found).
 */
MERCER_API mercer_status mercer_preprocess_set_metric(mercer_preprocess *preprocess, const mercer_matrix *metric,
                                                      int64_t features);
/* A (d, d'), or the diagonal of a diagonal one (1, d), f64, borrowed; 0 rows if there is no metric. */
MERCER_API mercer_matrix mercer_preprocess_metric(const mercer_preprocess *preprocess);
/* How many features samples of `features` have afterwards. preprocess may be NULL: none. */
MERCER_API int64_t mercer_preprocess_width(const mercer_preprocess *preprocess, int64_t features);
/* The type that samples of type `dtype` have afterwards. preprocess may be NULL: none. */
MERCER_API mercer_dtype mercer_preprocess_dtype(const mercer_preprocess *preprocess, mercer_dtype dtype);
/* out = the preprocessed X; as many rows, of the width and the type the functions above tell, or f32 or f64. Errors:
   SHAPE, DTYPE, OVERLAP. */
MERCER_API mercer_status mercer_preprocess_apply(const mercer_preprocess *preprocess, const mercer_matrix *out,
                                                 const mercer_matrix *X);

/* The model's own, copied: applied to X by mercer_model_predict and _classify, kept in model files. The model's centers
   are preprocessed already. NULL: none. Errors: SHAPE. */
MERCER_API mercer_status mercer_model_set_preprocess(mercer_model *model, const mercer_preprocess *preprocess);
MERCER_API const mercer_preprocess *mercer_model_preprocess(const mercer_model *model); /* NULL: none */

/* ---- 2. Datasets ---------------------------------------------------------------------------------------------- */

/* The formats that are read, 0 .. count - 1: the name, and whether files of it may hold samples (targets 0) or targets
   alone (targets 1). NULL and 0 for numbers outside. Static storage; any thread. */
MERCER_API int mercer_format_count(void);
MERCER_API const char *mercer_format_name(int index);
MERCER_API int mercer_format_holds(int index, int targets);

/* The samples (n, d), borrowed; data is NULL if they are synthetic or lie in several files: use mercer_dataset_read. */
MERCER_API mercer_matrix mercer_dataset_samples(const mercer_dataset *dataset);
/* Class numbers (n), borrowed; NULL unless classification with stored labels. */
MERCER_API const int32_t *mercer_dataset_labels(const mercer_dataset *dataset);

/*
 * Samples that are computed when they are read, never stored: sample i is a function of (spec, seed, i). Samples
 * first .. first + rows - 1 of an endless sequence:
 *
 *   digits:noise=v        the ten digits drawn with random strokes: 28 x 28 uint8, 10 classes
 *   spirals:classes=k,noise=v           k interleaved spirals in the plane, f32
 *   teacher:d=D,c=C,centers=P,noise=v,kernel=NAME,bandwidth=b    y = K(x, Z*) alpha* + noise, X normal, f32
 *
 * Errors: SHAPE, KERNEL.
 */
MERCER_API mercer_status mercer_dataset_synthesize(mercer_dataset **out, mercer_context *context, const char *spec,
                                                   int64_t first, int64_t rows, uint64_t seed);
/* A column of a table in memory. The layout is frozen. */
typedef struct mercer_table_column {
    const char *name;         /* NULL, for all columns: they go by position */
    const char *kind;         /* number, boolean, date, category; text: words that may be numbers or dates */
    const double *values;     /* (rows) numbers; booleans as 0 and 1; days since 2000-01-01; NaN: missing */
    const int32_t *codes;     /* (rows) of a category or text instead: which of the words; -1: missing */
    const char *const *words; /* (word_count) */
    int64_t word_count;
} mercer_table_column;

/* Samples without targets made of the columns of a table, as of a file (docs/tables.md): copied. schema: what the table
   was in training, NULL: found from the data; mercer_dataset_info tells it. Errors: MISMATCH, SHAPE, DATA, FORMAT. */
MERCER_API mercer_status mercer_dataset_from_columns(mercer_dataset **out, mercer_context *context,
                                                     const mercer_table_column *columns, int64_t count, int64_t rows,
                                                     const char *schema);
/* A new dataset of rows[0 .. count - 1], count > 0, copied into memory, with the same classes and names.
   Errors: SHAPE. */
MERCER_API mercer_status mercer_dataset_take(mercer_dataset **out, const mercer_dataset *from, const int64_t *rows,
                                             int64_t count);
/* Copies samples rows[0 .. m - 1], or first .. first + m - 1 if rows is NULL, preprocessed (NULL: as they are), into
   X (m, d), and their targets into Y (m, outputs) f32 or f64, one-hot for classes, or NULL; labels (m) gets class
   numbers, or NULL. Errors: SHAPE, DTYPE, OVERLAP. */
MERCER_API mercer_status mercer_dataset_read(const mercer_dataset *dataset, const mercer_matrix *X,
                                             const mercer_matrix *Y, int32_t *labels,
                                             const mercer_preprocess *preprocess, const int64_t *rows, int64_t first);
/* Mean and standard deviation (outputs each) of all targets, one-hot for classes (the mean is then the share of each
   class), as mercer_target_moments tells them; for synthetic samples, of the first 4096. Errors: SHAPE, DATA. */
MERCER_API mercer_status mercer_dataset_target_moments(const mercer_dataset *dataset, double *mean, double *deviation);
/* The error that no model can beat, of synthetic samples whose law is known, as a mean over the first `rows` of them:
   the share of wrong classes for clusters, the mean squared error for a teacher. Errors: UNSUPPORTED (others), SHAPE
   (rows below 1). */
MERCER_API mercer_status mercer_dataset_least_error(const mercer_dataset *dataset, double *out, int64_t rows);
/* A number that changes when shape, type or contents change: hashes all samples, or where they take more than 1 GiB 64
   blocks spread over them, and all targets. */
MERCER_API mercer_status mercer_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out);
/* The same of every byte, whatever the size: reads all of it. Up to 1 GiB it is the fingerprint. */
MERCER_API mercer_status mercer_dataset_checksum(const mercer_dataset *dataset, uint64_t *out);
/* Writes samples (and targets to y_path, unless NULL) as NPY files, atomically; row by row, whatever the size.
   Errors: IO, MISSING. */
MERCER_API mercer_status mercer_dataset_write_npy(const mercer_dataset *dataset, const char *x_path,
                                                  const char *y_path);
/* The same in the format that each name ends in: .npy; .csv and .tsv are text, with a line of names where there are
   any, numbers in the fewest digits that read back as they were, and names of classes. Another ending is refused.
   Errors: IO, MISSING, DATA (a class name that text cannot hold). */
MERCER_API mercer_status mercer_dataset_write(const mercer_dataset *dataset, const char *x_path, const char *y_path);
/* Writes a matrix as an NPY file, atomically. Errors: SHAPE, DTYPE, IO, MISSING. */
MERCER_API mercer_status mercer_matrix_write_npy(mercer_context *context, const mercer_matrix *matrix,
                                                 const char *path);

/* ---- 3. Sources of samples ------------------------------------------------------------------------------------ */

/* A few samples, borrowed until the next call on their source, which sets the fields one by one. */
typedef struct mercer_batch {
    size_t struct_size;    /* set by who asks for the batch */
    mercer_matrix X;       /* (m, d) any dtype, the same in every batch */
    mercer_matrix Y;       /* (m, c) f32 or f64 */
    const double *weights; /* (m) >= 0, or NULL: all 1 */
    /* (m) which samples these are, 0 .. source.rows - 1, or NULL: unknown. Known rows let Mercer keep what it has
       computed for them, and are needed by solvers whose centers are the samples. */
    const int64_t *rows;
} mercer_batch;

/*
 * Where samples come from. Training reads passes ("epochs") of batches. Batches must be independent draws: shuffle
 * well. The functions return 0, or anything else to stop with MERCER_ERROR_CALLBACK; last_error may be NULL.
 */
typedef struct mercer_source {
    size_t struct_size;
    int64_t rows;       /* samples in a pass */
    int64_t features;   /* d */
    int64_t outputs;    /* c */
    mercer_dtype dtype; /* of X */
    /* The next batch begins pass number `epoch`: 0, 1, ...; -1 is the pass that the preconditioner's sample is drawn
       from. */
    int (*restart)(void *user, int64_t epoch);
    int (*next)(void *user, int64_t most, mercer_batch *batch); /* at most `most` rows; 0 rows: the pass is over */
    const char *(*last_error)(void *user);
    void (*release)(void *user); /* may be NULL */
    void *user;
    /* Passes over the next `rows` samples of the pass without making them, after restart; NULL: they are read and
       dropped. Used to resume in the middle of a pass. */
    int (*skip)(void *user, int64_t rows);
} mercer_source;

/*
 * A source over matrices in memory, which are borrowed: X (n, d), Y (n, c) f32 or f64, weights (n) or NULL. Each pass
 * is a fresh random order drawn from seed. Errors: SHAPE, DTYPE, DATA.
 */
MERCER_API mercer_status mercer_source_from_matrices(mercer_source *out, mercer_context *context,
                                                     const mercer_matrix *X, const mercer_matrix *Y,
                                                     const double *weights, uint64_t seed);
/* The same for classification: labels (n) in 0 .. classes - 1 become one-hot rows. */
MERCER_API mercer_status mercer_source_from_labels(mercer_source *out, mercer_context *context, const mercer_matrix *X,
                                                   const int32_t *labels, int64_t classes, const double *weights,
                                                   uint64_t seed);
/* Releases what a source holds, and clears it. */
MERCER_API void mercer_source_free(mercer_source *source);

/*
 * Batches of a dataset, preprocessed, in a random order that is a function of (seed, pass). Rows in memory are shuffled
 * one by one. Files that are mapped and large are read in contiguous blocks in random order, some blocks at a time,
 * rows shuffled among them, by a thread that reads ahead while the caller computes.
 *
 * Augmentation makes new samples of those that are read: sample k of pass e is a function of (seed, e, k). It acts
 * before preprocessing, in the units of the data (0 .. 255 for bytes, which stay bytes, rounded). Parts, joined by "+":
 *
 *   noise:sigma=v       + v N(0, 1) for each feature
 *   shift:pixels=k      the image moved by up to k pixels in each direction, 0 outside
 *   crop:pad=k          k pixels of 0 around the image, then a random window of its size; the same law as shift
 *   flip                the image mirrored left to right, half of the time
 *   mixup:alpha=a       l x + (1 - l) x' with another sample of the same block, l ~ Beta(a, a); targets mixed alike
 */
typedef struct mercer_stream_options {
    size_t struct_size;
    uint64_t seed;
    const mercer_preprocess *preprocess; /* borrowed, outlives the source; NULL: none */
    const char *augment;                 /* NULL: none */
    int64_t height, width, channels;     /* of images, for shift, crop and flip; 0: as the dataset says */
    int64_t samples;                     /* in a pass; 0: as many as rows. More need augmentation or repeat rows. */
    int64_t block;                       /* rows read together; 0: chosen; 1: rows are shuffled one by one */
    mercer_switch prefetch;              /* a thread reads ahead; AUTO: if it pays */
} mercer_stream_options;

/* A source over a dataset, which is borrowed. Targets are one-hot for classification. Errors: SHAPE, UNSUPPORTED. */
MERCER_API mercer_status mercer_source_from_dataset(mercer_source *out, mercer_dataset *dataset,
                                                    const mercer_stream_options *options);

#ifdef __cplusplus
}
#endif

#endif
