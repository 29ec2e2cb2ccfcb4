# SPDX-License-Identifier: BSD-3-Clause
"""Logic around exchanges from GPU to GPU, tested with a simulated link (fake_link.c)."""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import COLLECTIVE, LONG, PROGRAM, SLOW, Ranks, start  # noqa: E402


class Links(Ranks):
    """Choice of the route, and links that are missing or fail."""

    def collective(self, ranks, wish, misbehavior="", most="5"):
        folders = os.path.join(os.path.dirname(COLLECTIVE), "fake_link") + ":" + os.path.dirname(PROGRAM)
        process = self.launch(ranks, COLLECTIVE, most, wish, variables={"MERCER_MODULES": folders, "MERCER_FAKE_LINK": misbehavior})
        began = time.monotonic()
        try:
            out, err = process.communicate(timeout=40 * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail("did not end: %s %s" % (wish, misbehavior))
        self.assertLess(time.monotonic() - began, 20 * SLOW)
        return process.returncode, out.decode().strip(), err.decode()

    def test_sums_use_the_requested_route(self):
        for ranks, wish, way in ((3, "auto", "direct"), (4, "nccl", "direct"), (2, "host", "host")):
            code, out, err = self.collective(ranks, wish, most="9" if LONG else "6")
            self.assertEqual((code, out), (0, way), err)

    def test_without_a_link(self):
        for misbehavior, why in (("same", "ranks 0 and 1 "), ("open 1", "no GPU wants to"), ("join 1", "fake: no route")):
            code, out, err = self.collective(2, "auto", misbehavior)
            self.assertEqual((code, out), (0, "host"), err)
            code, out, err = self.collective(2, "nccl", misbehavior)
            self.assertEqual((code, out), (3, ""), err)
            self.assertIn("GPUs: ", err)
            self.assertIn(why, err)

    def test_a_link_that_fails(self):
        code, out, err = self.collective(3, "auto", "start 1")
        self.assertEqual((code, out), (1, "direct"), err)
        self.assertRegex(err, "rank 1 of 3: sum.*: fake: the GPU fell off the bus")
        self.assertRegex(err, "rank [02] of 3: sum.*: rank 1 ended: fake: the GPU fell off the bus")

    def test_a_rank_that_stops(self):
        process_code, out, err = self.collective(3, "auto", "stop 1")
        self.assertNotEqual(process_code, 0)
        self.assertEqual(out, "direct")
        self.assertRegex(err, r"rank 1 \(.*\) .*stopped")


if __name__ == "__main__":
    start()
