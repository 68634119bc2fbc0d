"""Broken: it never comes to the end of its import, as with a device that does not answer."""

from __future__ import annotations

import time

while True:
    time.sleep(60)
