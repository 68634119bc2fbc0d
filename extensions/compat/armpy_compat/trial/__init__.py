"""Trials of programs: the same program on its own engine and on armpy, with what it computed."""
