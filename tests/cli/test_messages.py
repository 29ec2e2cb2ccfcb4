#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_messages.py MERCER: the whole text of some errors and warnings.

Other tests compare only what a message is about (option, column, file, number). This is the only file that changes with the
wording.
"""
from support import Case, main


def table(value):
    """Return a table of 40 rows whose eighth row has the given text in column a."""
    rows = ("%s,%d,%d.25\n" % (value if i == 7 else str(i % 7) + ".5", i * 5 % 11, i * 3 % 13) for i in range(40))
    return "a,b,v\n" + "".join(rows)


# (arguments, exit code, error line without "mercer: ")
ERRORS = [
    (["trian"], 2, "no command 'trian'; did you mean 'train'?"),
    (["--x", "t.csv"], 2, "--x: options follow a command, as in mercer train --x ..."),
    (["convert", "t.csv"], 2, "convert: unexpected argument 't.csv'; see mercer convert --help"),
    (["train", "t.csv", "--x", "u.csv"], 2, "train: 't.csv' and --x both name data; quote file patterns, or name all tables without --x"),
    (["predict", "t.csv", "m.safetensors"], 2, "predict: the model comes first: mercer predict m.safetensors t.csv"),
    (["predict"], 2, "predict: the model is missing: mercer predict MODEL TABLE..."),
    (["predict", "m.safetensors"], 2, "predict: no data; name a table, as in mercer predict MODEL TABLE, or add --data DIR or --synth SPEC"),
    (["train", "t.csv", "-q", "-v"], 2, "--quiet and --verbose exclude each other; remove one of them"),
    (["train", "--epoch", "3"], 2, "train: unknown option --epoch; did you mean --epochs?"),
    (["train", "--average", "maybe"], 2, "--average: 'maybe' is not one of on, off, auto"),
    (["train", "-o", "m"], 2, "train: no data; name a table, as in mercer train TABLE, or add --data DIR or --synth SPEC"),
    (["train", "--x", "t.csv", "-o", "m", "--patience", "2"], 2, "--patience: there is no validation set; add --x-val FILE or --validation-fraction 0.1"),
    (["train", "--x", "t.csv", "-o", "m"], 65, "t.csv: the target column is unknown; add --target NAME, --target INDEX (from 0) or a file of targets (y); columns: 'a', 'b', 'v'"),
    (["train", "--x", "t.csv", "--target", "w", "-o", "m"], 65, "t.csv: no column is named 'w'; there are 3 columns, from 'a' to 'v'"),
    (["train", "--x", "odd.csv", "--target", "v", "-o", "m"], 65,
     "odd.csv: line 9, column 'a': 'n/q' is not a number, but 39 of 40 values are; if it means \"no value\", add --missing='n/q'; "
     "if these are categories, add --columns 'a:category'"),
    (["train", "--x", "t.csv", "--target", "v", "-o", "m", "--kernel", "laplas"], 2,
     "--kernel: unknown kernel 'laplas' (did you mean 'laplace'?); valid names: laplace, gaussian, matern32, matern52, exppower, cauchy, "
     "rational-quadratic, polynomial, linear, ntk, nngp, laplace-l1, exppower-l1, lpq"),
    (["train", "--x", "t.csv", "--target", "v", "-o", "m", "--solver", "direct", "--carry", "on"], 2,
     "options: solver direct (dense normal equations in the RKHS metric, double precision) does not support carry; remove it or use one "
     "of: ep4, ep3, paper, ep3-exact, nytro"),
    (["train", "--x", "t.csv", "--target", "v", "-o", "m", "--log", "t.csv"], 2, "--log: t.csv is also read as --x and would be overwritten; choose another name"),
    (["train", "--x", "t.csv", "--target", "v", "-o", "m", "--log", "odd.csv"], 2, "--log: odd.csv exists and is not a run log; choose another file"),
    (["predict", "-m", "none", "--x", "t.csv", "-o", "p.csv"], 66, "none: cannot open: No such file or directory"),
    (["predict", "-m", "t.csv", "--x", "t.csv", "-o", "p.csv"], 65,
     "t.csv: is not a Mercer model; name the file that mercer train wrote"),
    (["inspect", "none"], 66, "none: cannot open: No such file or directory"),
]


class Messages(Case):
    def test_errors(self):
        self.write("t.csv", table("0.5"))
        self.write("odd.csv", table("n/q"))
        for arguments, code, text in ERRORS:
            with self.subTest(arguments=arguments):
                result = self.run_program(*arguments)
                lines = [line for line in result.stderr.decode().splitlines() if line.startswith("mercer: ")]
                self.assertEqual((result.returncode, lines), (code, ["mercer: " + text]))


if __name__ == "__main__":
    main()
