"""Broken: it ends the process with success when it is imported, without cleaning up."""

from __future__ import annotations

import os

os._exit(0)
