"""``armpy new-backend``: writes the project of a new backend."""
