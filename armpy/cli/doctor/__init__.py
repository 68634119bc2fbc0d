"""``armpy doctor``: faults of backends, plugins and files, and their remedies."""
