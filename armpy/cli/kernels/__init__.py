"""``armpy kernels``: builds packs of compiled kernels, and shows those that are used."""
