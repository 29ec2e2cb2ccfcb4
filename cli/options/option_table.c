/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of options, and lookup in it.
 *
 * The training options are not listed here. The library lists them with names, types and help (mercer_train_option),
 * and cli_options_init adds them to the table.
 */
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

enum {
    READS = CLI_TRAIN | CLI_PREDICT | CLI_EVAL | CLI_PLAN | CLI_CENTERS | CLI_CONVERT |
            CLI_EXPLAIN,                                      /* commands that read data files */
    FINDS = CLI_TRAIN | CLI_PLAN | CLI_CENTERS | CLI_CONVERT, /* commands that infer column kinds */
    LABELED = FINDS | CLI_EVAL | CLI_EXPLAIN,                 /* commands that also read targets */
    FITS = CLI_TRAIN | CLI_PLAN,                              /* commands with training options */
    USES_MODEL = CLI_PREDICT | CLI_EVAL | CLI_EXPLAIN,
    COMPUTES =
        CLI_TRAIN | CLI_PREDICT | CLI_EVAL | CLI_PLAN | CLI_RESUME | CLI_CENTERS | CLI_BENCH | CLI_DEMO | CLI_EXPLAIN,
    ANSWERS = CLI_TRAIN | CLI_RESUME | CLI_EVAL | CLI_PREDICT | CLI_PLAN | CLI_INSPECT | CLI_CENTERS | CLI_CONVERT |
              CLI_SYNTH | CLI_BENCH | CLI_DEMO | CLI_EXPLAIN | CLI_EXPORT, /* commands with --json */
    CONFIGURED = CLI_TRAIN | CLI_PREDICT | CLI_EVAL | CLI_PLAN | CLI_CENTERS | CLI_SYNTH | CLI_CONVERT | CLI_BENCH |
                 CLI_DEMO | CLI_EXPLAIN,
    RANKED = CLI_TRAIN | CLI_RESUME | CLI_PREDICT | CLI_EVAL | CLI_CENTERS, /* commands that can run on several ranks */
    ALL = (1 << 18) - 1
};

const char *const cli_groups[] = {"Data", "Model", "Training", "Augmentation", "Output", "Ranks", "General", NULL};

/* clang-format off */
static const cli_option written[] = {
/*   name, alias, letter, type, metavar, words, default, environment, commands, required, group, help */
    {"x", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, READS, 0, "Data",
     "samples in a format of --format, also .gz, .zst, .xz; - for standard input; a quoted pattern such as "
     "'part-*.npy' reads all matching files as one"},
    {"y", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, LABELED, 0, "Data",
     "targets (classes or values), one row per sample and one column per output; not needed if the file of --x "
     "contains them"},
    {"x-val", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "validation samples, scored during training; patterns as for --x"},
    {"y-val", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN, 0, "Data", "targets of --x-val"},
    {"data", NULL, 0, CLI_INPUT, "DIR", NULL, NULL, NULL, READS, 0, "Data",
     "folder with the files of MNIST (train-images-idx3-ubyte, ...) or of CIFAR; train uses the training files and "
     "validates on the test files"},
    {"part", NULL, 0, CLI_CHOICE, "PART", "train|test", NULL, NULL, CLI_EVAL | CLI_PREDICT | CLI_CENTERS | CLI_CONVERT,
     0, "Data", "part of --data to read (default: train for centers, test for other commands)"},
    {"synth", NULL, 0, CLI_TEXT, "SPEC", "digits|spirals|clusters|teacher", NULL, NULL, READS, 0, "Data",
     "synthetic samples instead of files, with parameters as for mercer synth"},
    {"synth-seed", NULL, 0, CLI_INTEGER, "N", NULL, "0", NULL, READS, 0, "Data", "seed of --synth"},
    {"rows", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, READS & ~CLI_PLAN, 0, "Data",
     "use only N rows; with --synth: number of samples (10000 if not given)"},
    {"rows", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_PLAN, 0, "Data",
     "use only N rows; without data: number of samples"},
    {"rows", NULL, 'n', CLI_INTEGER, "N", NULL, "10000", NULL, CLI_SYNTH, 0, "Data", "number of samples"},
    {"first", NULL, 0, CLI_INTEGER, "N", NULL, "0", NULL, READS | CLI_SYNTH, 0, "Data",
     "first row to use, counted from 0"},
    {"format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|@formats", "auto", NULL, READS, 0, "Data",
     "format of --x; auto: by file name and content"},
    {"y-format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|@target-formats", "auto", NULL, LABELED, 0, "Data",
     "format of --y"},
    {"raw", NULL, 0, CLI_TEXT, "SHAPE", NULL, NULL, NULL, READS, 0, "Data",
     "shape of a raw file: f32:1000x784, or u8:784 (all rows); a suffix @128 skips 128 bytes"},
    {"target", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, READS, 0, "Data",
     "csv: column to predict (name, or index from 0; -1: last), or several as a,b (default: the targets of "
     "the model, or target, label, class, y)"},
    {"header", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, READS, 0, "Data",
     "csv: the first line contains column names; auto: if one of its fields is not a number"},
    {"columns", NULL, 0, CLI_LIST, "NAME:KIND", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: kinds of columns, as in zip:category,id:drop (category, number, boolean, date, date-dmy, date-mdy or drop; "
     "default: from the data)"},
    {"drop", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: columns to ignore (comma-separated; may be repeated)"},
    {"only", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: columns to use as features; all others are ignored"},
    {"weight-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "csv: column of sample weights; not a feature"},
    {"group-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "csv: column of groups, not a feature; the search holds out whole groups"},
    {"time-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "csv: column of numbers or dates, not a feature; the search holds out the latest rows"},
    {"id-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: column of row names, not a feature"},
    {"missing", NULL, 0, CLI_LIST, "WORD", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: words for missing values (added to NA,N/A,NaN,null,? and empty cells; =NA,? replaces them)"},
    {"task", NULL, 0, CLI_CHOICE, "TASK", "auto|classification|regression", "auto", NULL,
     CLI_TRAIN | CLI_PLAN | CLI_CENTERS | CLI_CONVERT, 0, "Data",
     "kind of targets; auto: text and up to 20 distinct whole numbers are classes"},
    {"validation-fraction", NULL, 0, CLI_NUMBER, "V", NULL, "0", NULL, CLI_TRAIN, 0, "Data",
     "share of rows to hold out for validation, at random (the last rows of a large file)"},
    {"features", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, READS & ~CLI_PLAN, 0, "Data",
     "libsvm: number of features (default: largest index in the file)"},
    {"features", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_PLAN, 0, "Data",
     "without data, and for libsvm: number of features (default for libsvm: largest index in the file)"},
    {"outputs", NULL, 0, CLI_INTEGER, "N", NULL, "1", NULL, CLI_PLAN, 0, "Data",
     "without data: number of classes or of target columns"},
    {"data-type", NULL, 0, CLI_CHOICE, "TYPE", "f64|f32|f16|u8", "f32", NULL, CLI_PLAN, 0, "Data",
     "without data: type of the samples"},

    {"model", NULL, 'm', CLI_INPUT, "FILE", NULL, NULL, NULL, USES_MODEL, USES_MODEL, "Model", "model file"},
    {"kernel", NULL, 0, CLI_TEXT, "SPEC", "@kernels", "laplace", NULL, FITS | CLI_CENTERS, 0, "Model",
     "kernel function, such as laplace or laplace:bandwidth=10 (without bandwidth: the value of --bandwidth)"},
    {"bandwidth", NULL, 0, CLI_NUMBER, "V", "auto", "auto", NULL, FITS | CLI_CENTERS, 0, "Model",
     "bandwidth of the kernel function; auto: from the search, or without a search the median distance between "
     "preprocessed samples"},
    {"preprocess", NULL, 0, CLI_TEXT, "SPEC", "auto|none|scale|standardize|minmax|unit|rank", "auto", NULL,
     FITS | CLI_CENTERS, 0, "Model",
     "transform of the features: none, scale (bytes), standardize, minmax (libsvm), unit, rank (long tails); auto: "
     "chosen from the data"},
    {"metric", NULL, 0, CLI_TEXT, "file:PATH", "file:", NULL, NULL, FITS, 0, "Model",
     "metric of the kernel: file with a weight per feature, or with a symmetric matrix M, r^2 = (x - z) M (x - z)'"},
    {"learn-features", NULL, 0, CLI_SWITCH, NULL, NULL, "off", NULL, FITS, 0, "Model",
     "learn a metric for the given kernel and preprocessing"},
    {"tune", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, CLI_TRAIN | CLI_PLAN, 0, "Model",
     "hyperparameter search; auto: on for tables; off: only the ridge is searched"},
    {"effort", NULL, 0, CLI_INTEGER, "N", NULL, "3", NULL, CLI_TRAIN | CLI_PLAN, 0, "Model",
     "effort of search and training, 1 to 5 (1: quick; 5: thorough)"},
    {"budget", NULL, 0, CLI_DURATION, "TIME", NULL, NULL, NULL, CLI_TRAIN, 0, "Model",
     "time limit of the whole command, such as 10s or 2m; selects the largest effort that fits"},
    {"centers", NULL, 'p', CLI_INTEGER, "N", "auto|all", "auto", NULL, FITS | CLI_CENTERS, CLI_CENTERS, "Model",
     "number of centers; all: every row; auto: set by --effort"},
    {"center-method", NULL, 0, CLI_TEXT, "METHOD", "random|kmeans|rpcholesky|balanced|augmented|file:", "random", NULL,
     CLI_TRAIN | CLI_CENTERS, 0, "Model",
     "selection of centers: random, kmeans, rpcholesky, balanced (by class), augmented, file:PATH"},
    {"center-type", NULL, 0, CLI_CHOICE, "TYPE", "auto|f64|f32|f16|u8", "auto", NULL, CLI_TRAIN | CLI_CENTERS, 0,
     "Model", "type of the centers; auto: type of the preprocessed samples, so bytes stay bytes"},
    {"center-iterations", NULL, 0, CLI_INTEGER, "N", "auto", "auto", NULL, CLI_TRAIN | CLI_CENTERS, 0, "Model",
     "kmeans: maximum number of rounds"},
    {"center-batch", NULL, 0, CLI_INTEGER, "N", "auto|all", "auto", NULL, CLI_TRAIN | CLI_CENTERS, 0, "Model",
     "kmeans: rows per mini-batch; all: Lloyd's algorithm on all rows"},
    {"precision", NULL, 0, CLI_CHOICE, "TYPE", "auto|f32|f64", "auto", "MERCER_PRECISION", FITS, 0, "Model",
     "type of the weights and of training; auto: f64 for f64 data, else f32"},

    {"class-weight", NULL, 0, CLI_TEXT, "HOW", "none|balanced|", "none", NULL, CLI_TRAIN, 0, "Model",
     "weights of the classes, multiplied by the sample weights: balanced (inverse frequency), or NAME=WEIGHT,... "
     "(other classes: 1)"},
    {"calibrate-to", NULL, 0, CLI_CHOICE, "WHAT", "population|weighted", "population", NULL, CLI_TRAIN, 0, "Model",
     "with --class-weight: calibrate probabilities to the unweighted or to the weighted classes"},
    {"calibrate", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, CLI_TRAIN, 0, "Model",
     "calibrate probabilities; auto: on, except with --data or --validation-fraction 0"},
    {"intervals", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, CLI_TRAIN, 0, "Model",
     "save errors of held-out rows for predict --interval; auto: if there is a validation set"},
    {"target-transform", NULL, 0, CLI_CHOICE, "HOW", "auto|none|center|standardize|log|rank", "auto", NULL, CLI_TRAIN,
     0, "Model",
     "transform of the targets, undone in predictions; log and rank suit long tails"},

    {.group = "Training"}, /* placeholder: the training options of the library are inserted here */
    {"seed", NULL, 's', CLI_INTEGER, "N", NULL, "0", NULL,
     FITS | CLI_CENTERS | CLI_SYNTH | CLI_BENCH | CLI_DEMO | CLI_EXPLAIN, 0, "Training",
     "random seed; the same seed gives the same result"},

    {"augment", NULL, 0, CLI_TEXT, "SPEC", "noise:|shift:|crop:|flip|mixup:", NULL, NULL, CLI_TRAIN, 0, "Augmentation",
     "random changes of the samples, combined with +: noise:sigma=V, shift:pixels=K, crop:pad=K, flip, mixup:alpha=A"},
    {"samples", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_TRAIN, 0, "Augmentation",
     "samples per epoch (default: number of rows)"},
    {"image", NULL, 0, CLI_TEXT, "HxWxC", NULL, NULL, NULL, CLI_TRAIN, 0, "Augmentation",
     "shape of images for shift, crop and flip, if the file format does not contain it"},

    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN, 0, "Output",
     "model file to write (default: the table's name with .safetensors, in this folder)"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "file to write: .npy, .csv, .tsv, .jsonl (a JSON object per line) or .txt; - for text on stdout (default: csv on "
     "stdout)"},
    {"output-format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|npy|csv|tsv|jsonl|text", "auto", NULL, CLI_PREDICT, 0,
     "Output", "format of --output; auto: by file name"},
    {"id-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "csv: column of row names, copied to the output before the predictions"},
    {"keep", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "csv: more columns of the table to copy to the output (before the predictions; comma-separated, may be repeated)"},
    {"probabilities", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "write the predicted class and the probability of each class; to .npy, only the probabilities"},
    {"interval", NULL, 0, CLI_NUMBER, "LEVEL", NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "write intervals that contain this share of the targets, such as 0.9; for classes, sets of classes; see train "
     "--intervals"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_CENTERS, CLI_CENTERS, "Output",
     "NPY file to write, one center per row"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_SYNTH | CLI_CONVERT, CLI_SYNTH | CLI_CONVERT,
     "Output", "file to write, one sample per row: .npy, or .csv or .tsv with column names"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, "report.html", NULL, CLI_REPORT | CLI_DEMO, 0, "Output",
     "page to write"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_MAN | CLI_COMPLETIONS, 0, "Output",
     "file to write instead of stdout"},
    {"directory", NULL, 0, CLI_OUTPUT, "DIR", NULL, NULL, NULL, CLI_MAN, 0, "Output",
     "folder for the pages of all commands"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_EXPORT, CLI_EXPORT, "Output",
     "file to write: .c or .onnx"},
    {"format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|c99|onnx", "auto", NULL, CLI_EXPORT, 0, "Output",
     "c99: C source that needs only libm, with bitwise equal predictions; onnx: an ONNX graph; auto: by file name"},
    {"name", NULL, 0, CLI_TEXT, "NAME", NULL, "model", NULL, CLI_EXPORT, 0, "Output",
     "c99: prefix of the function names, as in NAME_predict"},
    {"y-output", NULL, 0, CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_SYNTH | CLI_CONVERT, 0, "Output",
     "file for the targets, in the formats of --output"},
    {"scores", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "write the outputs of the model instead of labels"},
    {"gradients", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "sensitivity of the outputs to each feature, from gradients at the samples"},
    {"permutation", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "decrease of R2 or accuracy when a column of the table is permuted among the rows (the default)"},
    {"shap", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "exact Shapley values of the columns for each row, and their mean absolute values"},
    {"interactions", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "with --shap: split the value of each column into its own part and interactions with other columns"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "with --shap: values of each row: .csv, .tsv; - for csv on stdout"},
    {"background", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "with --shap: table with background rows, in the format of --x (default: centers of the model)"},
    {"background-rows", NULL, 0, CLI_INTEGER, "N", NULL, "100", NULL, CLI_EXPLAIN, 0, "Output",
     "with --shap: largest number of background rows; of a table, evenly spaced rows"},
    {"repeats", NULL, 0, CLI_INTEGER, "N", NULL, "5", NULL, CLI_EXPLAIN, 0, "Output",
     "number of permutations per column; the mean and its standard error are reported"},
    {"interval", NULL, 0, CLI_NUMBER, "LEVEL", NULL, "0.9", NULL, CLI_EVAL, 0, "Output",
     "level of the intervals (or sets of classes) whose coverage is reported"},
    {"each", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EVAL, 0, "Output",
     "show the metrics of each class or output"},
    {"confusion", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EVAL, 0, "Output",
     "show the confusion matrix"},
    {"save-centers-as", NULL, 0, CLI_CHOICE, "TYPE", "auto|f64|f32|f16|u8", "auto", NULL, CLI_TRAIN, 0, "Output",
     "type of the centers in the model file; auto: unchanged"},
    {"log", NULL, 0, CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN | CLI_RESUME | CLI_DEMO, 0, "Output",
     "append events to this run log, one JSON object per line; mercer report makes a page from it"},
    {"checkpoint", NULL, 0, CLI_OUTPUT, "DIR", NULL, NULL, NULL, CLI_TRAIN, 0, "Output",
     "folder for checkpoints; mercer resume DIR continues an interrupted run"},
    {"checkpoint-every", NULL, 0, CLI_DURATION, "TIME", NULL, "10m", NULL, CLI_TRAIN | CLI_RESUME, 0, "Output",
     "longest time between two checkpoints: 30s, 10m, 1h"},
    {"verify", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_TRAIN, 0, "Output",
     "with --checkpoint: on resuming, compare every byte of the data, even above 1 GiB"},
    {"force", NULL, 'f', CLI_FLAG, NULL, NULL, NULL, NULL, CLI_TRAIN | CLI_RESUME, 0, "Output",
     "overwrite the model file of the default name; discard an unfinished run in --checkpoint; resume: continue with "
     "changed data files"},
    {"verbose", NULL, 'v', CLI_FLAG, NULL, NULL, NULL, NULL, CLI_TRAIN | CLI_RESUME, 0, "Output",
     "show the search, the plan and each epoch"},
    {"json", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, ANSWERS, 0, "Output",
     "print the result as one JSON object on stdout"},
    {"quick", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_BENCH | CLI_DEMO, 0, "General",
     "smaller sizes, a few seconds"},
    {"phases", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_BENCH, 0, "General",
     "time each phase of a training run, from context creation to the model file, instead of kernel products"},

    {"comm", NULL, 0, CLI_CHOICE, "NAME", "auto|self|mpi", "auto", "MERCER_COMM", RANKED, 0, "Ranks",
     "connection between processes; self: none; auto: mpi under mpirun or srun"},
    {"ranks", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_PLAN, 0, "Ranks",
     "estimate the training on N ranks: network traffic and time, memory per rank"},
    {"network", NULL, 0, CLI_TEXT, "SPEED", NULL, "100Gb/s", NULL, CLI_PLAN, 0, "Ranks",
     "network bandwidth per rank, such as 100Gb/s (bits) or 12.5GB/s (bytes)"},
    {"shards", NULL, 0, CLI_INTEGER, "N", "auto", "auto", NULL, (RANKED | CLI_PLAN) & ~CLI_RESUME, 0, "Ranks",
     "number of shards of the centers, at least one per rank; affects the last digits of results"},
    {"exchange", NULL, 0, CLI_CHOICE, "HOW", "auto|host|nccl", "auto", "MERCER_EXCHANGE", RANKED, 0, "Ranks",
     "transfers between GPUs: direct, or through host memory; auto: nccl if possible"},
    {"deadline", NULL, 0, CLI_DURATION, "TIME", NULL, "60s", "MERCER_DEADLINE", RANKED, 0, "Ranks",
     "timeout for messages of another rank; when it expires, the job ends with code 76"},

    {"threads", NULL, 't', CLI_INTEGER, "N", "auto", "auto", "MERCER_THREADS", COMPUTES, 0, "General",
     "threads per rank; auto: one per processor, divided among the ranks of --device; no effect on results"},
    {"device", NULL, 0, CLI_TEXT, "NAME", "cpu|cuda|cuda:|auto|reference", "cpu", "MERCER_DEVICE", COMPUTES & ~RANKED,
     0, "General",
     "device: cpu, cuda, cuda:N, auto (a GPU if there is one) or reference (slow plain loops)"},
    {"device", NULL, 0, CLI_TEXT, "NAME", "cpu|cuda|cuda:|cuda:all|auto|reference", "cpu", "MERCER_DEVICE", RANKED, 0,
     "General",
     "device: cpu, cuda, cuda:N, auto, reference (slow); cuda:0,cuda:1 or cuda:all for a rank per GPU"},
    {"arithmetic", NULL, 0, CLI_CHOICE, "NAME", "auto|accurate|fast", "auto", "MERCER_ARITHMETIC", COMPUTES, 0,
     "General",
     "arithmetic of float kernel products; fast: half precision on GPUs; auto: fast if held-out rows confirm it"},
    {"memory", NULL, 0, CLI_BYTES, "SIZE", "auto", "auto", "MERCER_MEMORY",
     CLI_TRAIN | CLI_PLAN | CLI_CENTERS | CLI_PREDICT | CLI_EVAL | CLI_CONVERT | CLI_EXPLAIN, 0, "General",
     "memory limit of all ranks, without mapped files: 8G, 16GiB; auto: half of the free memory"},
    {"no-map", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL,
     CLI_TRAIN | CLI_CENTERS | CLI_PREDICT | CLI_EVAL | CLI_CONVERT | CLI_EXPLAIN, 0, "General",
     "read sample files into memory instead of mapping them, so that they may change during the run"},
    {"config", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, CONFIGURED, 0, "General",
     "read options from a JSON object whose keys are long option names; the command line overrides them"},
    {"print-config", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CONFIGURED, 0, "General",
     "print all options as a JSON object for --config and exit"},
    {"color", NULL, 0, CLI_CHOICE, "WHEN", "auto|always|never", "auto", NULL, ALL, 0, "General",
     "colors on a terminal; auto honors NO_COLOR"},
    {"quiet", NULL, 'q', CLI_FLAG, NULL, NULL, NULL, NULL, ALL, 0, "General", "print only warnings and errors"},
    {"help", NULL, 'h', CLI_FLAG, NULL, NULL, NULL, NULL, ALL, 0, "General",
     "show the common options and exit; --help all: all options"},
};
/* clang-format on */
enum { WRITTEN = sizeof written / sizeof written[0] };

const cli_option *cli_options; /* never freed */
int cli_option_count;

/* Short names of the most used training options. */
static const struct {
    const char *name;
    char letter;
} letters[] = {{"epochs", 'e'}};

/* Returns a library name in the program's spelling, '-' instead of '_'. */
static char *with_dashes(const char *name)
{
    char *text = cli_copy(name);
    for (char *at = strchr(text, '_'); at != NULL; at = strchr(at, '_')) *at = '-';
    return text;
}

/* Return the name of entry `index` of a list of the library; NULL after the last entry, "" for an entry to skip. */
static const char *kernel_name(int index)
{
    mercer_kernel_info info = MERCER_INIT(mercer_kernel_info);
    return mercer_kernel_list(&info, index) ? info.name : NULL;
}

static const char *solver_name(int index)
{
    mercer_solver_info info = MERCER_INIT(mercer_solver_info);
    return mercer_solver_list(&info, index) ? info.name : NULL;
}

static const char *projector_name(int index)
{
    mercer_solver_info info = MERCER_INIT(mercer_solver_info);
    return mercer_projector_list(&info, index) ? info.name : NULL;
}

static const char *sample_format(int index)
{
    mercer_format_info info = MERCER_INIT(mercer_format_info);
    if (!mercer_format_list(&info, index)) return NULL;
    return info.samples ? info.name : "";
}

static const char *target_format(int index)
{
    mercer_format_info info = MERCER_INIT(mercer_format_info);
    if (!mercer_format_list(&info, index)) return NULL;
    return info.targets ? info.name : "";
}

/* Returns keywords in which the name of a library list, as in "auto|@formats", is replaced by the entries of the
   list. */
static const char *expand_words(const char *words)
{
    static const struct {
        const char *mark;
        const char *(*name)(int index);
    } lists[] = {{"@kernels", kernel_name},
                 {"@solvers", solver_name},
                 {"@projectors", projector_name},
                 {"@formats", sample_format},
                 {"@target-formats", target_format}};
    const char *mark = words != NULL ? strchr(words, '@') : NULL;
    if (mark == NULL) return words;
    char *text = cli_format("%.*s", mark > words ? (int)(mark - words - 1) : 0, words);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].mark, mark) != 0) continue;
        const char *name;
        for (int k = 0; (name = lists[i].name(k)) != NULL; k++)
            if (*name) text = cli_append(text, "%s%s", *text ? "|" : "", name);
    }
    return text;
}

/* Returns the row of an option listed by the library. */
static cli_option training_option_row(const mercer_option *option)
{
    static const struct {
        cli_type type;
        const char *metavar;
    } kinds[] = {[MERCER_OPTION_INTEGER] = {CLI_INTEGER, "N"},
                 [MERCER_OPTION_NUMBER] = {CLI_NUMBER, "V"},
                 [MERCER_OPTION_SWITCH] = {CLI_SWITCH, NULL},
                 [MERCER_OPTION_NAME] = {CLI_CHOICE, "NAME"}};
    cli_option row = {.name = with_dashes(option->name),
                      .alias = option->alias != NULL ? with_dashes(option->alias) : NULL,
                      .type = kinds[option->type].type,
                      .metavar = kinds[option->type].metavar,
                      .words = option->words,
                      .fallback = option->words != NULL ? "auto" : "0",
                      .commands = FITS,
                      .group = "Training",
                      .help = option->help};
    if (option->type == MERCER_OPTION_NAME)
        row.words = expand_words(strcmp(option->name, "solver") == 0 ? "auto|@solvers" : "auto|@projectors");
    if (option->type >= MERCER_OPTION_SWITCH) row.fallback = "auto";
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (strcmp(option->name, letters[i].name) == 0) row.letter = letters[i].letter;
    return row;
}

void cli_options_init(void)
{
    int listed = 0;
    while (mercer_train_option(listed) != NULL) listed++;
    cli_option *table = cli_allocate(WRITTEN - 1 + listed, sizeof *table);
    cli_options = table;
    for (int i = 0; i < WRITTEN; i++) {
        if (written[i].name != NULL) {
            table[cli_option_count] = written[i];
            table[cli_option_count++].words = expand_words(written[i].words);
            continue;
        }
        for (int k = 0; k < listed; k++) table[cli_option_count++] = training_option_row(mercer_train_option(k));
    }
}

int cli_path_in(const cli_option *option, const char *text)
{
    int takes = option->type == CLI_TEXT && option->words != NULL && cli_has_word(option->words, "file:");
    return takes && strncmp(text, "file:", 5) == 0 ? 5 : 0;
}

/* Compares names, treating '_' and '-' as equal, so that keys of configuration files may use either. */
static int same_name(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b)) return 0;
    return *a == *b;
}

const cli_option *cli_next_option(const cli_command *command, const char *group, const cli_option *before)
{
    for (const cli_option *option = before != NULL ? before + 1 : cli_options; option < cli_options + cli_option_count;
         option++) {
        if ((option->commands & command->bit) != 0 && (group == NULL || strcmp(option->group, group) == 0))
            return option;
    }
    return NULL;
}

const cli_option *cli_find_option(const cli_command *command, const char *name)
{
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;)
        if (same_name(option->name, name) || (option->alias != NULL && same_name(option->alias, name))) return option;
    return NULL;
}

const cli_option *cli_find_letter(const cli_command *command, char letter)
{
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;)
        if (option->letter == letter && letter != '\0') return option;
    return NULL;
}

/* Returns the number of single-character edits between two names, capped at `limit` + 1. Swapping two
   neighboring characters counts as one edit. */
static int edit_distance(const char *a, const char *b, int limit)
{
    enum { LONGEST = 40 };
    int rows[3][LONGEST + 1] = {{0}};
    size_t la = strlen(a), lb = strlen(b);
    if (la > LONGEST || lb > LONGEST) return limit + 1;
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= lb; j++) last[j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[lb] < limit ? last[lb] : (last[lb] == limit ? limit : limit + 1);
}

/* Updates the best match for a typed name. Candidates are names within a few edits of the typed name. Names that start
   with the typed name are candidates too, if it has at least three characters. */
static void compare_name(const char *typed, const char *name, int *least, const char **best)
{
    size_t length = strlen(typed);
    int limit = length < 3 ? 0 : (length < 6 ? 1 : (int)length / 3);
    int distance = edit_distance(typed, name, limit);
    if (distance > limit && (length < 3 || strncmp(typed, name, length) != 0)) return;
    if (distance > limit) distance = limit;
    if (distance >= *least) return;
    *least = distance;
    *best = name;
}

const char *cli_suggest_option(const cli_command *command, const char *name)
{
    const char *best = NULL;
    int least = 1000;
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;)
        compare_name(name, option->name, &least, &best);
    return best;
}

const char *cli_suggest_command(const char *name)
{
    const char *best = NULL;
    int least = 1000;
    for (int i = 0; i < cli_command_count; i++) compare_name(name, cli_commands[i].name, &least, &best);
    return best;
}
