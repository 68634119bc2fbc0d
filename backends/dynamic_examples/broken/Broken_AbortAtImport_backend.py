"""Broken: it aborts the process when it is imported, as a failed assertion in C does."""

from __future__ import annotations

import os

os.abort()
