# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic run logs for the tests of reports."""
import json
import math

EVIL = "<script>document.title='owned'</script>\"'&<img src=x onerror=alert(1)>"


def epoch_events(epochs=8, inside=10):
    """Return `inside` events per epoch; the last one is the end of the epoch and has validation results."""
    events = []
    for k in range(epochs * inside):
        t = (k + 1) / inside
        end = (k + 1) % inside == 0
        events.append({
            "event": "epoch" if end else "progress", "epoch": t, "epochs": epochs, "samples": int(60000 * t),
            "seconds": 1.7 + 3.1 * t, "train_loss": 0.08 * math.exp(-1.1 * t) + 0.002 / t,
            "train_accuracy": 0.995 - 0.2 * math.exp(-1.6 * t),
            "validation_loss": 0.06 * math.exp(-0.9 * t) + 0.004 if end else None,
            "validation_accuracy": 0.977 - 0.12 * math.exp(-1.2 * t) if end else None,
            "projection_residual": 0.2 * math.exp(-0.8 * t) * (1.2 + math.sin(9 * t)) if k % 3 == 0 else None,
            "step": 0.31, "steps": 17 * k, "projections": 4 * k})
    return events


def plan_event():
    return {"event": "plan", "solver": "ep4", "projector": "pcg", "epochs": 8, "batch": 2513, "nystrom": 3000,
            "eigenpairs": 150, "period": 4, "projector_nystrom": 3000, "projector_eigenpairs": 500,
            "projector_passes": 30, "projector_block": 0, "carry": 0, "average": 1, "decay": 1, "cache_data": 0,
            "cache_centers": 1, "precision": "f32", "step_factor": 0.9, "lambda": 0, "bytes": 1843000000,
            "flops": 1.93e13, "seconds": 31.5,
            "text": "memory budget 8.00 GiB (given)\ns = 3000 samples, q = 150 eigenpairs\n"
                    "m = 2513 (critical batch)\nT = 4 batches\n"
                    "projector pcg: K(Z,Z) fits\n8 epochs, gamma 0.90, averaging, step decay\n"
                    "estimated 1.72 GiB, 1.93e+13 flops, 31.5 s\n"}


def confusion_event(labels):
    k = len(labels)
    matrix = [[(960 + 3 * i if i == j else (7 * i + 13 * j) % 11 if abs(i - j) < 4 else 0) for j in range(k)]
              for i in range(k)]
    return {"event": "confusion", "data": "validation", "labels": labels, "matrix": matrix}


def predictions_event(outputs=1, rows=6400, sampled=2000):
    """Return predictions on a curve around the line y = x."""
    truth = [math.sin(0.37 * i) * 4 for i in range(sampled)]
    one = {"r2": 0.8273, "rmse": 0.416, "mae": 0.3078, "true": truth,
           "predicted": [0.9 * y + 0.3 * math.cos(1.7 * i) for i, y in enumerate(truth)]}
    return {"event": "predictions", "data": "validation", "rows": rows, "outputs": [dict(one) for _ in range(outputs)]}


def start_event(**more):
    event = {"event": "start", "version": "0.1.0", "command": "mercer train --x train.npy -o model.safetensors",
             "config": {"kernel": "laplace:bandwidth=10", "centers": 10000, "seed": 0, "threads": 2, "quiet": False,
                        "memory": "8G"},
             "data": {"rows": 60000, "features": 784, "outputs": 10, "dtype": "u8", "task": "classification",
                      "format": "idx"},
             "centers": {"count": 10000, "method": "kmeans"}, "kernel": "laplace:bandwidth=10",
             "preprocess": "scale:factor=0.00392156862745098"}
    event.update(more)
    return event


def whole_run(labels=None):
    """Return the log of a run with every kind of event."""
    labels = labels or [str(i) for i in range(10)]
    values = [0.21 * (i + 1) ** -1.35 for i in range(151)]
    return [start_event(), plan_event(), {"event": "spectrum", "values": values, "eigenpairs": 150,
                                          "tail": values[-1]},
            *epoch_events(), confusion_event(labels), predictions_event(),
            {"event": "summary", "accuracy": 0.9774, "mse": 0.0082, "train_loss": 0.0006,
             "phases": {"setup": 2.31, "forward": 9.8, "gradient": 7.15, "projection": 4.4, "validation": 1.9},
             "timeline": [{"name": "context", "start": 0, "seconds": 0.05},
                          {"name": "reading data", "start": 0.05, "seconds": 0.4},
                          {"name": "set-up: eigensystem", "start": 0.45, "seconds": 2.2},
                          {"name": "steps: predictions", "start": 2.65, "seconds": 9.8},
                          {"name": "writing the model", "start": 26.2, "seconds": 0.2}],  # check-messages: allow (names of spans)
             "seconds": 26.4, "peak_bytes": 1790000000, "flops": 1.9e13, "stopped": 0},
            {"event": "table", "title": "More data, same centers", "columns": ["model", "n", "accuracy"],
             "rows": [["p = 1,000", 1000, "81.2 %"], ["p = 1,000", 10000, "91.0 %"], ["p = 1,000", None, float(0.5)]]},
            {"event": "chart", "title": "Accuracy over samples", "x": "samples n", "y": "test accuracy",
             "log_x": True, "percent": True,
             "series": [{"name": "p = 250", "x": [1000, 3000, 10000, 30000], "y": [0.75, 0.82, 0.85, 0.86]},
                        {"name": "p = 1,000", "x": [1000, 3000, 10000, 30000], "y": [0.81, 0.88, 0.92, 0.935]},
                        {"name": "p = 4,000", "x": [3000, 10000, 30000], "y": [None, 0.93, 0.96]}]},
            {"event": "images", "title": "Samples", "height": 4, "width": 4, "labels": ["a", "b"],
             "images": [[16 * i for i in range(16)], [255 - 16 * i for i in range(16)]]}]


def text(events):
    return "".join(json.dumps(event) + "\n" for event in events)
