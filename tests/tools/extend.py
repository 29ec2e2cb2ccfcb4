# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the tree that a test adds something to, by touching as few files as CONTRIBUTING.md says, and builds."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


class Extended(unittest.TestCase):
    """A test with a copy of the files under version control in self.root; self.touched has those that were changed."""

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
        """Puts text behind the only place where `after` stands."""
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
        """What the command prints; fails unless it ends with that status."""
        done = subprocess.run(command, cwd=self.root, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        self.assertEqual(done.returncode, status, " ".join(command) + "\n" + done.stdout[-4000:])
        return done.stdout

    def build(self, *targets, optimisation=None, **options):
        """Configures with options and builds the targets; build/ is the folder. Where everything is compiled anew, less
        optimisation takes less time; what is not is in the cache with the usual one."""
        chosen = {"CUDA": "OFF", "MPI": "OFF", "NCCL": "OFF", "CLI": "OFF", "EXAMPLES": "OFF", "BENCH": "OFF",
                  "WERROR": "ON", **options}
        flags = [f"-DMERCER_{name}={value}" for name, value in chosen.items()]
        if optimisation:
            flags.append(f"-DCMAKE_C_FLAGS_RELEASE={optimisation}")
        # What is compiled anew is found in a cache by the next run alone.
        cache = "ccache" if shutil.which("ccache") and not (optimisation and os.environ.get("CI")) else ""
        flags.append(f"-DCMAKE_C_COMPILER_LAUNCHER={cache}")
        if shutil.which("ninja"):
            flags += ["-G", "Ninja"]
        self.run_command("cmake", "-S", self.root, "-B", "build", "-DCMAKE_BUILD_TYPE=Release", *flags)
        self.run_command("cmake", "--build", "build", "-j", str(len(os.sched_getaffinity(0))), "--target", *targets)
