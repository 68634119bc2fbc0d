"""``armpy tune``: lets backends measure what is fastest for a model on this machine."""
