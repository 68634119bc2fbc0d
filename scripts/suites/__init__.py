"""Suites of other projects, run on armpy and on the engine that they were written for."""
