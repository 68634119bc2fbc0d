# SPDX-License-Identifier: Apache-2.0
"""MediaPipe's custom operators of .tflite files."""
