# SPDX-License-Identifier: Apache-2.0
"""ONNX front-end of armpy; `armpy.load` finds it by its entry point."""
