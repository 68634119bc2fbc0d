"""Products of matrices, tile by tile: the engine, kinds of products, and the walks over tiles."""
