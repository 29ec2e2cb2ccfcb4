/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of commands, and descriptions of the exit codes. */
#include "commands/commands.h"
#include "options/options.h"

#include <string.h>

enum { CLI_TABLES = 1 << 20 }; /* largest number of tables on a command line */

const cli_command cli_commands[] = {
    {"train", CLI_TRAIN, cli_train, 0, CLI_TABLES, "TABLE...", "train a model and write it to a file",
     "Trains f(x) = sum_j alpha_j K(x, z_j) and writes one model file with everything that prediction needs: kernel "
     "function, preprocessing, names of columns and classes, centers and weights. Several tables, or a quoted pattern, "
     "are read as one. Options with the default auto are chosen from the data; --verbose shows each choice. The "
     "reported score is measured on held-out rows, on which the scored model was not trained (docs/first-model.md). "
     "With "
     "--checkpoint, mercer resume continues an interrupted or killed run and writes a bitwise identical model file.",
     "mercer train houses.csv --target price\n"
     "mercer train 'month-*.csv' --target price --budget 2m -o price.safetensors\n"
     "mercer train --data fashion-mnist --kernel laplace:bandwidth=10 --centers 5000 -o model.safetensors\n"
     "mercer train --x x.npy --y y.npy --x-val xv.npy --y-val yv.npy --centers 20k --checkpoint run --log run.jsonl -o "
     "model.safetensors\n"
     "mercer train --synth digits --rows 20k --centers 1000",
     "FILE", 0},
    {"resume", CLI_RESUME, cli_resume, 1, 1, "DIR", "continue a training run that was interrupted",
     "DIR is the --checkpoint folder of mercer train. The training continues from its last checkpoint with the same "
     "options and writes a model file that is bitwise identical to that of an uninterrupted run. If a data file has "
     "changed since the run began, "
     "resume refuses to continue without --force.",
     "mercer resume run", "DIR", 0},
    {"predict", CLI_PREDICT, cli_predict, 0, CLI_TABLES, "MODEL TABLE...", "labels or values for new samples",
     "Writes one row per sample: the label of a classifier, the values of a regression model. To .npy, whole-number "
     "labels are written as int64, other labels as text, and values as float32 or float64 of shape (n, outputs), or "
     "(n) for one output. To .csv, .tsv, .jsonl, .txt or stdout, each line is a sample; .csv and .tsv begin with "
     "column names, such as price_predicted for the target price. Without --output, stdout receives csv. "
     "--probabilities adds the probability of each "
     "class. --interval 0.9 adds intervals, or sets of classes, that contain 90 % of the targets. --id-column and "
     "--keep copy columns of a csv file to the output. Columns of a table are matched by name, in any order: "
     "unknown columns are ignored, a missing one is an error. Without names in the data or the model, they are "
     "matched by position. Files may be larger than memory.",
     "mercer predict houses.safetensors new.csv > prices.csv\n"
     "mercer predict houses.safetensors new.csv --id-column id --interval 0.9 -o prices.csv\n"
     "mercer predict -m model.safetensors --x new.npy -o labels.npy",
     "FILE", 0},
    {"eval", CLI_EVAL, cli_eval, 0, CLI_TABLES, "MODEL TABLE...", "measure the accuracy of a model on labeled samples",
     "Accuracy is the share of samples whose label is predicted correctly; mse is the mean of (f(x) - y)^2 over "
     "samples and outputs, with one-hot y for a classifier. Regression also reports rmse, mae, r2 and quantiles of "
     "the absolute error. Classification also reports AUC (for more than two classes, the mean over classes of one "
     "class against the rest), log loss, Brier score, F1 (mean over classes) and calibration error. Models with "
     "intervals also report "
     "the coverage, and for regression the interval score. Targets are read from the target column of the model, "
     "unless --target or --y is given. docs/math.md has the formulas. --json prints these metrics, rows and seconds, "
     "and the results of --each and --confusion.",
     "mercer eval houses.safetensors test.csv\n"
     "mercer eval -m model.safetensors --x test.npy --y labels.npy --json\n"
     "mercer eval -m model.safetensors --data fashion-mnist --confusion",
     "FILE", 0},
    {"plan", CLI_PLAN, cli_plan, 0, CLI_TABLES, "[TABLE...]",
     "show the plan of a training run: choices, memory and time",
     "Prints the plan of a training run without running it, from data or only from sizes. If the memory is too small, "
     "it reports the number of centers that would fit and exits with code 1.",
     "mercer plan --data fashion-mnist --centers 20k --memory 8G\n"
     "mercer plan --rows 5M --features 784 --outputs 10 --centers 100k --data-type u8 --json",
     "FILE", 0},
    {"inspect", CLI_INSPECT, cli_inspect, 1, 1, "FILE", "show and check the contents of a model file",
     "Shows shapes, types, kernel function, preprocessing, classes and a summary of the training, and checks every "
     "size, offset and checksum of the file. If the file is damaged, the exit code is 65. A checkpoint is a model "
     "file, too.",
     "mercer inspect model.safetensors", "FILE", 0},
    {"explain", CLI_EXPLAIN, cli_explain, 0, CLI_TABLES, "MODEL TABLE...", "show which columns a model depends on",
     "The default method needs targets and measures the decrease of R2 or accuracy when a column of the table is "
     "permuted among the rows. A category is permuted as a whole. With --gradients: mean absolute and root mean "
     "squared "
     "derivative of the outputs with respect to each feature, summed over the outputs, in the units of the data; "
     "features are sorted by the product with their standard deviation. Features with the same information share "
     "their importance. Gradients are not available for kernels of the inner product. With --shap: exact Shapley "
     "values of the columns. The values of a row and the base value, the mean output over the background rows, sum "
     "to the output of the model. -o writes a line per row (and class) with row, base, sum and the value of each "
     "column. --interactions writes a line per row (and class) and column, whose sum is the value of the column.",
     "mercer explain houses.safetensors test.csv\n"
     "mercer explain houses.safetensors test.csv --shap -o shap.csv\n"
     "mercer explain houses.safetensors test.csv --shap --background train.csv\n"
     "mercer explain houses.safetensors test.csv --gradients\n"
     "mercer explain -m model.safetensors --x test.npy --gradients --json",
     "FILE", 0},
    {"export", CLI_EXPORT, cli_export, 1, 1, "MODEL", "write a model as a C file or an ONNX graph",
     "Writes a model file in another form. c99: a C file with preprocessing, table columns and their categories, "
     "centers, weights, units of the targets and names of the classes; it needs only libm, and its predictions are "
     "bitwise equal to those of Mercer's CPU backend. onnx: a graph for other runtimes, which agrees to 1e-5; for a "
     "table, the graph takes the features as its input, not the columns. docs/export.md describes both.",
     "mercer export model.safetensors -o model.c\n"
     "mercer export model.safetensors --format onnx -o model.onnx",
     "FILE", 0},
    {"centers", CLI_CENTERS, cli_centers, 0, 0, "", "choose centers and write them to a file",
     "Chooses rows (random, rpcholesky, balanced) or means of rows (kmeans) and writes them to an NPY file, in the "
     "units of the data, for --center-method file:PATH of mercer train or for other programs. The default "
     "preprocessing is none; bytes are scaled so that the kernel's bandwidth fits, but are written in their own "
     "units.",
     "mercer centers --x x.npy --centers 1000 --center-method kmeans -o centers.npy", NULL, 0},
    {"synth", CLI_SYNTH, cli_synth, 1, 1, "SPEC", "make synthetic data",
     "Sample i depends only on the specification, the seed and i, so any part of an endless sequence can be made. "
     "digits:noise=V: the ten digits in random strokes, 28 x 28 bytes. spirals:classes=K,noise=V: spirals in the "
     "plane. teacher:d=D,c=C,centers=P,noise=V,kernel=NAME,bandwidth=B: values of a kernel model. "
     "clusters:d=D,classes=K,centers=P,overlap=V,noise=V: P normal clusters of standard deviation `overlap` around "
     "normal centers, center j in class j mod K, with a share `noise` of random labels. For teacher and clusters "
     "the smallest possible error of a model is known and reported.",
     "mercer synth digits --rows 20k --seed 1 -o digits.npy --y-output labels.npy\n"
     "mercer synth teacher:d=20,c=1,centers=100,noise=0.1 -o x.npy --y-output y.npy",
     "digits|spirals|clusters|teacher", 0},
    {"convert", CLI_CONVERT, cli_convert, 0, 0, "", "convert data to NPY or a table",
     "Reads samples and targets in any supported format and writes them in the format of the output's file name. "
     "NPY: samples keep their type, whole-number classes become integers, other classes text. CSV and TSV: column "
     "names if there are any, class names, and numbers with the fewest digits that read back exactly.",
     "mercer convert --x data.csv.gz --target label -o x.npy --y-output y.npy", NULL, 0},
    {"bench", CLI_BENCH, cli_bench, 0, 1, "[gpu]", "measure the speed of this machine",
     "Measures fused kernel products of several shapes and a small training run on synthetic digits. With gpu: kernel "
     "products on a GPU in each arithmetic and type, compared with X Z' by cuBLAS; transfers between host and "
     "device; and the time of each phase of a training run.",
     "mercer bench\nmercer bench --quick --json\nmercer bench gpu", "gpu", 0},
    {"demo", CLI_DEMO, cli_demo, 0, 0, "", "show the effect of more data and more centers, in a minute",
     "Trains on synthetic digits: a fixed number of centers with more and more data, then more and more centers, "
     "compared with models that use only the labels of their centers. Prints a table and writes a page.",
     "mercer demo -o report.html", NULL, 0},
    {"report", CLI_REPORT, cli_report, 1, 1, "LOG", "make a page of plots from a run's log",
     "Writes one self-contained HTML file without scripts from a log of mercer train --log.",
     "mercer report run.jsonl -o report.html", "FILE", 0},
    {"completions", CLI_COMPLETIONS, cli_completions, 1, 1, "SHELL", "print completions for bash, zsh or fish",
     "Packages install the completions. To load them by hand: source <(mercer completions bash).",
     "mercer completions bash", "bash|zsh|fish", 0},
    {"man", CLI_MAN, cli_man, 0, 1, "[COMMAND]", "print a manual page",
     "Prints the source of a manual page for man -l.", "mercer man train | man -l -", NULL, 1},
    {"help", CLI_HELP, cli_help, 0, 2, "[COMMAND [all]]", "show the help of a command",
     "Prints the text of mercer COMMAND --help; with the argument all, the text of mercer COMMAND --help all.",
     "mercer help train\nmercer help train all", NULL, 0},
};
const int cli_command_count = (int)(sizeof cli_commands / sizeof cli_commands[0]);

const char *const cli_exit_codes[][2] = {
    {"0", "success"},
    {"1", "failure: training diverged, or the memory is too small"},
    {"2", "usage error: a wrong option, command or configuration"},
    {"65", "data error: a file is damaged or its contents do not match"},
    {"66", "an input file does not exist"},
    {"70", "internal error: please report it"},
    {"74", "reading or writing a file failed (disk full, no permission)"},
    {"75", "interrupted; a checkpoint was written: mercer resume continues"},
    {"76", "another rank ended, stopped or had other options; mercer resume continues from the last checkpoint"},
    {"129, 130, 143", "interrupted by SIGHUP, SIGINT or SIGTERM without --checkpoint; nothing was written"},
    {NULL, NULL},
};

const cli_command *cli_find_command(const char *name)
{
    for (int i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}
