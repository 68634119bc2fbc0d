"""From a region to a program: rewriting, folding, fusion, and the lowering of what is left."""
