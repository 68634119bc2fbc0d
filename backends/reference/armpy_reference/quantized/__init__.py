# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on quantised tensors, exactly as TFLite's reference kernels do it."""
