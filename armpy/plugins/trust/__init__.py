"""Trust in candidates: which may be loaded, and that the hashed code is the one that runs."""
