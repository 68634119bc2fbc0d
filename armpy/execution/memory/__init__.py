"""Where values lie while a network runs: arenas, imports, memory that applications hold."""
