"""Networks and parts of them into .tflite files, as hosted engines and `armpy quantize` need."""
