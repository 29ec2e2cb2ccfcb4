# SPDX-License-Identifier: BSD-3-Clause
"""Every preset of CMakePresets.json configures: a build tree with the preset's values, in a temporary folder."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NEEDS = {"cuda": "nvcc", "mpi": "mpicc", "fuzz": "clang"}  # program without which a preset cannot be configured


class Presets(unittest.TestCase):
    def test_configure(self):
        with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as file:
            presets = [preset for preset in json.load(file)["configurePresets"] if not preset.get("hidden")]
        self.assertGreater(len(presets), 7)
        for preset in presets:
            with self.subTest(preset=preset["name"]), tempfile.TemporaryDirectory() as folder:
                if not shutil.which(NEEDS.get(preset["name"], "cmake")):
                    continue
                done = subprocess.run(["cmake", "--preset", preset["name"], "-B", folder], cwd=ROOT, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout[-2000:])
                with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as file:
                    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.MULTILINE))
                for name, value in preset["cacheVariables"].items():
                    if name != "CMAKE_C_COMPILER":  # CMake replaces it by its path
                        self.assertEqual(cache[name], value, name)


if __name__ == "__main__":
    unittest.main()
