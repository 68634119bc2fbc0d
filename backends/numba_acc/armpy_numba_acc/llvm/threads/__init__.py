"""Threads in generated code: shares of work, fork and join, waiting, and the cores' arbiter."""
