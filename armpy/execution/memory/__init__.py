"""Memory of values while a network runs: arenas, imports, memory that applications hold."""
