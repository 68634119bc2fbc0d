"""Trust in candidates: which may be loaded, and that what is hashed is what runs."""
