# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the source tree that a test extends, within the number of files stated in CONTRIBUTING.md, and builds."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


class Extended(unittest.TestCase):
    """Base class with a copy of the files under version control in self.root; self.touched holds the changed files."""

    @classmethod
    def setUpClass(cls):
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if listed.returncode != 0 or not listed.stdout:
            raise unittest.SkipTest("not a checkout of git: there is no list of files to copy")
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.folder.name, "mercer")
        cls.touched = set()
        for name in listed.stdout.decode().split("\0"):
            source = os.path.join(ROOT, name)
            if name and os.path.isfile(source):
                target = os.path.join(cls.root, name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy2(source, target)
        cls.environment = dict(os.environ, CCACHE_BASEDIR=cls.root, CCACHE_NOHASHDIR="1")
        cls.environment.pop("CI", None)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.root, name)

    def insert(self, name, after, text):
        """Insert text after the only occurrence of `after`."""
        with open(self.path(name), encoding="utf-8") as file:
            content = file.read()
        self.assertEqual(content.count(after), 1, f"{name}: {after!r}")
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content.replace(after, after + text))
        self.touched.add(name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        self.touched.add(name)

    def run_command(self, *command, status=0):
        """Run a command, check its exit status and return its output."""
        done = subprocess.run(command, cwd=self.root, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        self.assertEqual(done.returncode, status, " ".join(command) + "\n" + done.stdout[-4000:])
        return done.stdout

    def build(self, *targets, optimization=None, **options):
        """Configure with the options and build the targets in the folder build/.

        `optimization` is a compiler flag such as -O0. It saves time if all files must be recompiled. Otherwise the
        default flags are faster, because unchanged files are in the compiler cache.
        """
        chosen = {"CUDA": "OFF", "MPI": "OFF", "NCCL": "OFF", "CLI": "OFF", "EXAMPLES": "OFF", "BENCH": "OFF",
                  "WERROR": "ON", **options}
        flags = [f"-DMERCER_{name}={value}" for name, value in chosen.items()]
        if optimization:
            flags.append(f"-DCMAKE_C_FLAGS_RELEASE={optimization}")
        # In CI, files with other flags are not cached, because only a later run could use them.
        cache = "ccache" if shutil.which("ccache") and not (optimization and os.environ.get("CI")) else ""
        flags.append(f"-DCMAKE_C_COMPILER_LAUNCHER={cache}")
        if shutil.which("ninja"):
            flags += ["-G", "Ninja"]
        self.run_command("cmake", "-S", self.root, "-B", "build", "-DCMAKE_BUILD_TYPE=Release", *flags)
        self.run_command("cmake", "--build", "build", "-j", str(len(os.sched_getaffinity(0))), "--target", *targets)
