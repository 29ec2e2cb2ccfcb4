/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of commands, and descriptions of the exit codes. */
#include "commands/commands.h"
#include "options/options.h"

#include <string.h>

const cli_command cli_commands[] = {
    {"train", CLI_TRAIN, cli_train, 0, 0, "", "train a model and write it to a file",
     "Reads samples and targets, chooses centers, finds the weights of f(x) = sum_j alpha_j K(x, z_j), and writes one "
     "model file that holds everything prediction needs: kernel function, preprocessing, names of the columns and of "
     "the "
     "classes, centers and weights. Every option but the data and the output has a default; those that say auto are "
     "chosen from the data, and the plan that is shown says what was chosen and why. With --checkpoint a run that is "
     "interrupted or killed is continued by mercer resume, to the same "
     "bytes in the model file.",
     "mercer train --x train.csv --target price -o model.safetensors\n"
     "mercer train --data fashion-mnist --kernel laplace:bandwidth=10 --centers 5000 -o model.safetensors\n"
     "mercer train --x x.npy --y y.npy --x-val xv.npy --y-val yv.npy --centers 20k --checkpoint run --log run.jsonl -o "
     "model.safetensors\n"
     "mercer train --synth digits --rows 20k --centers 1000 -o digits.safetensors",
     NULL, 0},
    {"resume", CLI_RESUME, cli_resume, 1, 1, "DIR", "continue a training that was interrupted",
     "DIR is the folder that was given to mercer train as --checkpoint. The training goes on where its last checkpoint "
     "was written, with the options it was started with, and ends in the same bytes as if it had never stopped. It is "
     "refused if a data file has changed since.",
     "mercer resume run", "DIR", 0},
    {"predict", CLI_PREDICT, cli_predict, 0, 0, "", "labels or values for new samples",
     "Writes one row for each sample: the label if the model is a classifier, the values if not. As .npy, labels that "
     "are whole numbers become int64 and other names become text; values are float32 or float64 with the shape (n, "
     "outputs), or (n) for one output. As .csv, .tsv, .jsonl or .txt, or on stdout, a line is a sample; .csv and .tsv "
     "begin with a line of names where the model knows them: price_predicted for a target price. --probabilities adds "
     "those of all classes, "
     "--interval "
     "0.9 the ends of intervals, or sets of classes, that hold nine of ten targets; --id-column and --keep write "
     "columns of a csv file before the predictions. Columns of a table "
     "are found by the names they had in training, in any order; others are ignored, a missing one is an error. "
     "Without names, in the data or the model, they go by position. Files may be larger than memory.",
     "mercer predict -m model.safetensors --x new.npy -o labels.npy\n"
     "mercer predict -m model.safetensors --x new.csv --scores -o -\n"
     "mercer predict -m model.safetensors --x new.csv --id-column id --interval 0.9 -o prices.csv",
     NULL, 0},
    {"eval", CLI_EVAL, cli_eval, 0, 0, "", "how good a model is on labeled samples",
     "Accuracy is the share of samples whose label is the one predicted; mse is the mean of (f(x) - y)^2 over samples "
     "and outputs, with y one-hot for a classifier. Of values: rmse, mae, r2 and quantiles of the absolute error. Of "
     "classes, by their probabilities: AUC (of more than two classes the mean over each against the rest), log loss, "
     "Brier score, F1 (the mean over classes) and calibration error. Of models with intervals: the share of targets in "
     "them. Targets are read from the column that was the target in training, unless --target or --y name another. "
     "docs/math.md has the formulas. With --json: these names, rows, seconds, and each and confusion if asked "
     "for.",
     "mercer eval -m model.safetensors --x test.csv\n"
     "mercer eval -m model.safetensors --x test.npy --y labels.npy --json\n"
     "mercer eval -m model.safetensors --data fashion-mnist --confusion",
     NULL, 0},
    {"plan", CLI_PLAN, cli_plan, 0, 0, "", "show what training would do, need and take",
     "Plans without training, from data or from sizes alone. If the memory is too small, it says how many centers "
     "would "
     "fit and ends with code 1.",
     "mercer plan --data fashion-mnist --centers 20k --memory 8G\n"
     "mercer plan --rows 5M --features 784 --outputs 10 --centers 100k --data-type u8 --json",
     NULL, 0},
    {"inspect", CLI_INSPECT, cli_inspect, 1, 1, "FILE", "show what is in a model file, and check it",
     "Shows shapes, types, kernel function, preprocessing, classes and the summary of the training. Every size, offset "
     "and checksum of the file is checked; a damaged file ends with code 65. A checkpoint is a model file too.",
     "mercer inspect model.safetensors", "FILE", 0},
    {"explain", CLI_EXPLAIN, cli_explain, 0, 0, "", "what a model's outputs depend on",
     "With --permutation: how much R2, or accuracy, falls when a column of the table is permuted among the rows, which "
     "need their targets. A category is permuted as a whole. Columns that carry the same information share it. "
     "With --gradients: the mean absolute and the root mean squared derivative of the outputs in each feature over the "
     "samples, summed over the outputs, in the units of the data; and the same times the standard deviation of the "
     "feature, by which features are sorted. Gradients tell what the model reacts to near the samples; features that "
     "carry the same information share it. Kernels of the inner product have none here.",
     "mercer explain -m model.safetensors --x test.csv --permutation\n"
     "mercer explain -m model.safetensors --x test.csv --gradients\n"
     "mercer explain -m model.safetensors --x test.npy --gradients --json",
     NULL, 0},
    {"export", CLI_EXPORT, cli_export, 1, 1, "MODEL", "write a model as a C file or an ONNX graph",
     "MODEL is a model file. As c99: one C file with preprocessing, the columns of a table and their categories, "
     "centers, "
     "weights, units of the targets and names of the classes, which needs nothing but libm and predicts the same bits "
     "as Mercer's CPU backend. As onnx: a graph for other runtimes, which agrees to 1e-5; of a table, features are its "
     "input. docs/export.md says what is in them.",
     "mercer export model.safetensors -o model.c\n"
     "mercer export model.safetensors --format onnx -o model.onnx",
     "FILE", 0},
    {"centers", CLI_CENTERS, cli_centers, 0, 0, "", "choose centers and write them to a file",
     "Chooses rows (random, rpcholesky, balanced) or means of rows (kmeans) and writes them as NPY, in the units of "
     "the "
     "data, for --center-method file:PATH of mercer train or for other programs. Preprocessing is none by default, "
     "except that bytes are scaled for the sake of the kernel's bandwidth, which does not change their units.",
     "mercer centers --x x.npy --centers 1000 --center-method kmeans -o centers.npy", NULL, 0},
    {"synth", CLI_SYNTH, cli_synth, 1, 1, "SPEC", "make synthetic data",
     "Sample i is a function of the specification, the seed and i, so that any part of an endless sequence can be "
     "made: "
     "digits:noise=V (the ten digits in random strokes, 28 x 28 bytes), spirals:classes=K,noise=V (in the plane), "
     "teacher:d=D,c=C,centers=P,noise=V,kernel=NAME,bandwidth=B (values of a kernel model), "
     "clusters:d=D,classes=K,centers=P,overlap=V,noise=V (P normal clusters of deviation `overlap` around normal "
     "centers, class j mod K; a share `noise` of the labels is drawn anew). Of the last two the least error that any "
     "model can have is known, and told.",
     "mercer synth digits --rows 20k --seed 1 -o digits.npy --y-output labels.npy\n"
     "mercer synth teacher:d=20,c=1,centers=100,noise=0.1 -o x.npy --y-output y.npy",
     "digits|spirals|clusters|teacher", 0},
    {"convert", CLI_CONVERT, cli_convert, 0, 0, "", "write data in any format that is read as NPY or a table",
     "Reads samples (and targets) and writes them in the format that the name of the file ends in. NPY: samples in the "
     "type they have, classes as whole numbers if their names are, else as text, values as they are. CSV and TSV: a "
     "line of names where there are any, numbers in the fewest digits that read back as they were, names of classes.",
     "mercer convert --x data.csv.gz --target label -o x.npy --y-output y.npy", NULL, 0},
    {"bench", CLI_BENCH, cli_bench, 0, 1, "[gpu]", "measure the speed of this machine",
     "Times fused kernel products at a few shapes and a small training on computed digits. With gpu: on a GPU, in "
     "each "
     "arithmetic and type of points, beside X Z' alone by cuBLAS in the same run; copies between host and device; and "
     "where the time of a training goes.",
     "mercer bench\nmercer bench --quick --json\nmercer bench gpu", "gpu", 0},
    {"demo", CLI_DEMO, cli_demo, 0, 0, "", "more data and more centers, shown in a minute",
     "Trains on computed digits: a fixed number of centers with more and more data, then more and more centers, beside "
     "a model that only uses the labels of its centers. Ends in a table and a page.",
     "mercer demo -o report.html", NULL, 0},
    {"report", CLI_REPORT, cli_report, 1, 1, "LOG", "make a page of plots from a run's log",
     "Makes one HTML file, without scripts and without anything from elsewhere, from what mercer train --log wrote.",
     "mercer report run.jsonl -o report.html", "FILE", 0},
    {"completions", CLI_COMPLETIONS, cli_completions, 1, 1, "SHELL", "print completions for bash, zsh or fish",
     "Installed with the program; or: source <(mercer completions bash).", "mercer completions bash", "bash|zsh|fish",
     0},
    {"man", CLI_MAN, cli_man, 0, 1, "[COMMAND]", "print a manual page",
     "Prints the source of a manual page, for man -l.", "mercer man train | man -l -", NULL, 1},
    {"help", CLI_HELP, cli_help, 0, 1, "[COMMAND]", "show what a command does", "The same as mercer COMMAND --help.",
     "mercer help train", NULL, 0},
};
const int cli_command_count = (int)(sizeof cli_commands / sizeof cli_commands[0]);

const char *const cli_exit_codes[][2] = {
    {"0", "success"},
    {"1", "failure: training broke down, or the memory is too small"},
    {"2", "usage: an option, command or configuration is wrong"},
    {"65", "bad data: a file is damaged, or its contents do not fit"},
    {"66", "an input file does not exist"},
    {"70", "internal error: please report it"},
    {"74", "reading or writing a file failed (disk full, no permission)"},
    {"75", "interrupted; a checkpoint was written: mercer resume continues"},
    {"76", "another rank died, stopped or was started differently; mercer resume continues from the last checkpoint"},
    {"129, 130, 143", "interrupted by SIGHUP, SIGINT or SIGTERM without --checkpoint: nothing was written"},
    {NULL, NULL},
};

const cli_command *cli_find_command(const char *name)
{
    for (int i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}
