"""``armpy run``: run a model on arrays and pictures, and save or print the results."""
