"""Broken: it calls `sys.exit` when it is imported, as a script does that ends."""

from __future__ import annotations

import sys

sys.exit("usage: tool [options]")
