"""``armpy quantize``: a model of small integers made of a float model."""
