# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mercer ...`` is ``mercer ...``: this process becomes the program."""

import os
import sys
from typing import NoReturn

from ._runtime import program


def main() -> NoReturn:
    """Replaces this process by the program, with its arguments."""
    os.execv(program(), [program(), *sys.argv[1:]])


if __name__ == "__main__":
    main()
