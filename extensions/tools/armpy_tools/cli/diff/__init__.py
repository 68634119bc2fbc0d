"""``armpy diff``: finds the first layer that two backends, or two files, compute differently."""
