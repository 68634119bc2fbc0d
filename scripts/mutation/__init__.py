"""Finds out how many single mutations of armpy's code are noticed, by the kit or by tests."""
