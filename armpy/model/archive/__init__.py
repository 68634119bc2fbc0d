"""Compiled models: written, started at once, loaded again for other shapes, and kept for later."""
