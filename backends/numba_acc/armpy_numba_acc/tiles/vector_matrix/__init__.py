"""A vector times a matrix, whose weights are read once."""
