"""A script that was made a plugin and takes itself for the program."""

import sys

print("usage: tool FILE")
sys.exit(2)
