/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of options, and lookup in it.
 *
 * Training options are not listed here: the library lists them (mercer_train_option) with their names, types and help,
 * and they are added to the table at program start.
 */
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

enum {
    READS = CLI_TRAIN | CLI_PREDICT | CLI_EVAL | CLI_PLAN | CLI_CENTERS | CLI_CONVERT |
            CLI_EXPLAIN,                                      /* commands that read data files */
    FINDS = CLI_TRAIN | CLI_PLAN | CLI_CENTERS | CLI_CONVERT, /* commands that infer column kinds */
    LABELLED = FINDS | CLI_EVAL | CLI_EXPLAIN,                /* commands that also read targets */
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
     "samples, in one of the formats of --format, .gz too; a pattern in quotes, as 'part-*.npy', takes all files that "
     "match, in the order of the numbers in their names, as one"},
    {"y", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, LABELLED, 0, "Data",
     "targets: classes or values, one row for each sample, and an output for each column; csv, libsvm and cifar files "
     "have them inside; a pattern as for --x"},
    {"x-val", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "validation samples, watched while training; a pattern as for --x"},
    {"y-val", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN, 0, "Data", "their targets"},
    {"data", NULL, 0, CLI_INPUT, "DIR", NULL, NULL, NULL, READS, 0, "Data",
     "a folder with the four files of MNIST's names (train-images-idx3-ubyte, ...; .gz too), or with the binary files "
     "of CIFAR-10 or CIFAR-100; train uses train-* (data_batch_*, train.bin) and validates on t10k-* (test_batch, "
     "test.bin), the other commands use these"},
    {"part", NULL, 0, CLI_CHOICE, "PART", "train|test", NULL, NULL, CLI_EVAL | CLI_PREDICT | CLI_CENTERS | CLI_CONVERT,
     0, "Data", "which part of --data: training or test files (default: train for centers, test for the others)"},
    {"synth", NULL, 0, CLI_TEXT, "SPEC", "digits|spirals|clusters|teacher", NULL, NULL, READS, 0, "Data",
     "computed samples instead of files: digits, spirals, clusters or teacher, with parameters as for mercer "
     "synth"},
    {"synth-seed", NULL, 0, CLI_INTEGER, "N", NULL, "0", NULL, READS, 0, "Data", "seed of --synth"},
    {"rows", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, READS & ~CLI_PLAN, 0, "Data",
     "use only so many rows; with --synth: how many samples (default there: 10000)"},
    {"rows", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_PLAN, 0, "Data",
     "use only so many rows; without data: the number of samples"},
    {"rows", NULL, 'n', CLI_INTEGER, "N", NULL, "10000", NULL, CLI_SYNTH, 0, "Data", "how many samples to make"},
    {"first", NULL, 0, CLI_INTEGER, "N", NULL, "0", NULL, READS | CLI_SYNTH, 0, "Data",
     "begin at this row, counted from 0"},
    {"format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|@formats", "auto", NULL, READS, 0, "Data",
     "format of --x; auto: by name and content"},
    {"y-format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|@target-formats", "auto", NULL, LABELLED, 0, "Data",
     "format of --y"},
    {"raw", NULL, 0, CLI_TEXT, "SHAPE", NULL, NULL, NULL, READS, 0, "Data",
     "shape of a raw file: f32:1000x784, or u8:784 (as many rows as there are); @128 behind it skips bytes"},
    {"target", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, READS, 0, "Data",
     "csv: the target column, a name of the header or an index from 0; -1 is the last. Several, as a,b or given again: "
     "values, an output for each. Default: with a model, its target; else the one named target, "
     "label, class or y; of --y, all columns"},
    {"header", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, READS, 0, "Data",
     "csv: the first line names the columns; auto: if a field of it is no number"},
    {"columns", NULL, 0, CLI_LIST, "NAME:KIND", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: what columns are, where they look like something else: zip:category,id:drop; kinds are number, boolean, "
     "date, date-dmy, date-mdy, category, drop. Default: found from the data; kept in the model"},
    {"drop", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: columns that are no features, as a,b or given again"},
    {"only", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: the only columns that are features"},
    {"weight-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "csv: column of sample weights; not a feature"},
    {"group-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "csv: column of groups, not a feature: the search holds out whole groups"},
    {"time-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_TRAIN, 0, "Data",
     "csv: column of numbers or dates, not a feature: the search holds out the latest rows"},
    {"id-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: a column that names the rows. It is no feature"},
    {"missing", NULL, 0, CLI_LIST, "WORD", NULL, NULL, NULL, FINDS, 0, "Data",
     "csv: words for missing values, such as -,-999, in addition to NA,N/A,NaN,null,? and empty cells; =NA,? replaces "
     "those. Kept in the model"},
    {"task", NULL, 0, CLI_CHOICE, "TASK", "auto|classification|regression", "auto", NULL,
     CLI_TRAIN | CLI_PLAN | CLI_CENTERS | CLI_CONVERT, 0, "Data",
     "what targets are; auto: text is classes if names repeat, whole numbers are if at most 20 differ (in text: and "
     "each occurs three times on average, or only 2 differ), other numbers are values"},
    {"validation-fraction", NULL, 0, CLI_NUMBER, "V", NULL, "0", NULL, CLI_TRAIN, 0, "Data",
     "hold back this share of the rows for validation: drawn at random, or the last ones of a file too large for "
     "memory; with --synth, further samples"},
    {"features", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, READS & ~CLI_PLAN, 0, "Data",
     "libsvm: number of features (default: the largest index found)"},
    {"features", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_PLAN, 0, "Data",
     "without data: the number of features; libsvm: the same (default: the largest index found)"},
    {"outputs", NULL, 0, CLI_INTEGER, "N", NULL, "1", NULL, CLI_PLAN, 0, "Data",
     "without data: the number of classes, or of columns of the targets"},
    {"data-type", NULL, 0, CLI_CHOICE, "TYPE", "f64|f32|f16|u8", "f32", NULL, CLI_PLAN, 0, "Data",
     "without data: the type of the samples"},

    {"model", NULL, 'm', CLI_INPUT, "FILE", NULL, NULL, NULL, USES_MODEL, USES_MODEL, "Model", "model file"},
    {"kernel", NULL, 0, CLI_TEXT, "SPEC", "@kernels", "laplace", NULL, FITS | CLI_CENTERS, 0, "Model",
     "kernel function, as laplace:bandwidth=10; a bandwidth that is not in the text is that of --bandwidth"},
    {"bandwidth", NULL, 0, CLI_NUMBER, "V", "auto", "auto", NULL, FITS | CLI_CENTERS, 0, "Model",
     "bandwidth of the kernel function; auto: the median distance between preprocessed samples"},
    {"preprocess", NULL, 0, CLI_TEXT, "SPEC", "auto|none|scale|standardise|minmax|unit|rank", "auto", NULL,
     FITS | CLI_CENTERS, 0, "Model",
     "what happens to samples before the kernel sees them; kept in the model. auto: scale (pixels / 255) for bytes, "
     "minmax for libsvm, none for half floats and computed samples, standardise for all other numbers. rank: normal "
     "quantiles of the ranks, for numbers with long tails"},
    {"metric", NULL, 0, CLI_TEXT, "file:PATH", "file:", NULL, NULL, FITS, 0, "Model",
     "metric of the kernel in preprocessed samples: file:PATH with a weight for each feature (one row or column), or a "
     "symmetric matrix M, r^2 = (x - z) M (x - z)'; kept in the model"},
    {"learn-features", NULL, 0, CLI_SWITCH, NULL, NULL, "off", NULL, FITS, 0, "Model",
     "learn a metric for the given kernel and preprocessing"},
    {"tune", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, CLI_TRAIN | CLI_PLAN, 0, "Model",
     "hyperparameter search; auto: for tables; off: only the ridge"},
    {"effort", NULL, 0, CLI_INTEGER, "N", NULL, "3", NULL, CLI_TRAIN | CLI_PLAN, 0, "Model",
     "effort of search and training, 1 (quick) to 5 (thorough)"},
    {"budget", NULL, 0, CLI_DURATION, "TIME", NULL, NULL, NULL, CLI_TRAIN, 0, "Model",
     "time for the whole command, such as 10s or 2m: selects the largest effort that fits"},
    {"centers", NULL, 'p', CLI_INTEGER, "N", "auto|all", "auto", NULL, FITS | CLI_CENTERS, CLI_CENTERS, "Model",
     "number of centers; all: every row; auto: by the effort"},
    {"center-method", NULL, 0, CLI_TEXT, "METHOD", "random|kmeans|rpcholesky|balanced|augmented|file:", "random", NULL,
     CLI_TRAIN | CLI_CENTERS, 0, "Model",
     "how centers are chosen: random, kmeans, rpcholesky, balanced (as many of each class), augmented (samples of "
     "--augment, more than there are rows if asked for), or file:PATH (samples in the units of the data)"},
    {"center-type", NULL, 0, CLI_CHOICE, "TYPE", "auto|f64|f32|f16|u8", "auto", NULL, CLI_TRAIN | CLI_CENTERS, 0,
     "Model", "type of the centers; auto: that of the preprocessed samples, so bytes stay bytes (k-means is rounded)"},
    {"center-iterations", NULL, 0, CLI_INTEGER, "N", "auto", "auto", NULL, CLI_TRAIN | CLI_CENTERS, 0, "Model",
     "kmeans: at most so many rounds"},
    {"center-batch", NULL, 0, CLI_INTEGER, "N", "auto|all", "auto", NULL, CLI_TRAIN | CLI_CENTERS, 0, "Model",
     "kmeans: rows of a mini-batch; all: Lloyd's algorithm on all rows"},
    {"precision", NULL, 0, CLI_CHOICE, "TYPE", "auto|f32|f64", "auto", "MERCER_PRECISION", FITS, 0, "Model",
     "type of the weights and of training; auto: f64 for f64 data, else f32"},

    {"class-weight", NULL, 0, CLI_TEXT, "HOW", "none|balanced|", "none", NULL, CLI_TRAIN, 0, "Model",
     "what samples of a class count: balanced, so that all classes weigh the same in sum; or by name, cat=2,dog=0.5, 1 "
     "for others. Weights of samples are multiplied by it, those held back for validation too"},
    {"calibrate-to", NULL, 0, CLI_CHOICE, "WHAT", "population|weighted", "population", NULL, CLI_TRAIN, 0, "Model",
     "with --class-weight: probabilities of the data as they are, or as the weights make them"},
    {"calibrate", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, CLI_TRAIN, 0, "Model",
     "calibrate probabilities on the validation set or, without one, by cross-validation (more than 5000 rows: on up "
     "to 2000 held-out rows). auto: on, except with --data or --validation-fraction 0"},
    {"intervals", NULL, 0, CLI_SWITCH, NULL, NULL, "auto", NULL, CLI_TRAIN, 0, "Model",
     "keep errors of rows held back in the model, for mercer predict --interval. auto: of the validation set, if there "
     "is one; on: without one of a row in ten, at most 2000"},
    {"target-transform", NULL, 0, CLI_CHOICE, "HOW", "auto|none|center|standardise|log|rank", "auto", NULL, CLI_TRAIN,
     0, "Model",
     "what is taken away from targets, and put back by predictions; kept in the model. center: the mean; standardise: "
     "the mean, and they are divided by their standard deviation; log, rank: the same of their logarithm, or of the "
     "normal quantile of their rank; auto: standardise for values, center for classes"},

    {.group = "Training"}, /* placeholder: the training options of the library are inserted here */
    {"seed", NULL, 's', CLI_INTEGER, "N", NULL, "0", NULL,
     FITS | CLI_CENTERS | CLI_SYNTH | CLI_BENCH | CLI_DEMO | CLI_EXPLAIN, 0, "Training",
     "seed of everything random: the same seed gives the same result"},

    {"augment", NULL, 0, CLI_TEXT, "SPEC", "noise:|shift:|crop:|flip|mixup:", NULL, NULL, CLI_TRAIN, 0, "Augmentation",
     "new samples from those read: noise:sigma=V, shift:pixels=K, crop:pad=K, flip, mixup:alpha=A, joined by +; in the "
     "units of the data"},
    {"samples", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_TRAIN, 0, "Augmentation",
     "samples in an epoch (default: as many as rows)"},
    {"image", NULL, 0, CLI_TEXT, "HxWxC", NULL, NULL, NULL, CLI_TRAIN, 0, "Augmentation",
     "shape of images, for shift, crop and flip, where the file does not tell"},

    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN, CLI_TRAIN, "Output",
     "model file to write (safetensors)"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_PREDICT, CLI_PREDICT, "Output",
     "predictions: .npy, .csv, .tsv, .jsonl (a JSON object a line) or .txt; - for text on stdout"},
    {"output-format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|npy|csv|tsv|jsonl|text", "auto", NULL, CLI_PREDICT, 0,
     "Output", "format of --output; auto: by its name"},
    {"id-column", NULL, 0, CLI_TEXT, "COLUMN", NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "csv: a column of --x that names the rows; it is written before the predictions"},
    {"keep", NULL, 0, CLI_LIST, "COLUMN", NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "csv: further columns of --x that are written before the predictions, as they stand there: a,b, or given again"},
    {"probabilities", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "write the probability of each class beside the class; in an array, alone"},
    {"interval", NULL, 0, CLI_NUMBER, "LEVEL", NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "write intervals that hold this share of the targets, 0.9 or such; for classes, sets of classes. The model must "
     "have been trained with rows held back"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_CENTERS, CLI_CENTERS, "Output",
     "NPY file to write (.npy), centers as rows"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_SYNTH | CLI_CONVERT, CLI_SYNTH | CLI_CONVERT,
     "Output", "file to write, samples as rows: .npy, or text with the names of the columns: .csv, .tsv"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, "report.html", NULL, CLI_REPORT | CLI_DEMO, 0, "Output",
     "page to write"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_MAN | CLI_COMPLETIONS, 0, "Output",
     "file to write instead of stdout"},
    {"directory", NULL, 0, CLI_OUTPUT, "DIR", NULL, NULL, NULL, CLI_MAN, 0, "Output",
     "write the pages of all commands into this folder"},
    {"output", NULL, 'o', CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_EXPORT, CLI_EXPORT, "Output",
     "file to write: .c or .onnx"},
    {"format", NULL, 0, CLI_CHOICE, "FORMAT", "auto|c99|onnx", "auto", NULL, CLI_EXPORT, 0, "Output",
     "c99: a C file without dependencies but libm, with the bits of Mercer; onnx: a graph of operators; auto: by the "
     "name of --output"},
    {"name", NULL, 0, CLI_TEXT, "NAME", NULL, "model", NULL, CLI_EXPORT, 0, "Output",
     "c99: begins the names of the functions: NAME_predict"},
    {"y-output", NULL, 0, CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_SYNTH | CLI_CONVERT, 0, "Output",
     "the same for the targets"},
    {"scores", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_PREDICT, 0, "Output",
     "write the model's outputs instead of labels"},
    {"gradients", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "how much the outputs change with each feature, from their gradients at the samples"},
    {"permutation", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EXPLAIN, 0, "Output",
     "how much R2 or accuracy falls when a column of the table, a category as a whole, is permuted among the rows"},
    {"repeats", NULL, 0, CLI_INTEGER, "N", NULL, "5", NULL, CLI_EXPLAIN, 0, "Output",
     "how often --permutation does so: the mean is told, and its standard error"},
    {"interval", NULL, 0, CLI_NUMBER, "LEVEL", NULL, "0.9", NULL, CLI_EVAL, 0, "Output",
     "tell how many targets lie in the model's intervals of this level, or classes in their sets"},
    {"each", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EVAL, 0, "Output",
     "show the measures of each class, or of each of several outputs"},
    {"confusion", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_EVAL, 0, "Output",
     "show which classes were taken for which"},
    {"save-centers-as", NULL, 0, CLI_CHOICE, "TYPE", "auto|f64|f32|f16|u8", "auto", NULL, CLI_TRAIN, 0, "Output",
     "type of the centers in the model file; auto: as they are"},
    {"log", NULL, 0, CLI_OUTPUT, "FILE", NULL, NULL, NULL, CLI_TRAIN | CLI_RESUME | CLI_DEMO, 0, "Output",
     "write events, one JSON object a line, behind those of a log that is there; mercer report makes a page of the "
     "last run"},
    {"checkpoint", NULL, 0, CLI_OUTPUT, "DIR", NULL, NULL, NULL, CLI_TRAIN, 0, "Output",
     "folder in which the state of training is kept; mercer resume DIR continues"},
    {"checkpoint-every", NULL, 0, CLI_DURATION, "TIME", NULL, "10m", NULL, CLI_TRAIN | CLI_RESUME, 0, "Output",
     "within an epoch, too, a checkpoint after so long: 30s, 10m, 1h"},
    {"verify", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_TRAIN, 0, "Output",
     "with --checkpoint: compare every byte of the data when the run is resumed, also of more than 1 GiB"},
    {"force", NULL, 'f', CLI_FLAG, NULL, NULL, NULL, NULL, CLI_TRAIN | CLI_RESUME, 0, "Output",
     "train: discard an unfinished run in --checkpoint; resume: go on although data files changed"},
    {"json", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, ANSWERS, 0, "Output",
     "print one JSON object on stdout and nothing else there"},
    {"quick", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_BENCH | CLI_DEMO, 0, "General",
     "smaller sizes, a few seconds"},
    {"phases", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CLI_BENCH, 0, "General",
     "where every second of a training goes, from the context to the file, instead of products"},

    {"comm", NULL, 0, CLI_CHOICE, "NAME", "auto|self|mpi", "auto", "MERCER_COMM", RANKED, 0, "Ranks",
     "how processes that were started together find each other; auto: mpi if a launcher (mpirun, srun) started them; "
     "self: each is alone"},
    {"ranks", NULL, 0, CLI_INTEGER, "N", NULL, NULL, NULL, CLI_PLAN, 0, "Ranks",
     "what the training would cost on so many ranks: bytes and seconds on the network, memory of a rank"},
    {"network", NULL, 0, CLI_TEXT, "SPEED", NULL, "100Gb/s", NULL, CLI_PLAN, 0, "Ranks",
     "what a rank can send: 100Gb/s (bits), 12.5GB/s (bytes)"},
    {"shards", NULL, 0, CLI_INTEGER, "N", "auto", "auto", NULL, (RANKED | CLI_PLAN) & ~CLI_RESUME, 0, "Ranks",
     "cut the centers into so many shards; the result depends on their number (in its last digits), not on that of the "
     "ranks, which may be no more. auto: one without ranks, otherwise 8 to 1024 by the number of centers"},
    {"exchange", NULL, 0, CLI_CHOICE, "HOW", "auto|host|nccl", "auto", "MERCER_EXCHANGE", RANKED, 0, "Ranks",
     "how GPUs of different ranks exchange: nccl, from one to the other, or not at all; host, through host memory; "
     "auto: nccl if every rank has a GPU of its own and the module is there"},
    {"deadline", NULL, 0, CLI_DURATION, "TIME", NULL, "60s", "MERCER_DEADLINE", RANKED, 0, "Ranks",
     "give up a rank that has not been heard of for so long: the job ends with code 76"},

    {"threads", NULL, 't', CLI_INTEGER, "N", "auto", "auto", "MERCER_THREADS", COMPUTES, 0, "General",
     "threads to use; auto: one for each processor, shared out over the ranks that --device makes; a number is for "
     "each of them. The result does not depend on it"},
    {"device", NULL, 0, CLI_TEXT, "NAME", "cpu|cuda|cuda:|auto|reference", "cpu", "MERCER_DEVICE", COMPUTES & ~RANKED,
     0, "General",
     "where to compute: cpu; cuda or cuda:N, a GPU; auto, a GPU if there is one, else the CPU; reference, plain loops "
     "in double, slow, to compare with"},
    {"device", NULL, 0, CLI_TEXT, "NAME", "cpu|cuda|cuda:|cuda:all|auto|reference", "cpu", "MERCER_DEVICE", RANKED, 0,
     "General",
     "where to compute: cpu; cuda or cuda:N, a GPU (cuda under mpirun or srun: that of the process's local rank); "
     "auto, a GPU if there is one, else the CPU; reference, plain loops in double, slow, to compare with. A list, as "
     "cuda:0,cuda:1 or cpu,cpu, or cuda:all: "
     "one rank on each, as threads of this process"},
    {"arithmetic", NULL, 0, CLI_CHOICE, "NAME", "auto|accurate|fast", "auto", "MERCER_ARITHMETIC", COMPUTES, 0,
     "General",
     "of kernel products in float; fast: a GPU may round points and kernel values to half precision; auto: accurate, "
     "but that the plan of a training may take fast where the samples do not justify more, and rows held back confirm "
     "it"},
    {"memory", NULL, 0, CLI_BYTES, "SIZE", "auto", "auto", "MERCER_MEMORY",
     CLI_TRAIN | CLI_PLAN | CLI_CENTERS | CLI_PREDICT | CLI_EVAL | CLI_CONVERT | CLI_EXPLAIN, 0, "General",
     "memory to use at most, by all ranks together: 8G, 16GiB; auto: half of what is free, and on GPUs what is free "
     "there but for a margin. What is mapped from files does not count"},
    {"no-map", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL,
     CLI_TRAIN | CLI_CENTERS | CLI_PREDICT | CLI_EVAL | CLI_CONVERT | CLI_EXPLAIN, 0, "General",
     "read files of samples into memory instead of mapping them: what happens to them later does not matter"},
    {"config", NULL, 0, CLI_INPUT, "FILE", NULL, NULL, NULL, CONFIGURED, 0, "General",
     "read options from a JSON object with their long names as keys; what the command line says wins"},
    {"print-config", NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL, CONFIGURED, 0, "General",
     "print all options as such an object and end"},
    {"color", NULL, 0, CLI_CHOICE, "WHEN", "auto|always|never", "auto", NULL, ALL, 0, "General",
     "colours on a terminal; auto honours NO_COLOR"},
    {"quiet", NULL, 'q', CLI_FLAG, NULL, NULL, NULL, NULL, ALL, 0, "General", "say nothing but warnings and errors"},
    {"help", NULL, 'h', CLI_FLAG, NULL, NULL, NULL, NULL, ALL, 0, "General", "show this text and end"},
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

/* Functions that return the name of entry `index` of a list of the library, NULL beyond the last, "" to skip it. */
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

/* Returns keywords with the marker of a library list, as in "auto|@formats", expanded; other keywords unchanged. */
static const char *words_in_full(const char *words)
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
static cli_option row_of(const mercer_option *option)
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
        row.words = words_in_full(strcmp(option->name, "solver") == 0 ? "auto|@solvers" : "auto|@projectors");
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
            table[cli_option_count++].words = words_in_full(written[i].words);
            continue;
        }
        for (int k = 0; k < listed; k++) table[cli_option_count++] = row_of(mercer_train_option(k));
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

/* Returns the number of single-character edits between two names, where swapping two neighbors counts as one; at
   most `limit` + 1. */
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

/* Updates the best match so far: names within a few edits of the typed one, or that start with it (at least three
   characters). */
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
