"""Ground of both towers: instruction sets, kernels by name, layouts. Free of Numba."""
