"""Lets ``python -m armpy`` do what the `armpy` command does."""

import sys

from armpy.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
