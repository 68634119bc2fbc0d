"""Native code in this process: object files, and functions that Python calls."""
