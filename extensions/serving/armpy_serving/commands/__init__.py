"""Commands that the extension adds to `armpy`."""
