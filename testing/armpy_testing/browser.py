"""Headless Chromium for tests of pages."""

from __future__ import annotations

import shutil

SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
"""As a container without a display of its own needs them."""


def find_chromium() -> str | None:
    """Path of Chromium or Chrome; None if none is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)
