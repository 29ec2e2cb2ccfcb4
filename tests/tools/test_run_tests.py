# SPDX-License-Identifier: BSD-3-Clause
"""tools/run-tests: its last line and its exit status for small projects with a known outcome."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")


class RunTests(unittest.TestCase):
    def told(self, *tests):
        """Run tests given as (name, command, properties) and return the exit status and the lines of output.

        self.place is the content of the file "place" if a test writes it, otherwise None.
        """
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
                for name, command, properties in tests:
                    file.write(f"add_test({name} {command})\n")
                    if properties:
                        file.write(f"set_tests_properties({name} PROPERTIES {properties})\n")
            command = [sys.executable, os.path.join(TOOLS, "run-tests"), folder]
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.place = None
            if os.path.exists(os.path.join(folder, "place")):
                with open(os.path.join(folder, "place"), encoding="utf-8") as file:
                    self.place = file.read().strip()
            return result.returncode, result.stdout.rstrip("\n").split("\n")

    def outcome(self, *tests):
        """Run tests and return the exit status and the last line of output."""
        status, lines = self.told(*tests)
        return status, lines[-1]

    def test_all_pass(self):
        self.assertEqual(self.outcome(("a", "true", ""), ("b", "true", "")), (0, "2 passed, 0 failed"))

    def test_failure(self):
        status, line = self.outcome(("a", "true", ""), ("b", "false", ""))
        self.assertNotEqual(status, 0)
        self.assertEqual(line, "1 passed, 1 failed")

    def test_skip(self):
        skip = ("b", 'sh "-c" "exit 77"', "SKIP_RETURN_CODE 77")
        self.assertEqual(self.outcome(("a", "true", ""), skip), (0, "1 passed, 0 failed, 1 skipped"))

    def test_timeout_is_a_failure(self):
        status, line = self.outcome(("a", "true", ""), ("b", 'sleep "5"', "TIMEOUT 1"))
        self.assertNotEqual(status, 0)
        self.assertEqual(line, "1 passed, 1 failed")

    def test_missing_program_is_a_failure(self):
        status, line = self.outcome(("a", "true", ""), ("b", "/nonexistent/program", ""))
        self.assertNotEqual(status, 0)
        self.assertEqual(line, "1 passed, 1 failed")

    def test_temporary_files_go(self):
        """Tests have a folder for temporary files. Leftover files are reported and removed."""
        status, lines = self.told(("a", 'sh "-c" "mkdir $TMPDIR/forgotten && echo $TMPDIR > $0" place', ""))
        self.assertEqual((status, lines[-2:]), (0, ["left in the temporary folder: forgotten", "1 passed, 0 failed"]))
        self.assertFalse(os.path.exists(self.place))
        self.assertEqual(self.outcome(("a", 'sh "-c" "rmdir $(mktemp -d)"', "")), (0, "1 passed, 0 failed"))

    def test_no_tests_is_a_failure(self):
        status, line = self.outcome()
        self.assertNotEqual(status, 0)
        self.assertEqual(line, "0 passed, 0 failed")


if __name__ == "__main__":
    unittest.main()
