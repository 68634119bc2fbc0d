"""``armpy report``: writes one page about a model, for a browser."""
