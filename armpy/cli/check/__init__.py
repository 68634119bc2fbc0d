"""``armpy check``: says whether a compiled model fits this machine."""
