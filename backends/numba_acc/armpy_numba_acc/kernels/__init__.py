"""Kernels: one family per module, each made by a function named ``make``."""
