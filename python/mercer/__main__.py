# SPDX-License-Identifier: BSD-3-Clause
"""Entry point of ``python -m mercer ...``, which runs the program ``mercer ...``."""

import os
import sys
from typing import NoReturn

from ._runtime import program


def main() -> NoReturn:
    """Replace this process by the mercer program, with the same arguments."""
    os.execv(program(), [program(), *sys.argv[1:]])


if __name__ == "__main__":
    main()
