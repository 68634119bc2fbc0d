"""Loading candidates in child processes first, and what that found out."""
