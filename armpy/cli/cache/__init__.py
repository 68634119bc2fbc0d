"""``armpy cache``: entries on disk, checked and cleared."""
