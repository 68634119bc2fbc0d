"""What operations compute, straight from their descriptions and without any backend."""
