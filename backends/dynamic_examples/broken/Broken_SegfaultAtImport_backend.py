"""Broken: it reads from address 0 when it is imported."""

from __future__ import annotations

import ctypes

ctypes.string_at(0)
