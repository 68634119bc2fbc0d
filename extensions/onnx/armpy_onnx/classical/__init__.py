"""Parts of the classical models of the domain ai.onnx.ml: scores, trees, probabilities."""
