"""Arithmetic on quantised tensors, exactly as TFLite's reference kernels do it."""
