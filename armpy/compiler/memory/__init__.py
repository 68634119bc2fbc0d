"""Where values lie: copies between backends, and tensors placed in arenas by their lifetimes."""
