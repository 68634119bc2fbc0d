"""Compiled models: started at once, loaded again for other shapes, and kept for later."""
