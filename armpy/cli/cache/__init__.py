"""``armpy cache``: what is kept on disk, checked and cleared."""
