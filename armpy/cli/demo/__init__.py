"""A small network of the project's own that reads digits, and pictures of digits for it."""
