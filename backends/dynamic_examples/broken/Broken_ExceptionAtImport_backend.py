"""Broken: it raises an exception when it is imported."""

from __future__ import annotations

raise RuntimeError("the device does not answer")
