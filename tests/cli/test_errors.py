# SPDX-License-Identifier: BSD-3-Clause
"""Bad input: one line of error with the file and the problem, the documented exit code, and unchanged files."""
import gzip
import os
import resource
import shutil
import signal
import struct
import subprocess
import unittest

from support import PROGRAM, Case, idx_bytes, main, npy_bytes

NAN = float("nan")
GOOD_X = npy_bytes("<f4", (4, 2), [0, 1, 2, 3, 4, 5, 6, 7])
BAD_X = npy_bytes("<f4", (4, 2), [0, 1, 2, 3, 4, NAN, 6, 7])
GOOD_Y = npy_bytes("<i8", (4,), [0, 1, 0, 1])

# Files to write, file of samples and further arguments of train, exit code, pattern of the error message.
TABLE = [
    # NPY
    ({"x.npy": GOOD_X[:100]}, "x.npy", [], 65, r"x\.npy: .*trunc|x\.npy: .*bytes|x\.npy: .*ends"),
    ({"x.npy": GOOD_X[:-3]}, "x.npy", [], 65, r"x\.npy: "),
    ({"x.npy": GOOD_X + b"tail"}, "x.npy", [], 65, r"x\.npy: "),
    ({"x.npy": b""}, "x.npy", [], 65, r"x\.npy: .*empty"),
    ({"x.npy": b"\x93NUMPY\x01\x00\xff\xff"}, "x.npy", [], 65, r"x\.npy: "),
    ({"x.npy": GOOD_X.replace(b"(4, 2)", b"(9, 2)")}, "x.npy", [], 65, r"x\.npy: "),
    ({"x.npy": npy_bytes("<f4", (0, 2), [])}, "x.npy", [], 65, r"x\.npy: contains no"),
    ({"x.npy": GOOD_X.replace(b"<f4", b"<c8")}, "x.npy", [], 65, r"x\.npy: .*c8"),
    ({"x.npy": GOOD_X.replace(b"(4, 2)}" + b" " * 18, b"(4611686018427387904, 2)}")}, "x.npy", [], 65, r"x\.npy: "),
    ({"x.npy": BAD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy"], 65, r"x\.npy: row 2, column 1 \(from 0\) is NaN"),
    ({"x.npy": BAD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--bandwidth", "1"], 65, r"x\.npy: row 2, column 1 \(from 0\) is NaN"),
    ({"x.npy": BAD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--bandwidth", "1", "--centers", "1"], 65, r"x\.npy: row 2, column 1 \(from 0\) is NaN"),
    ({"x.npy": BAD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--preprocess", "standardize"], 65, r"x\.npy: row 2, column 1 \(from 0\) is NaN"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "none.npy"], 66, r"none\.npy: "),
    ({"x.npy": GOOD_X, "y.npy": npy_bytes("<i8", (3,), [0, 1, 0])}, "x.npy", ["--y", "y.npy"], 65, r"y\.npy has 3 targets, but x\.npy has 4 samples"),
    ({"x.npy": GOOD_X, "y.npy": npy_bytes("<f8", (4,), [0, 1, NAN, 2])}, "x.npy", ["--y", "y.npy"], 65, r"y\.npy: "),
    ({"x.npy": GOOD_X}, "x.npy", [], 2, r"x\.npy: .*targets.*--y FILE"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--centers", "5"], 65, r"x\.npy: has 4 rows, fewer than --centers 5; use --centers 4"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--first", "3", "--rows", "2"], 65, r"x\.npy: rows from 3"),
    ({}, "none.npy", [], 66, r"none\.npy: "),
    ({"sub/file": b""}, "sub", [], 74, r"sub: .*folder"),
    # An overflow during training is an error, so that no model predicts NaN.
    ({"d.csv": "a,y\n" + "".join("%d,%d\n" % (1000 * i, i % 7) for i in range(1, 51))}, "d.csv", ["--target", "y", "--kernel", "polynomial:degree=9", "--preprocess", "none"], 65, r"polynomial .*f32.*scale .*degree.*f64"),
    ({"x.npy": npy_bytes("<f4", (4, 2), [1e30 * i for i in range(8)]), "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--kernel", "linear", "--preprocess", "none"], 65, r"linear .*f32"),
    # IDX
    ({"x-idx3-ubyte": idx_bytes((4, 2, 2), range(16))[:-1]}, "x-idx3-ubyte", ["--format", "idx"], 65, r"x-idx3-ubyte: "),
    ({"x-idx3-ubyte": idx_bytes((4, 2, 2), range(16))[:9]}, "x-idx3-ubyte", ["--format", "idx"], 65, r"x-idx3-ubyte: "),
    ({"x-idx3-ubyte": struct.pack(">BBBB3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1)}, "x-idx3-ubyte", ["--format", "idx"], 65, r"x-idx3-ubyte: "),
    ({"x.gz": gzip.compress(idx_bytes((4, 2, 2), range(16)))[:-9]}, "x.gz", ["--format", "idx"], 65, r"x\.gz: "),
    ({"x.gz": b"\x1f\x8bnonsense"}, "x.gz", ["--format", "idx"], 65, r"x\.gz: "),
    # CIFAR
    ({"data_batch_1.bin": bytes(3073)[:-1]}, "data_batch_1.bin", [], 65, r"data_batch_1\.bin: .*3072 bytes .*CIFAR-10"),
    ({"data_batch_2.bin": bytes(3073) + b"\x0a" + bytes(3072)}, "data_batch_2.bin", [], 65, r"data_batch_2\.bin: record 1 .*label 10"),
    ({"train.bin": bytes(3073)}, "train.bin", ["--format", "cifar100"], 65, r"train\.bin: .*3073 bytes .*CIFAR-100"),
    # CSV
    ({"d.csv": "a,b,c\n1,2,x\n3,4\n"}, "d.csv", ["--target", "c"], 65, r"d\.csv:3: |d\.csv: line 3"),
    ({"d.csv": "a,b,c\n1,2,x\n3,oops,y\n"}, "d.csv", ["--target", "c", "--columns", "b:number"], 65, r"d\.csv:3: .*oops|d\.csv: line 3.*oops"),
    ({"d.csv": "a,b,c\n1,2,x\n3,-inf,y\n"}, "d.csv", ["--target", "c"], 65, r"d\.csv:3: |d\.csv: line 3"),
    ({"d.csv": 'a,b,c\n1,2,"x\n3,4,y\n'}, "d.csv", [], 65, r"d\.csv:\d|d\.csv: line"),
    ({"d.csv": "a,b,c\n1,2,x\n3,4,y\n"}, "d.csv", ["--target", "color"], 65, r"d\.csv: .*color"),
    ({"d.csv": "a,b,c\n1,2,x\n3,4,y\n"}, "d.csv", ["--target", "7"], 65, r"d\.csv: .*7"),
    ({"d.csv": ""}, "d.csv", [], 65, r"d\.csv: .*empty"),
    ({"d.csv": "a,b,c\n"}, "d.csv", [], 65, r"d\.csv: "),
    # LIBSVM
    ({"d.svm": "1 1:2\n-1 2:x\n"}, "d.svm", ["--format", "libsvm"], 65, r"d\.svm:2: |d\.svm: line 2"),
    ({"d.svm": "1 3:2 1:4\n"}, "d.svm", ["--format", "libsvm"], 65, r"d\.svm:1: |d\.svm: line 1"),
    ({"d.svm": "1 99999999999999999999:2\n"}, "d.svm", ["--format", "libsvm"], 65, r"d\.svm:1: |d\.svm: line 1"),
    ({"d.svm": "1 1:2\n-1 2:1\n"}, "d.svm", ["--format", "libsvm", "--features", "1"], 65, r"d\.svm: index 2 is beyond"),
    # raw
    ({"x.bin": b"12345", "y.npy": GOOD_Y}, "x.bin", ["--format", "raw", "--raw", "f32:2", "--y", "y.npy"], 65, r"x\.bin: "),
    ({"x.bin": b"1234", "y.npy": GOOD_Y}, "x.bin", ["--format", "raw", "--raw", "f99:2", "--y", "y.npy"], 2, r"f99"),
    # options checked by the library
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--device", "gpu"], 2, r"--device: 'gpu'.* cuda:N"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--device", "cuda:x"], 2, r"--device: 'cuda:x'"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--augment", "melt"], 2, r"melt"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--augment", "flip"], 2, r"flip"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--image", "2by2"], 2, r"--image: '2by2'"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--preprocess", "wash"], 2, r"wash"),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y}, "x.npy", ["--y", "y.npy", "--center-method", "file:c.npy"], 66, r"c\.npy: "),
    ({"x.npy": GOOD_X, "y.npy": GOOD_Y, "c.npy": npy_bytes("<f4", (1, 3), [1, 2, 3])}, "x.npy", ["--y", "y.npy", "--center-method", "file:c.npy"], 65, r"c\.npy: 3 features.*2"),
]  # fmt: skip


class Training(Case):
    def test_table(self):
        for number, (files, x, arguments, code, pattern) in enumerate(TABLE):
            with self.subTest(number=number, arguments=arguments):
                shutil.rmtree(self.folder)
                os.makedirs(self.folder)
                for name, data in files.items():
                    self.write(name, data)
                before = self.write("model.safetensors", b"what was there before")
                self.bad(code, pattern, "train", "--x", x, *arguments, "-o", "model.safetensors", "-q")
                with open(before, "rb") as file:
                    self.assertEqual(file.read(), b"what was there before")
                left = sorted(name for name in os.listdir(self.folder) if name not in files and name != "sub")
                self.assertEqual(left, ["model.safetensors"])

    def test_folders(self):
        self.bad(66, r"none: the folder", "train", "--data", "none", "-o", "m")
        self.write("images/other", b"")
        self.bad(66, r"images: has no train-images-idx3-ubyte \(or .gz\)", "train", "--data", "images", "-o", "m")
        self.make_folder()
        os.remove(self.path("images", "train-labels-idx1-ubyte.gz"))
        self.bad(66, r"images: has no train-labels-idx1-ubyte", "train", "--data", "images", "-o", "m")

    def test_validation_data(self):
        self.make_npy()
        arguments = ["train", "--x", "x.npy", "--y", "y.npy", "-o", "m", "-q", "--x-val", "v.npy", "--y-val", "w.npy"]
        self.write("v.npy", npy_bytes("<f4", (2, 3), [0] * 6))
        self.write("w.npy", npy_bytes("<i8", (2,), [0, 1]))
        self.bad(65, r"validation data: 3 features", *arguments)
        self.write("v.npy", npy_bytes("<f4", (2, 4), [0] * 8))
        self.write("w.npy", npy_bytes("<i8", (2,), [0, 7]))
        self.bad(65, r"w\.npy: .*7", *arguments)

    def test_memory(self):
        self.bad(1, r"memory", "train", "--synth", "digits", "--rows", "60k", "--centers", "50k",
                 "--memory", "100MB", "--solver", "ep4", "-o", "m", "-q")  # fmt: skip
        self.assertFalse(os.path.exists(self.path("m")))

    def test_gpu(self):
        self.bad(2, r"bench: unexpected argument 'cpu'", "bench", "cpu")
        self.bad(1, r"no CUDA device|cuda", "bench", "gpu", environment={"CUDA_VISIBLE_DEVICES": "-1"})


class Models(Case):
    def test_not_models(self):
        self.make_npy()
        self.write("text", b"text, not tensors, but as long as a header: 0123456789 0123456789\n")
        self.write("empty", b"")
        for command in (["eval", "--y", "y.npy"], ["predict", "-o", "p.npy"]):
            self.bad(66, r"none: ", *command, "-m", "none", "--x", "x.npy")
            self.bad(65, r"text: ", *command, "-m", "text", "--x", "x.npy")
            self.bad(65, r"empty: ", *command, "-m", "empty", "--x", "x.npy")
        self.assertFalse(os.path.exists(self.path("p.npy")))
        self.bad(66, r"none: ", "inspect", "none")

    def test_predictions_that_overflow(self):
        self.write("x.npy", GOOD_X)
        self.write("y.npy", npy_bytes("<f4", (4,), [1, 2, 3, 5]))
        self.write("far.npy", npy_bytes("<f4", (4, 2), [0, 1, 2, 3, 1e30, 5, 6, 7]))
        self.good("train", "--x", "x.npy", "--y", "y.npy", "--kernel", "linear", "--preprocess", "none", "-o", "m", "-q")
        self.bad(65, r"row 2 .*linear .*f32", "eval", "-m", "m", "--x", "far.npy", "--y", "y.npy")
        self.bad(65, r"row 2 .*linear .*f32", "predict", "-m", "m", "--x", "far.npy", "-o", "p.npy")
        self.assertFalse(os.path.exists(self.path("p.npy")))

    def test_damaged(self):
        self.make_model("m")
        data = bytearray(self.read("m"))
        data[-20] ^= 1
        self.write("damaged", bytes(data))
        self.bad(65, r"damaged: ", "inspect", "damaged")
        self.write("cut", bytes(data[:-30]))
        self.bad(65, r"cut: ", "eval", "-m", "cut", "--x", "x.npy", "--y", "y.npy")

    def test_data_that_do_not_fit(self):
        self.make_model("m")
        self.write("wide.npy", npy_bytes("<f4", (2, 5), [0] * 10))
        self.write("two.npy", npy_bytes("<i8", (2,), [0, 1]))
        self.bad(65, r"wide\.npy: 5 features.* 4$", "eval", "-m", "m", "--x", "wide.npy", "--y", "two.npy")
        self.bad(65, r"wide\.npy: 5 features", "predict", "-m", "m", "--x", "wide.npy", "-o", "p.npy")
        self.write("odd.npy", npy_bytes("<i8", (60,), [0, 1, 9] * 20))
        self.bad(65, r"odd\.npy: .*9", "eval", "-m", "m", "--x", "x.npy", "--y", "odd.npy")
        self.bad(2, r"x\.npy: .*targets", "eval", "-m", "m", "--x", "x.npy")
        self.write("bad.npy", npy_bytes("<f4", (1, 4), [0, 1, NAN, 0]))
        self.bad(65, r"NaN|finite", "predict", "-m", "m", "--x", "bad.npy", "-o", "p.npy")


class Writing(Case):
    def test_outputs_are_checked_before_work(self):
        self.make_npy()
        train = ["train", "--x", "none.npy", "--y", "y.npy"]
        self.bad(74, r"no/such/m: ", *train, "-o", "no/such/m")
        self.bad(74, r": .*folder", *train, "-o", self.folder)
        self.bad(74, r"/dev/full: .*regular file", *train, "-o", "/dev/full")
        self.bad(2, r"--output: .*stdout", *train, "-o", "-")
        self.bad(74, r"no/run.jsonl: ", *train, "-o", "m", "--log", "no/run.jsonl")
        self.write("file", b"")
        self.bad(74, r"file", *train, "-o", "m", "--checkpoint", "file")
        self.bad(74, r"no/x.npy", "synth", "digits", "-n", "2", "-o", "no/x.npy")
        self.bad(2, r"--y-output: x\.npy is also written as --output", "synth", "digits", "-n", "2", "-o", "x.npy", "--y-output", "x.npy")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_folder_without_permission(self):
        self.make_npy()
        os.makedirs(self.path("locked"))
        os.chmod(self.path("locked"), 0o500)
        self.bad(74, r"locked/m: ", "train", "--x", "x.npy", "--y", "y.npy", "-o", "locked/m")

    def test_stdout_that_is_full(self):
        self.make_model("m")
        with open("/dev/full", "wb") as full:
            for command in (["help"], ["inspect", "m"], ["inspect", "m", "--json"], ["completions", "bash"],
                            ["predict", "-m", "m", "--x", "x.npy", "-o", "-"], ["train", "--print-config"]):  # fmt: skip
                self.bad(74, r"stdout: ", *command, stdout=full)

    def test_log_that_is_full(self):
        self.make_npy()
        self.bad(74, r"/dev/full: ", "train", "--x", "x.npy", "--y", "y.npy", "-o", "m", "--log", "/dev/full", "-q")
        self.assertTrue(os.path.exists(self.path("m")), "no model")

    def test_reader_that_closes_the_pipe(self):
        self.make_model("m")
        line = "'%s' predict -m m --synth teacher:d=4 --rows 200k -o - | head -n 1" % PROGRAM
        result = subprocess.run(["bash", "-c", line], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual((result.stdout.count(b"\n"), result.stderr), (1, b""))

    def test_disk_full(self):
        """A limit on file sizes acts like a full disk and needs no privileges. The kernel also sends SIGXFSZ."""
        self.make_npy()

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

        self.write("m", b"old")
        self.bad(74, r"m: .* \d+ bytes", "train", "--x", "x.npy", "--y", "y.npy", "-o", "m", "-q", preexec_fn=limit)
        self.assertEqual(self.read("m"), b"old")
        self.write("d.npy", b"old")
        self.bad(74, r"d\.npy", "synth", "digits", "-n", "10", "-o", "d.npy", preexec_fn=limit)
        self.assertEqual(self.read("d.npy"), b"old")
        self.make_model("n")
        self.write("p.npy", b"old")
        self.bad(74, r"p\.npy: .*unchanged", "predict", "-m", "n", "--synth", "teacher:d=4", "--rows", "5k",
                 "-o", "p.npy", preexec_fn=limit)  # fmt: skip
        self.assertEqual(self.read("p.npy"), b"old")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [])

    def test_tmpfs_full(self):
        """A full disk, simulated by a small tmpfs if the test may mount one."""
        self.make_npy(400)
        script = "mount -t tmpfs -o size=8k tmpfs disk && echo old >disk/m && '%s' train --x x.npy --y y.npy --centers 400 --kernel laplace:bandwidth=3 -o disk/m -q; echo $?; head -c 20 disk/m; ls -A disk"
        os.makedirs(self.path("disk"))
        if subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        result = subprocess.run(["unshare", "-rm", "bash", "-c", script % PROGRAM], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if b"mount:" in result.stderr:
            self.skipTest("no tmpfs can be mounted here")
        self.assertEqual(result.stdout.decode(errors='replace').split(), ["74", "old", "m"], result.stderr)


if __name__ == "__main__":
    main()
