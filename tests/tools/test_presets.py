# SPDX-License-Identifier: BSD-3-Clause
"""Every preset of CMakePresets.json configures, with its values, and builds a small target, in a temporary folder.

A preset whose programs are missing is skipped with the reason. If presets were skipped and no other one failed, the exit
status is 77.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
OBJECT = "CMakeFiles/mercer_objects.dir/src/core/memory.c.o"
# name: programs that the preset needs, a small target, a text that the target contains only with the flags of this preset
BUILDS = {
    "release": ([], OBJECT, b""),
    "demo": ([], OBJECT, b""),
    "debug": ([], OBJECT, b".debug_info"),
    "asan-ubsan": ([], OBJECT, b"__asan_"),
    "tsan": ([], OBJECT, b"__tsan_"),
    "fuzz": (["clang"], OBJECT, b"__sanitizer_cov"),
    "coverage": ([], OBJECT, b"__gcov_"),
    "cuda": (["nvcc"], "cuda/scan.cu.o", b".nv_fatbin"),
    "mpi": (["mpicc"], "mercer_mpi.so", b"MPI_"),
}


def run(*command):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class Presets(unittest.TestCase):
    def configure(self, preset, folder):
        """Configure a preset with Ninja, whose targets are files, and compare the cache with the preset's values."""
        # one architecture is enough to see that device code is compiled
        done = run("cmake", "--preset", preset["name"], "-B", folder, "-G", "Ninja", "-DMERCER_CUDA_ARCHITECTURES=90", "-DMERCER_CUDA_QUICK=ON")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as file:
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.MULTILINE))
        for name, value in preset["cacheVariables"].items():
            if name != "CMAKE_C_COMPILER":  # CMake replaces the name by its path
                self.assertEqual(cache[name], value, name)

    def test_presets(self):
        with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as file:
            presets = [preset for preset in json.load(file)["configurePresets"] if not preset.get("hidden")]
        self.assertEqual([preset["name"] for preset in presets], list(BUILDS))
        for preset in presets:
            needs, target, text = BUILDS[preset["name"]]
            missing = [program for program in ["ninja", *needs] if not shutil.which(program)]
            with self.subTest(preset=preset["name"]), tempfile.TemporaryDirectory() as folder:
                if missing:
                    self.skipTest(f"preset {preset['name']} needs {', '.join(missing)}")
                self.configure(preset, folder)
                done = run("cmake", "--build", folder, "--target", target)
                self.assertEqual(done.returncode, 0, done.stdout[-2000:])
                with open(os.path.join(folder, target), "rb") as file:
                    self.assertTrue(text in file.read(), f"{target} has no {text}")


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
