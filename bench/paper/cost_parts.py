# SPDX-License-Identifier: BSD-3-Clause
"""Define the parts on costs: the complexity table with counted flops and bytes, the lemma, a million centers, other packages."""
import os
import sys

import pages
import printed
from accuracy_parts import RESULTS, pick, recorded
from cells import Cell

# ---- Complexity ------------------------------------------------------------------------------------------------------------------

FEATURES = 64
BASE = {"n": 8000, "p": 1000, "m": 200, "s": 400, "q": 40}
WAYS = {"EigenPro 3": ("n", "m", "s", "q"), "exact projection": ("n",), "CG (Falkon)": ("n",)}  # the sizes that are doubled, in addition to p
CENTERS = (500, 1000, 2000, 4000)


def formula(way, n, p, m, s, q):
    """Return the flops of one epoch (of CG: of one step) and the number of stored values, by the formulas of the paper's table.

    The constants are: a kernel value takes 2 d flops, a multiply-add two. An epoch has n / m iterations; T_ep2 is p^2 and M_ep2 is p.
    """
    kernel = 2 * FEATURES
    if way == "EigenPro 3":
        return n / m * (p * m * kernel + 2 * p * s + s * m * kernel + 2 * s * q + p * p * kernel), s * s + s * m + p
    if way == "exact projection":
        return n * p * kernel + 2 * n * q, p * n + n * n
    return n * p * kernel, p * p


def cost_cell(way, sizes, epochs):
    n, p, m, s, q = (sizes[name] for name in "npmsq")
    options = {
        "EigenPro 3": ["--solver", "ep3", "--batch", m, "--nystrom", s, "--eigenpairs", q, "--projector-nystrom", s, "--projector-eigenpairs",
                       q],
        "exact projection": ["--solver", "ep3-exact", "--eigenpairs", q],
        "CG (Falkon)": ["--solver", "cg"],
    }[way]
    command = ["{mercer}", "train", "--synth", f"teacher:d={FEATURES},c=1,centers=50", "--rows", n, "--centers", p, "--kernel",
               "laplace:bandwidth=8", "--memory", "2G", "--cache", "off", "--epochs", epochs, "--seed", 1, *options]
    return Cell({"way": way, **sizes, "epochs_run": epochs}, [str(word) for word in command])


def cost_cells(full):
    """Return two cells per size, which differ by one epoch: the difference of their costs is the cost of an epoch without set-up."""
    cells = []
    for way, names in WAYS.items():
        base = {**BASE, "n": 2000} if way == "exact projection" else BASE
        sizes = [{**base, "p": p} for p in CENTERS if way != "exact projection" or p <= base["n"]]
        sizes += [{**base, name: 2 * base[name]} for name in names]
        longer = (2, 3) if way == "CG (Falkon)" else (1, 2)
        cells += [cost_cell(way, size, epochs) for size in sizes for epochs in longer]
    return cells + planned_cells()


PLANNED = {"CG (Falkon)": ("--solver", "cg"), "EigenPro 3 as printed": ("--preset", "paper", "--batch", "4096"),
           "EigenPro 4": ("--solver", "ep4", "--projector", "bgs", "--batch", "4096")}


def planned_cells():
    """Return cells that plan the memory for the sizes of the paper's comparison with Falkon: 5 million samples, 1,280 features."""
    return [Cell({"way": "planned: " + way, "n": 5_000_000, "p": p},
                 ["{mercer}", "plan", "--rows", "5M", "--features", "1280", "--outputs", "10", "--data-type", "f16", "--centers", str(p), *options,
                  "--cache", "off", "--memory", "100T", "--json", "--quiet"])
            for way, options in PLANNED.items() for p in (64_000, printed.FALKON_CENTERS, 512_000, printed.MILLION_CENTERS)]


def planned_table(rows):
    sizes = sorted({row["p"] for row in rows if row["way"].startswith("planned: ")})
    body = [[way, *(row["bytes"] / 1e9 for p in sizes for row in pick(rows, way="planned: " + way, p=p))] for way in PLANNED]
    return pages.table("Memory of large models", ["algorithm", *(f"p = {p:,}, GB" for p in sizes)], body,
                       "Planned for n = 5,000,000, d = 1,280 in half precision, 10 outputs, nothing of K(X, Z) kept. The paper: Falkon ran "
                       "with 256,000 centers in 340 GB and would have needed over 1 TB for 512,000. Mercer's factors are in double.")


def cost_epochs(rows, way):
    """Return {sizes: (flops of an epoch, flops of the setup, peak bytes)} of an algorithm."""
    pairs = {}
    for row in pick(rows, way=way):
        pairs.setdefault(tuple(row[name] for name in "npmsq"), []).append(row)
    found = {}
    for sizes, pair in pairs.items():
        if len(pair) == 2:
            short, long = sorted(pair, key=lambda row: row["epochs_run"])
            epoch = long["flops"] - short["flops"]
            found[sizes] = (epoch, short["flops"] - short["epochs_run"] * epoch, short["peak_bytes"])
    return found


def cost_page(rows):
    flops_lines, bytes_lines, work, memory = [], [], [], []
    for way in WAYS:
        epochs = cost_epochs(rows, way)
        base = next((sizes for sizes in epochs if sizes[1] == BASE["p"]), None)
        if not base:
            continue
        swept = [sizes for sizes in epochs if sizes[0] == base[0] and sizes[2:] == base[2:]]
        flops_lines += [pages.line(way, [(sizes[1], epochs[sizes][0]) for sizes in swept]),
                        pages.line(f"{way}, formula", [(sizes[1], formula(way, *sizes)[0]) for sizes in swept], dotted=True)]
        bytes_lines += [pages.line(way, [(sizes[1], epochs[sizes][2]) for sizes in swept]),
                        pages.line(f"{way}, formula", [(sizes[1], 8 * formula(way, *sizes)[1]) for sizes in swept], dotted=True)]
        for sizes, (flops, setup, held) in epochs.items():
            expected, numbers = formula(way, *sizes)
            growth = [f"x {flops / epochs[base][0]:.2f}", f"x {expected / formula(way, *base)[0]:.2f}"]
            work.append([way, *sizes, flops / 1e9, expected / 1e9, f"{flops / expected:.2f}", *growth, setup / 1e9])
            growth = [f"x {held / epochs[base][2]:.2f}", f"x {numbers / formula(way, *base)[1]:.2f}"]
            memory.append([way, *sizes, held / 1e6, 8e-6 * numbers, *growth])
    text = (f"d = {FEATURES} features, one output, K(X, Z) not cached. Dotted: the paper's table, with 2 d flops per kernel value, 2 flops per "
            "multiply-add, and 8 bytes per number. An epoch of EigenPro 3 has n/m iterations of p(m+s)+s(m+q)+p^2.")
    return [
        pages.chart("By the number of centers", "flops of an epoch, or of a step of CG", "centers p", "flops", flops_lines, text, False, True, True),
        pages.chart("By the number of centers", "bytes held", "centers p", "bytes", bytes_lines, "", False, True, True),
        pages.table("Work", ["algorithm", "n", "p", "m", "s", "q", "epoch, GFLOP", "formula", "counted / formula", "growth", "formula",
                             "set-up, GFLOP"], work, f"Growth compared with p = {BASE['p']:,} with the initial values of all other sizes."),
        pages.table("Memory", ["algorithm", "n", "p", "m", "s", "q", "held, MB", "formula, MB", "growth", "formula"], memory,
                    "The held memory includes batches, samples, fields and work space, which the paper's table omits."),
        planned_table(rows),
    ]


# ---- The lemma -------------------------------------------------------------------------------------------------------------------

def lemma_cells(full):
    return [Cell({"problem": seed}, ["{bench}/paper_lemma", "--seed", str(seed)]) for seed in range(1, 11)]


def lemma_page(rows):
    numbers = [row["problem"] for row in rows]
    steps = [pages.line(f"{factor} of the bound", [(row["problem"], max(row[f"error_{factor}"], 1e-17)) for row in rows])
             for factor in ("0.5", "0.95", "1.05", "2")]
    events = [
        pages.chart("The step's bound", "Distance to the limit after 400 steps", "problem", "|a - limit| / |limit|", steps, percent=False,
                    log_y=True, text="Ten random problems (n = 60, p = 10, q = 6). The bound is 2 / lmax(K_ZZ^-1 A), A = K_ZX (I - Q) K_XZ: below "
                    "it the iterates converge, above it they diverge (beyond 1e29 they were stopped). The paper prints 2 / lmax(A)."),
        pages.chart("The step's bound", "Steps of 0.99 of the printed bound", "problem", "|a - limit| / |limit|", [
            pages.line("kernel as it is", [(row["problem"], max(row["error_printed"], 1e-17)) for row in rows]),
            pages.line("the same kernel / 10", [(row["problem"], row["error_printed_tenth"]) for row in rows])], percent=False, log_y=True),
        pages.chart("Noise in the targets", "E |a - a*|^2 / sigma^2", "problem", "variance", [
            pages.line("measured, 20,000 draws", [(row["problem"], row["variance_measured"]) for row in rows]),
            pages.line("tr(A^-2 K_ZX (I-Q)^2 K_XZ)", [(row["problem"], row["variance_formula"]) for row in rows], dotted=True),
            pages.line("the second form as printed, with n", [(row["problem"], row["variance_printed"]) for row in rows])], percent=False,
                    log_y=True, text="The first printed form is correct; the second has n where tr(A^-1) is correct."),
        pages.chart("The stochastic step", "E |(n/m) h_m - h|^2", "problem", "variance", [
            pages.line("measured, 20,000 batches", [(row["problem"], row["step_variance_measured"]) for row in rows]),
            pages.line("n^2/m (1 - m/n) S^2", [(row["problem"], row["step_variance_formula"]) for row in rows], dotted=True)], percent=False,
                    log_y=True, text="Batches of 12 of 60 rows. The mean of the scaled step is the full step."),
    ]
    body = [[row["problem"], row["bound"], row["printed_bound"], row["limit_error"], row["error_0.95"], row["error_1.05"], row["error_2"],
             row["bias_in_standard_errors"], row["variance_measured"], row["variance_formula"], row["variance_mended"], row["variance_printed"],
             row["step_bias_in_standard_errors"], row["step_variance_measured"], row["step_variance_formula"]] for row in rows]
    events.append(pages.table("Every problem", ["problem", "bound", "printed bound", "distance to the limit, 200,000 steps", "at 0.95", "at 1.05",
                                                "at 2", "bias / its standard error", "variance", "formula", "second form, corrected",
                                                "second form, printed", "step: bias / standard error", "step: variance", "formula"], body,
                              f"{len(numbers)} problems. Without a bias, the measured bias is about 1 standard error, and rarely above "
                              "2."))
    return events


# ---- A million centers -----------------------------------------------------------------------------------------------------------

def million_cells(full):
    """Return cells that train on clusters with a known smallest possible error, for several numbers of centers and samples.

    These cells complement the recorded run of a million centers, whose data are easy to classify by construction.
    """
    if full:
        clusters = "clusters:d=20,classes=10,centers=100000,overlap=0.5,noise=0.1"
        options = ["--solver", "ep4", "--projector", "bgs", "--epochs", "2"]
        sizes = [(n, p) for n in (500_000, 5_000_000) for p in (10_000, 100_000, 1_000_000) if n >= p]
    else:
        clusters, options = "clusters:d=10,classes=10,centers=1000,overlap=0.4,noise=0.1", ["--memory", "4G"]
        sizes = [(n, p) for n in (2000, 8000, 32000) for p in (50, 200, 800, 3200) if n >= p]
    cells = [Cell({"way": "model", "n": n, "p": p},
                  ["{mercer}", "train", "--synth", clusters, "--rows", str(n), "--centers", str(p), "--validation-fraction", f"{min(0.2, 4000 / n):g}",
                   "--kernel", "laplace:bandwidth=2", "--seed", "1", *options]) for n, p in sizes]
    return cells + [Cell({"way": "least error", "n": 0, "p": 0},
                         ["{mercer}", "synth", clusters, "--rows", "4000", "--output", "{out}/clusters.npy", "--json", "--quiet"])]


def million_page(rows):
    found = sorted(pick(rows, way="model"), key=lambda row: row["p"])
    lines = [pages.line(f"n = {n:,}", [(row["p"], 1 - row["accuracy"]) for row in pick(found, n=n)]) for n in sorted({row["n"] for row in found})]
    least = [row["least_error"] for row in pick(rows, way="least error")]
    if found and least:
        lines.append(pages.line("lowest possible error", [(found[0]["p"], least[0]), (found[-1]["p"], least[0])]))
    events = [pages.chart("Clusters that overlap", "synthetic samples", "centers p", "error on new samples", lines, log_x=True,
                          text="A thousand clusters of ten classes, a tenth of the labels random. Both more centers and more samples are needed.")]
    body = [[f"{row['n']:,}", f"{row['p']:,}", pages.percent(1 - row["accuracy"]), row["plan"]["solver"], pages.seconds(row["cpu_s"])]
            for row in pick(rows, way="model")] + [["", "", pages.percent(error), "lowest possible error", ""] for error in least]
    events.append(pages.table("Every cell", ["n", "p", "error %", "solver", "processor s"], body))
    body = [[row["solver"], f"{row['n']:,}", f"{row['p']:,}", row["d"], row["setup_s"], row["epochs_s"], row["test_accuracy"], row["peak_gib"]]
            for row in recorded("gpu_h200.jsonl") if row.get("p", 0) >= printed.MILLION_CENTERS]
    events.append(pages.table("A million centers on one H200, recorded",
                              ["solver", "n", "p", "d", "set-up s", "epoch s", "test accuracy", "held GiB"], body,
                              "Clustered data that are easy on purpose: the run shows time and memory. The paper: 1,000,000 centers on 5,000,000 "
                              "samples, 8 A100; Falkon ended at 256,000 centers with 340 GB."))
    return events


# ---- Other packages --------------------------------------------------------------------------------------------------------------

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare")
KINDS = {"nystroem": "Nystroem + Ridge", "fourier": "random Fourier features + Ridge", "ridge": "KernelRidge, n rows",
         "svgp": "SVGP (GPyTorch)"}
MERCER_SIZES = (100, 300, 1000, 3000, 10000)


def packages_cells(full):
    """Return the cells of all packages. The cells of other packages are the cases of bench/compare/rivals.py."""
    sys.path.insert(0, COMPARE)
    import rivals

    cells = [Cell({"data": "mnist", "package": kind, "size": size},
                  ["{python}", "{compare}/rivals.py", "--json", "--filter", name, "--data", "{data}"], "mnist")
             for name, kind, size in rivals.cases()]
    for p in MERCER_SIZES:
        cells.append(Cell({"data": "mnist", "package": "mercer", "size": p},
                          ["{mercer}", "train", "--data", "{data}/mnist", "--kernel", f"gaussian:bandwidth={rivals.BANDWIDTH:g}", "--lambda",
                           f"{rivals.LAMBDA:g}", "--centers", str(p), "--center-method", "random", "--seed", "1", "--memory", "4G"], "mnist"))
    return cells


def training_seconds(row):
    """Return processor seconds of training: for other packages as reported, for Mercer estimated from the whole command."""
    return row["train_cpu_s"] if "train_cpu_s" in row else row["train_s"] * row["cpu_s"] / row["wall_s"]


def packages_page(rows):
    lines, body = [], []
    for package in dict.fromkeys(row["package"] for row in rows):
        found = sorted(pick(rows, package=package), key=lambda row: row["size"])
        name = KINDS.get(package, "Mercer, default solver")
        points = [point for row in found for point in row.get("points", [(training_seconds(row), row["accuracy"])])]
        lines.append(pages.line(name, points))
        body += [[name, f"{row['size']:,}", pages.percent(row["accuracy"]), pages.seconds(training_seconds(row)),
                  row.get("package_version", "")] for row in found]
    lines.sort(key=lambda line: not line["name"].startswith("Mercer"))
    return [
        pages.chart("Accuracy over time", "MNIST", "processor seconds of training", "test accuracy", lines, log_x=True,
                    text="Gaussian kernel of bandwidth 5, ridge 0.1, n = 60,000 (KernelRidge: as many as it has rows). A point is a size; of "
                         "the variational Gaussian process, a quarter of a pass."),
        pages.table("Every size", ["model", "size", "test %", "processor s", "version"], body,
                    "Size: centers, features, rows or inducing points."),
    ]
