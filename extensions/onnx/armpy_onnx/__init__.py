"""ONNX front-end of armpy; `armpy.load` finds it by its entry point."""
