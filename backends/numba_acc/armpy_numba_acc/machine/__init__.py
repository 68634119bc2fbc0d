"""What both towers stand on: instruction sets, kernels by name, layouts. Free of Numba."""
