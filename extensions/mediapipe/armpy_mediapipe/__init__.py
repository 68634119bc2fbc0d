"""MediaPipe's custom operators of .tflite files."""
