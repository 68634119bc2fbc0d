"""Micro-kernels: tiles of products, windows, rows and expressions."""
