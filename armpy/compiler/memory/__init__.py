"""Memory of values: copies between backends, and tensors placed in arenas by their lifetimes."""
