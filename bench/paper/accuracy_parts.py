# SPDX-License-Identifier: BSD-3-Clause
"""Define the parts on accuracy: table of centers, more samples, more centers, equal time, descent, augmentation, streams."""
import json
import math
import os

import pages
import printed
from cells import first_rows, train

IMAGES = ("mnist", "fashion-mnist")
CIFAR = "cifar-10"
# EigenPro 3 as printed. For its table, the paper gives neither the sample size s, which depends on the memory, nor the number of epochs.
# The preset has s = 5,000, whose eigensystem would dominate the time of small cases, so the quick form has s = 2,000. The 20 epochs and the
# bandwidth 20 of the quick form are those of the example in the authors' program.
PAPER = ("--preset", "paper", "--nystrom", 2000, "--epochs", 20)
PAPER_FULL = ("--preset", "paper")


def pick(rows, **wanted):
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def best(row):
    return row["accuracy"]


def kinds(rows):
    """Return the names of the data sets in the rows."""
    return list(dict.fromkeys(row["data"] for row in rows))


RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results")


def recorded(name):
    """Return the lines of a file of recorded results in the sources."""
    with open(os.path.join(RESULTS, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def recorded_preset():
    """Return the recorded runs of the full preset (50 epochs, on a GPU): the first run for each combination of the shown columns."""
    found = {}
    for run in recorded("paper-preset.jsonl"):
        if run["solver"] == "paper" and run["epochs"] == printed.EPOCHS and run["s"] == 5000 and run["seed"] == 1:
            key = {"data": run["data"], "centers": run["centers"], "p": run["p"], "bandwidth": run["bandwidth"]}
            row = {**key, "way": "paper", "accuracy": run["test_accuracy"] / 100, "epochs": run["epochs"], "device": "cuda",
                   "plan": {"solver": "paper", "nystrom": run["s"]}}
            found.setdefault(tuple(key.values()), row)
    return list(found.values())


def curve(row, x, y="accuracy"):
    """Return a cell's curve as points (x, y).

    Seconds are processor seconds: wall time multiplied by the mean number of busy processors, so that other load on the machine has little
    effect. The seconds of a curve never decrease, although curve_of() subtracts a mean evaluation time per epoch.
    """
    busy = row["cpu_s"] / row["wall_s"] if row["wall_s"] else 1
    places = {"epoch": 0, "samples": 1, "seconds": 2, "accuracy": 3, "loss": 4}
    points = [list(point) for point in row["curve"]]
    latest = 0
    for point in points:
        latest = point[2] = max(latest, point[2] * busy)
    return [(point[places[x]], point[places[y]]) for point in points]


# ---- The table of random and k-means centers -------------------------------------------------------------------------------------

PAPER_BANDWIDTH = 20


def table_cells(full):
    cells = []
    for data in (*IMAGES, CIFAR):
        for method in ("random", "kmeans"):
            for p in printed.SIZES:
                key = {"centers": method, "p": p, "bandwidth": 10, "seed": 1}
                centers = ("--centers", p, "--center-method", method, "--seed", 1)
                cells.append(train({"way": "default", **key}, data, *centers))
                for seed in (2, 3) if p < 10000 and method == "random" else ():
                    cells.append(train({"way": "default", **key, "seed": seed}, data, *centers[:-1], seed))
                if p == 1000 or full:
                    cells.append(train({**key, "way": "paper", "bandwidth": PAPER_BANDWIDTH}, data, *centers,
                                       *(PAPER_FULL if full else PAPER), curve=True, bandwidth=PAPER_BANDWIDTH))
    for data in IMAGES:
        for bandwidth in (3, 5, 20, 40):
            key = {"way": "default", "centers": "random", "p": 100, "bandwidth": bandwidth, "seed": 1}
            cells.append(train(key, data, "--centers", 100, "--center-method", "random", "--seed", 1, bandwidth=bandwidth))
    return cells


def seeds_as_one(rows):
    """Merge rows that differ only in the seed. A merged row has the mean accuracy, and all accuracies as the list `each`."""
    groups = {}
    for row in rows:
        groups.setdefault((row["way"], row["data"], row["centers"], row["p"], row["bandwidth"]), []).append(row)
    return [{**group[0], "accuracy": sum(map(best, group)) / len(group), "each": [best(row) for row in group],
             "cpu_s": sum(row.get("cpu_s", 0) for row in group)} for group in groups.values()]


def table_page(rows):
    rows, events = seeds_as_one(rows), []
    for data in kinds(pick(rows, bandwidth=10)):
        lines = []
        for method, name in (("random", "random centers"), ("kmeans", "k-means centers")):
            found = pick(rows, data=data, centers=method, way="default", bandwidth=10)
            lines.append(pages.line(name, [(row["p"], best(row)) for row in found]))
            lines.append(pages.line(f"{name}, printed", [(p, printed.accuracy(data, method, p)) for p in printed.SIZES], dotted=True))
        for method in ("random", "kmeans"):
            found = pick(recorded_preset(), data=data, centers=method, bandwidth=PAPER_BANDWIDTH)
            lines.append(pages.line(f"--preset paper, {method}, recorded", [(row["p"], best(row)) for row in found]))
        events.append(pages.chart("Random and k-means centers", data, "centers p", "test accuracy", lines, log_x=True,
                                  text="Laplace kernel, n = 60,000: Mercer's default with bandwidth 10, the preset with 20. Dotted: what the "
                                       "paper prints."))
    body = []
    whole = pick(recorded_preset(), bandwidth=PAPER_BANDWIDTH)
    for row in pick(rows, bandwidth=10, way="default") + pick(rows, way="paper") + whole:
        value = printed.accuracy(row["data"], row["centers"], row["p"])
        each = row.get("each", [])
        ours = pages.percent(best(row)) + (f" ({', '.join(map(pages.percent, each))})" if len(each) > 1 else "")
        body.append([row["data"], row["centers"], row["p"], pages.percent(value), ours,
                     f"{100 * (best(row) - value):+.2f}" if value else "", "--preset paper" if row["way"] == "paper" else "default",
                     row["bandwidth"], row["plan"]["solver"], row["plan"]["nystrom"] if row["way"] == "paper" else "", row["epochs"],
                     pages.seconds(row["cpu_s"]) if row.get("device", "cpu") == "cpu" else "on a GPU, recorded"])
    events.append(pages.table("Every cell", ["data", "centers", "p", "paper %", "ours %", "difference", "options", "bandwidth", "solver", "s", "epochs",
                                             "processor s"], body))
    for data in kinds(rows):
        lines = []
        for p, name, kept in ((100, "the optimum", pick(rows, way="default")), (1000, "--preset paper, recorded", recorded_preset())):
            found = sorted(pick(kept, data=data, centers="random", p=p), key=lambda row: row["bandwidth"])
            if len(found) > 1:
                lines.append(pages.line(f"p = {p:,}, {name}", [(row["bandwidth"], best(row)) for row in found]))
                value = printed.accuracy(data, "random", p)
                lines.append(pages.line(f"p = {p:,}, printed", [(found[0]["bandwidth"], value), (found[-1]["bandwidth"], value)], True))
        events.append(pages.chart("What the bandwidth does", data, "bandwidth, pixels / 255", "test accuracy", lines, log_x=True,
                                  text="The paper does not give the bandwidth. Random centers: the least-squares optimum with 100 centers, EigenPro 3 as "
                                       "printed with 1,000 centers. Dotted: the printed numbers."))
    return events


# ---- Samples at fixed centers ----------------------------------------------------------------------------------------------------

SAMPLES = (300, 1000, 3000, 10000, 30000, 60000)


def samples_cells(full):
    cells = []
    paper = PAPER_FULL if full else PAPER[:-1] + (10,)
    for data in IMAGES:
        for p in (300, 1000, 10000) if full else (300, 1000):
            centers, before = first_rows(data, p)
            for n in SAMPLES:
                if n >= p:
                    cells.append(train({"way": "ep3", "p": p, "n": n}, data, *centers, *paper, rows=n, before=before))
            cells.append(train({"way": "ep2", "p": p, "n": p}, data, "--centers", "all", "--solver", "ep2", "--epochs", 20, rows=p))
    return cells


def samples_page(rows):
    events = []
    for data in kinds(rows):
        lines = []
        for p in sorted({row["p"] for row in rows}):
            found, base = pick(rows, data=data, p=p, way="ep3"), pick(rows, data=data, p=p, way="ep2")
            lines.append(pages.line(f"EigenPro 3, p = {p:,}", [(row["n"], best(row)) for row in found]))
            ends = (found[0]["n"], found[-1]["n"]) if found and base else ()
            lines.append(pages.line(f"EigenPro 2 on its {p:,} centers", [(n, best(base[0])) for n in ends], dotted=True))
        events.append(pages.chart("More samples, same centers", data, "samples n", "test accuracy", lines, log_x=True,
                                  text="The centers are the first p images; dotted lines are kernel machines trained only on these "
                                       "images, by EigenPro 2 (the paper's lines without markers)."))
    body = [[row["data"], row["p"], row["n"], row["way"], pages.percent(best(row)), row["epochs"], pages.seconds(row["cpu_s"])] for row in rows]
    events.append(pages.table("Every cell", ["data", "p", "n", "solver", "test %", "epochs", "processor s"], body))
    return events


# ---- Centers at fixed samples ----------------------------------------------------------------------------------------------------

def centers_cells(full):
    sizes = (100, 300, 1000, 3000, 10000) + ((30000, 60000) if full else ())
    return [train({"p": p, "n": 60000}, data, "--centers", p, "--center-method", "random", "--seed", 1) for data in IMAGES for p in sizes]


def centers_page(rows):
    events = []
    for data in kinds(rows):
        found = pick(rows, data=data)
        events.append(pages.chart("More centers, same samples", data, "centers p", "test accuracy", [
            pages.line("Mercer's default", [(row["p"], best(row)) for row in found]),
            pages.line("EigenPro 3, printed", [(p, printed.accuracy(data, "random", p)) for p in printed.SIZES], dotted=True),
        ], log_x=True, text="n = 60,000; random centers. Dotted: the paper's table."))
    body = [[row["data"], row["p"], pages.percent(best(row)), row["plan"]["solver"], row["peak_bytes"] / 1e6, pages.seconds(row["cpu_s"])]
            for row in rows]
    events.append(pages.table("Every cell", ["data", "p", "test %", "solver", "held MB", "processor s"], body))
    return events


# ---- EigenPro 3, conjugate gradients and EigenPro 2 at equal time -----------------------------------------------------------------

TIME_SIZES, TIME_LONG = (1000, 3000), (1000, 3000, 10000)


def time_cells(full):
    cells = []
    for data in IMAGES if full else IMAGES[:1]:
        for p in TIME_LONG if full else TIME_SIZES:
            centers, before = first_rows(data, p)
            for way, options, rows in (("EigenPro 3", (*centers, *(PAPER_FULL if full else PAPER if p < 3000 else (*PAPER[:-1], 8))), None),
                                       ("CG (Falkon)", (*centers, "--solver", "cg"), None),
                                       ("EigenPro 4", (*centers, "--solver", "ep4", "--epochs", 10 if p < 3000 else 6), None),
                                       ("EigenPro 2, n = p", ("--centers", "all", "--solver", "ep2", "--epochs", 20), p)):
                cells.append(train({"way": way, "p": p}, data, *options, curve=True, rows=rows, before=before if rows is None else None))
    return cells


def reached(row, seconds):
    """Return the accuracy of the last epoch that ended within the given seconds, or None."""
    return next((y for x, y in reversed(curve(row, "seconds")) if x <= seconds), None)


def time_page(rows):
    events, body = [], []
    for data in kinds(rows):
        for p in sorted({row["p"] for row in rows}):
            found = pick(rows, data=data, p=p)
            events.append(pages.chart("Accuracy over time", f"{data}, p = {p:,}", "processor seconds", "test accuracy",
                                      [pages.line(row["way"], curve(row, "seconds")) for row in found], log_x=True,
                                      text="The same centers for all; EigenPro 2 has these images as its samples, too. Times include set-up, "
                                           "but not the evaluation of test images."))
            given = [curve(row, "seconds")[0][0] for row in found if row["curve"]]
            for seconds in (math.ceil(10 * times * max(given)) / 10 for times in (1, 2)) if given else ():
                body.append([data, p, seconds, *(pages.percent(reached(row, seconds)) for row in found)])
    if rows:
        ways = list(dict.fromkeys(row["way"] for row in rows))
        events.append(pages.table("At equal time", ["data", "p", "processor s", *ways], body,
                                  "When the slowest has its first epoch, and after twice that time."))
    return events


# ---- Plain gradient descent ------------------------------------------------------------------------------------------------------

def descent_cells(full):
    epochs, p, paper = (50, 10000, PAPER_FULL) if full else (20, 1000, PAPER)
    cells = []
    for data in IMAGES:
        centers, before = first_rows(data, p)
        for way, options in (("gradient descent", ("--solver", "gd", "--epochs", epochs)), ("EigenPro 3", paper),
                             ("CG (Falkon)", ("--solver", "cg"))):
            cells.append(train({"way": way, "p": p}, data, *centers, *options, curve=True, before=before))
    return cells


def descent_page(rows):
    events = []
    for data in kinds(rows):
        found = pick(rows, data=data)
        text = "An epoch is one pass over the samples; of conjugate gradients, a step. Gradient descent in the space of the weights."
        events.append(pages.chart("Slow descent", f"{data}: test accuracy", "epochs", "test accuracy",
                                  [pages.line(row["way"], curve(row, "epoch")) for row in found], text=text))
        events.append(pages.chart("Slow descent", f"{data}: training loss", "epochs", "mean squared error",
                                  [pages.line(row["way"], curve(row, "epoch", "loss")) for row in found], percent=False, log_y=True))
    body = [[row["data"], row["way"], row["p"], row["epochs"], pages.percent(best(row)), row["train_loss"], pages.seconds(row["cpu_s"])]
            for row in rows]
    events.append(pages.table("At the end", ["data", "solver", "p", "epochs", "test %", "training loss", "processor s"], body))
    return events


# ---- Augmentation: all images are centers, the samples are augmented images -------------------------------------------------------

def augmentation_cells(full):
    images, samples, epochs = (60000, 60000, 20) if full else (5000, 30000, 4)
    cells = []
    for data, noises in (("mnist", (15, 30)), ("fashion-mnist", (8, 15))):
        cells.append(train({"augmentation": "none", "images": images}, data, "--centers", "all", rows=images))
        for spec in [f"noise:sigma={sigma}" for sigma in noises] + (["shift:pixels=1"] if data == "mnist" else ["flip"]):
            cells.append(train({"augmentation": spec, "images": images}, data, "--centers", "all", "--solver", "ep4", "--augment", spec,
                               "--samples", samples, "--epochs", epochs, curve=True, rows=images))
    return cells


def augmentation_page(rows):
    events, body = [], []
    for data in kinds(rows):
        found = pick(rows, data=data)
        base = pick(found, augmentation="none")
        lines = [pages.line(row["augmentation"], curve(row, "samples")) for row in found if row.get("curve")]
        if base and lines:
            ends = (min(line["x"][0] for line in lines), max(line["x"][-1] for line in lines))
            lines.append(pages.line("the images as they are", [(x, best(base[0])) for x in ends]))
        events.append(pages.chart("New samples from old images", data, "samples seen", "test accuracy", lines,
                                  text="Every image is a center; the model is trained only on changed copies of the images, each seen once. "
                                       "The line without augmentation is kernel ridge regression on the images."))
        for row in found:
            gain = f"{100 * (best(row) - best(base[0])):+.2f}" if base and row is not base[0] else ""
            body.append([data, row["images"], row["augmentation"], "" if base and row is base[0] else row["samples"], pages.percent(best(row)), gain, pages.seconds(row["cpu_s"])])
    events.append(pages.table("Every cell", ["data", "images = centers", "augmentation", "samples", "test %", "gain", "processor s"], body,
                              "The paper prints no numbers for this figure. sigma is in units of bytes."))
    return events


# ---- A stream of 120 million samples ----------------------------------------------------------------------------------------------

def stream_cells(full):
    """Return the cells; the full form has 120 million samples and all images as centers: minutes on a GPU, days on a CPU."""
    centers, samples, projector = ("all", 15_000_000, ("--projector", "bgs")) if full else (2000, 50_000, ())
    return [train({"centers": str(centers), "seen": 8 * samples}, "fashion-mnist", "--centers", centers, "--solver", "ep4", *projector,
                  "--augment", "noise:sigma=15", "--samples", samples, "--epochs", 8, curve=True)]


def stream_page(rows):
    long = [row for row in recorded("gpu_h200.jsonl") if row.get("run") == "noise120m.epoch"]
    events = [pages.chart("A stream of samples", f"{row['seen']:,} samples, here", "samples seen", "test accuracy",
                          [pages.line(f"p = {row['centers']}", curve(row, "samples"))]) for row in rows]
    events.append(pages.chart("A stream of samples", "120,000,000 samples, one H200, recorded", "samples seen", "test accuracy",
                              [pages.line("p = 60,000", [(row["samples"], row["validation_accuracy"]) for row in long])]))
    body = [["here", row["centers"], f"{row['samples']:,}", pages.percent(best(row)), f"{row['peak_bytes'] / 1e6:,.0f}", pages.seconds(row["cpu_s"])]
            for row in rows]
    last = long[-1]
    body.append(["H200, recorded", "60,000", f"{last['samples']:,}", pages.percent(last["validation_accuracy"]), "5,000",
                 f"{last['seconds']:.0f} (wall clock)"])
    events.append(pages.table("What was seen", ["where", "centers", "samples", "test %", "held MB", "seconds"], body,
                              "Fashion-MNIST with Gaussian noise, new with every sample: nothing is stored, memory does not grow with the "
                              "number of samples."))
    return events
