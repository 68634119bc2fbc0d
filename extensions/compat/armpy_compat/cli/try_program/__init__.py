"""The command `armpy try`."""
