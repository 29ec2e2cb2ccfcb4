# SPDX-License-Identifier: BSD-3-Clause
"""A new stage of a fit touches three files: its own source file, the header of src/fit and the list of stages.

The test adds the stage `count` after the stage `samples` to a copy of the tree. It records the number of training rows.
"""
import json
import unittest

import extend

OWN, HEADER, LIST = "src/fit/fit_count.c", "src/fit/fitting.h", "src/fit/stages.c"

STAGE = """/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage count: the number of training rows, for the record. */
#include "fit/fitting.h"

mercer_status mrc_stage_count(mercer_fitting *self)
{
    long long rows = (long long)self->data->rows;
    mrc_fit_decide(self, "count", "rows", MRC_FROM_DATA, "%lld", rows);
    mrc_fit_explain(self, "count", "rows", "%lld training rows", rows);
    return MERCER_OK;
}
"""


class Stage(extend.Extended):
    def test_three_files(self):
        self.write(OWN, STAGE)
        self.insert(HEADER, "mercer_status mrc_stage_samples(mercer_fitting *self);\n", "mercer_status mrc_stage_count(mercer_fitting *self);\n")
        self.insert(LIST, "hold out validation rows, find the transform of the targets */\n", '    {"count", mrc_stage_count},\n')
        self.assertLessEqual(len(self.touched), 3)
        self.build("mercer_program", optimization="-O0", CLI="ON", TESTS="OFF", VECTORS="OFF", WERROR="OFF")
        rows = [f"{i},{i * i % 7}" for i in range(60)]
        self.write("t.csv", "\n".join(["a,y", *rows]) + "\n")
        output = self.run_command("build/mercer", "train", "--x", "t.csv", "--target", "y", "--task", "regression", "--effort", "1", "--json", "--verbose",
                                  "-o", "m.safetensors")
        self.assertIn("count: 60 training rows\n", output)
        decisions = json.loads(output.splitlines()[-1])["decisions"]
        self.assertEqual(decisions[0], {"stage": "count", "name": "rows", "origin": "data", "value": "60", "text": "60 training rows"})


if __name__ == "__main__":
    unittest.main()
