"""Custom operators of MediaPipe's .tflite files, registered through the hook that plugins use."""
