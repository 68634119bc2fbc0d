"""Optimised networks as files."""
