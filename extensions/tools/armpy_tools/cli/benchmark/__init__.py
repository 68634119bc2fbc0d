"""``armpy benchmark``: models, backends and options measured beside each other."""
