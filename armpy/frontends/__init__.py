"""Front-ends, which make an `armpy.graph.network.Network` of a file, and the writer of .tflite."""
