"""``armpy run``: a model on arrays and pictures, and what becomes of the results."""
