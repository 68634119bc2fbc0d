"""``armpy inspect``: what a model is made of and where it would run."""
