"""``armpy pictures``: a model on many pictures, and files of results."""
