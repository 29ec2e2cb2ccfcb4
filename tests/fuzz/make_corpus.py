#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_corpus.py: writes seeds for the fuzz targets to corpus/ next to this script."""
import gzip
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def save(name, seed, data):
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, seed), "wb") as file:
        file.write(data)


def npy(descr, shape, data, fortran=False, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    length = struct.pack("<H" if version == 1 else "<I", len(header) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + b"\n" + data


def idx(code, shape, data):
    return bytes([0, 0, code, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + data


def save_arrays():
    save("npy", "f8", npy("<f8", (3, 2), struct.pack("<6d", 1, 2, 3, 4, 5, float("nan"))))
    save("npy", "f4-fortran", npy("<f4", (2, 3), struct.pack("<6f", 1, 2, 3, 4, 5, 6), fortran=True))
    save("npy", "f2-big", npy(">f2", (4,), struct.pack(">4e", 1, 2, 3, 4)))
    save("npy", "u1-images", npy("|u1", (2, 2, 2, 1), bytes(range(8)), version=2))
    save("npy", "i8", npy("<i8", (3,), struct.pack("<3q", -1, 0, 1 << 40), version=3))
    save("npy", "u2-big-fortran", npy(">u2", (2, 2, 2), struct.pack(">8H", *range(8)), fortran=True))
    save("npy", "b1", npy("|b1", (4, 1), b"\0\1\1\0"))
    save("npy", "text", npy("<U3", (2,), "cat".encode("utf-32-le") + "ox\0".encode("utf-32-le")))
    save("npy", "bytes", npy("|S3", (2,), b"catox\0"))
    images, labels = idx(8, (3, 2, 2), bytes(range(12))), idx(8, (3,), b"\1\0\1")
    save("idx", "images", images)
    save("idx", "labels", labels)
    save("idx", "i2", idx(11, (2, 1), struct.pack(">2h", -1, 300)))
    save("idx", "i4", idx(12, (2,), struct.pack(">2i", -1, 1 << 30)))
    save("idx", "f4", idx(13, (2, 2), struct.pack(">4f", 1, -2, 3, 4)))
    save("idx", "f8", idx(14, (1, 2), struct.pack(">2d", 1, -2)))
    save("idx", "images.gz", gzip.compress(images, mtime=0))
    save("idx", "members.gz", gzip.compress(labels[:6], mtime=0) + gzip.compress(labels[6:], mtime=0) + b"\0\0")


def save_texts():
    # The first byte selects the options of the reader; see the fuzz targets.
    csv = {
        "header": (0x31, b"a,b,label\n1,2.5,cat\n-3e2,4,dog\n5,6,cat\n"),
        "plain": (0x32, b"5.1,3.5,1\n4.9,3.0,0\n"),
        "quotes": (0x31, b'"a ""b""","c\nd",label\r\n"1",2,"x, ""y"""\r\n3,"4","z"\r\n'),
        "semicolons": (0x36, b"1;2;3\n4;5;6\n\n"),
        "tabs": (0x12, b"1\t2\tp\n4\t5\tq\n"),
        "mark": (0x39, b"\xef\xbb\xbfx,label\n0.5,1.25\n1e-3,7\n"),
        "part": (0x72, b"1,2,a\n3,4,b\n5,6,c\n"),
        "unlabeled": (0x3D, b"a,b,label\n1,2,3\n4,5,6\n"),
        "missing": (0x31, b"a,label\n1,\n,2\n"),
        "longest": (0x3B, b"1.7976931348623157e308,4.9406564584124654e-324\n0." + b"1234567890" * 9 + b",3\n"),
        "notations": (0x31, b'a,b,c,label\n"$1,308",31/12/2024,12%,"1,5"\n$5.5,1/2/2024,7 %,7\n$7,2/2/2024,8%,8\n'),
        "decimal-commas": (0x39, b"a;b;label\n1.308,5;01.02.2024;1.234,5\n7,25;3.4.2024;2.345\n8;5.6.2024;7\n"),
        "targets": (0xD0, b"cat\ndog\ncat\n"),
        "targets-header": (0xF4, b"label\n7\n8\n7\n"),
        "targets-columns": (0xF1, b"id,label\n1,u\n2,v\n3,u\n"),
        "targets-values": (0xD8, b"0.5\n1.5\n2.5\n"),
    }
    for seed, (choice, text) in csv.items():
        save("csv", seed, bytes([choice]) + text)
    libsvm = {
        "classes": (0, b"+1 1:0.5 3:-2 # remark\n-1 2:1e1\n1\n"),
        "from-zero": (0, b"a 0:1 2:3\nb 1:2"),
        "values": (2, b"0.5 1:1\r\n0.25 1:2\r\n"),
        "part": (0x1C, b"1 1:1 2:2\n2 1:3\n3 2:4\n"),
        "unlabeled": (3, b"1 1:1 2:2\n\n# nothing\n2 1:3\n"),
        "large": (1, b"1 1:1 2147483647:2\n2 qid:3 1:3\n"),
    }
    for seed, (choice, text) in libsvm.items():
        save("libsvm", seed, bytes([choice]) + text)


def save_program_files():
    """Save seeds for arguments (the first byte selects the command), run logs and the configuration of a run's folder."""
    for seed, text in {
        "train": b"\0--x\nx.npy\n--y=y.npy\n--kernel\nlaplace:bandwidth=3\n--centers\n20k\n-o\nm.safetensors\n-q",
        "config": b'\0{"x": "a.csv", "epochs": 3, "lambda": 1e-3, "columns": ["a:number", "b:word"], "average": true}\n--seed\n7',
        "letters": b"\x01-qo-\n--\n--x\n-",
        "wrong": b"\x02--memory=12Q\n--nosuch\n--checkpoint-every\n10m",
        "hex": b'\x03{"x": {"hex": "ff00"}, "_remark": [1], "quiet": false, "threads": "auto"}',
    }.items():
        save("options", seed, text)
    start = b'{"event": "start", "version": "0.3.0", "options": {"x": "<b>"}, "kernel": "laplace:bandwidth=1"}\n'
    epoch = b'{"event": "epoch", "epoch": %d, "seconds": %d, "train_loss": 0.5, "validation_accuracy": 0.%d}\n'
    for seed, text in {
        "run": start + b"".join(epoch % (k, k, 5 + k) for k in range(4)) + b'{"event": "summary", "seconds": 3}\n',
        "resumed": start + epoch % (1, 1, 6) + b'{"event": "resume"}\n' + epoch % (1, 1, 6) + b'{"event": "progr',
        "confusion": start + b'{"event": "confusion", "labels": ["a", "</svg>"], "counts": [[3, 1], [0, 4]]}\n',
        "curves": start + b'{"event": "spectrum", "values": [3, 1, 0.1], "eigenpairs": 2, "tail": 0.05}\n'
        b'{"event": "table", "title": "t", "columns": ["n"], "rows": [["r", 1]]}\n',
    }.items():
        save("run_log", seed, text)
    config = b'{"version": "0.3.0", "command": "train", "options": {"x": "/a.csv", "epochs": 3, "threads": 1}, '
    save("checkpoint", "config", config + b'"fingerprints": {"train": "bb956cf07d756406", "validation": "%016d"}, "finished": false}' % 0)


if __name__ == "__main__":
    save_arrays()
    save_texts()
    save_program_files()
