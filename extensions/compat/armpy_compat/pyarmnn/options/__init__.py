"""Options of backends, of optimising and of runtimes."""
