#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_security.py MERCER: data are never executed, open no connections and do not become markup (docs/security.md)."""
import ctypes
import glob
import gzip
import os
import platform
import shutil
import stat
import subprocess
import sys
import unittest

import support
from support import PROGRAM, Case, npy_bytes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "browser"))
import page  # noqa: E402 (the line above must come first)

# Runs a program under a seccomp filter. The first system call that opens a connection, starts a process or executes
# another program kills it (SIGSYS). The filter allows only the execve whose path has the address of `path`. Threads are
# allowed: clone with CLONE_THREAD. clone3 fails with ENOSYS, because a filter cannot read its flags.
CAGE = r"""
import ctypes, os, struct, sys
NUMBERS = {"socket": 41, "connect": 42, "accept": 43, "bind": 49, "listen": 50, "socketpair": 53, "fork": 57, "vfork": 58,
           "ptrace": 101, "accept4": 288, "process_vm_writev": 311, "execveat": 322}
KILL, ALLOW, NO_SYSCALL = 0x80000000, 0x7FFF0000, 0x00050000 | 38
libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(sys.argv[1].encode())
arguments = (ctypes.c_char_p * len(sys.argv))(*[a.encode() for a in sys.argv[1:]], None)
code = []
def op(what, k, yes=0, no=0): code.append(struct.pack("<HBBI", what, yes, no, k))
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06
op(LOAD, 4); op(EQUAL, 0xC000003E, 1, 0); op(RETURN, KILL)          # x86-64 only
op(LOAD, 0)
for number in NUMBERS.values():
    op(EQUAL, number, 0, 1); op(RETURN, KILL)
op(EQUAL, 435, 0, 1); op(RETURN, NO_SYSCALL)                        # clone3
op(EQUAL, 56, 0, 4); op(LOAD, 16); op(SET, 0x10000, 0, 1); op(RETURN, ALLOW); op(RETURN, KILL)
op(EQUAL, 59, 1, 0); op(RETURN, ALLOW)                              # execve
address = ctypes.addressof(path)
op(LOAD, 16); op(EQUAL, address & 0xFFFFFFFF, 1, 0); op(RETURN, KILL)
op(LOAD, 20); op(EQUAL, address >> 32, 1, 0); op(RETURN, KILL)
op(RETURN, ALLOW)
table = ctypes.create_string_buffer(b"".join(code))
program = struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(table))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    os._exit(77)
libc.execv(path, arguments)
os._exit(126)
"""
KILLED = -31  # SIGSYS
HOSTILE = ["$(touch owned)", "`touch owned`", "|touch owned", "__import__('os').system('touch owned')"]


class Caged(Case):
    """The contents and names of files are not executed, start no process and open no connection."""

    def setUp(self):
        super().setUp()
        if platform.machine() != "x86_64" or sys.platform != "linux":
            raise unittest.SkipTest("the filter knows the calls of Linux on x86-64")
        if self.caged("/bin/true").returncode == 77:
            raise unittest.SkipTest("the kernel takes no filters")

    def caged(self, *command):
        # The leak detector of a sanitized build starts a process, which the filter does not allow.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        return subprocess.run([sys.executable, "-c", CAGE, *command], cwd=self.folder, stdin=subprocess.DEVNULL, timeout=120,
                              capture_output=True, env=dict(os.environ, ASAN_OPTIONS=options), check=False)

    def free(self, *arguments):
        """Run the program under the filter and expect success."""
        result = self.caged(PROGRAM, *arguments)
        self.assertNotEqual(result.returncode, KILLED, arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))
        return result

    def test_the_cage_is_shut(self):
        self.assertEqual(self.caged("/bin/true").returncode, 0)
        self.assertEqual(self.caged("/bin/sh", "-c", "/bin/true; /bin/true").returncode, KILLED)
        self.assertEqual(self.caged("/bin/sh", "-c", "exec /bin/true").returncode, KILLED)
        self.assertEqual(self.caged(sys.executable, "-c", "import socket; socket.socket()").returncode, KILLED)
        threads = "import threading; t = threading.Thread(target=print); t.start(); t.join()"
        self.assertEqual(self.caged(sys.executable, "-c", threads).returncode, 0)

    def test_train_predict_inspect(self):
        self.make_csv(names=HOSTILE[:3], n=60)
        with open(self.path("data.csv"), "rb") as file, gzip.open(self.path("again.csv.gz"), "wb") as other:
            shutil.copyfileobj(file, other)
        model = "$(touch owned).safetensors"
        common = ["--target", "color", "--centers", "20", "--seed", "1"]
        self.free("train", "--x", "data.csv", *common, "-o", model, "--log", "run.jsonl", "--validation-fraction", "0.25")
        self.free("train", "--x", "again.csv.gz", *common, "-o", "other.safetensors", "--solver", "auto")
        self.free("predict", "-m", model, "--x", "data.csv", "-o", "p.csv")
        self.free("eval", "-m", model, "--x", "again.csv.gz", "--target", "color")
        self.free("inspect", model)
        self.free("report", "run.jsonl", "-o", "page.html")
        self.free("convert", "--x", "data.csv", "--target", "color", "-o", "x.npy", "--y-output", "y.npy")
        self.assertEqual(glob.glob(self.path("owned")), [])

    def test_a_header_that_is_an_expression(self):
        # A reader that evaluated the header would run the expression; object arrays are pickles, which can run code.
        for text in ("{'descr': %s, 'fortran_order': False, 'shape': (1,)}" % HOSTILE[3],
                     "{'descr': '|O', 'fortran_order': False, 'shape': (1, 1)}"):
            text += " " * (-(10 + len(text) + 1) % 64) + "\n"
            head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
            self.write("x.npy", head + b"cos\nsystem\n(S'touch owned'\ntR.")
            self.write("y.npy", npy_bytes("<i8", (1,), [0]))
            result = self.caged(PROGRAM, "train", "--x", "x.npy", "--y", "y.npy", "-o", "m.safetensors")
            self.assertEqual(result.returncode, 65, result.stderr)
        self.assertEqual(glob.glob(self.path("owned")), [])


class Pages(Case):
    def test_data_are_no_markup(self):
        evil = "<script>alert(1)</script>"
        rows, labels = support.blobs(60)
        names = [evil, "</title><img src=x onerror=alert(1)>", "&lt;b&gt;"]
        lines = ['"<img src=x>",b,"</svg><script>",d,color']
        lines += [",".join("%.4f" % v for v in row) + ',"' + names[k] + '"' for row, k in zip(rows, labels)]
        self.write("<b>.csv", "\n".join(lines) + "\n")
        self.good("train", "--x", "<b>.csv", "--target", "color", "--centers", "20", "-o", "m.safetensors", "--log", "run.jsonl",
                  "--validation-fraction", "0.3", "-q")
        self.good("report", "run.jsonl", "-o", "page.html")
        text = self.read("page.html").decode()
        read = page.Page(text)
        self.assertEqual(read.problems, [])
        self.assertEqual(page.foreign(text), [])
        self.assertEqual(read.counts.get("script", 0), 0)
        self.assertIn("default-src 'none'", text)
        self.assertIn(evil, read.text())  # The text is present in escaped form.


class RaisedRights(Case):
    """MERCER_MODULES loads code, so a program that has more privileges than its caller (set-gid) ignores it."""

    def test_set_gid(self):
        folder = self.path("modules")
        self.write("modules/mercer_mpi.so", "no library")
        self.make_npy()
        program = self.path("mercer")
        shutil.copy(PROGRAM, program)
        environment = dict(os.environ, MERCER_MODULES=folder)

        def said():
            run = subprocess.run([program, "train", "--x", "x.npy", "--y", "y.npy", "-o", "m", "--comm", "mpi"], cwd=self.folder,
                                 env=environment, capture_output=True, text=True, timeout=60, check=False)
            return run.stderr

        self.assertRegex(said(), "mpi .*modules/mercer_mpi.so")
        groups = [group for group in os.getgroups() if group != os.getgid()] or [65534]
        try:
            os.chown(program, -1, groups[0])
            os.chmod(program, 0o755 | stat.S_ISGID)
        except PermissionError:
            raise unittest.SkipTest("no second group to give the program to") from None
        if os.statvfs(program).f_flag & os.ST_NOSUID or no_new_privileges():
            raise unittest.SkipTest("set-gid is ignored here")
        self.assertRegex(said(), "mpi .*set-uid")


def no_new_privileges():
    return ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 1


if __name__ == "__main__":
    support.main()
