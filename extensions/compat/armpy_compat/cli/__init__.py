"""Commands that this extension adds to `armpy`."""
