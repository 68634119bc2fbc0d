"""The `armpy` command."""
