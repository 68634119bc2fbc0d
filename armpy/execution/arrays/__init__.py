"""Arrays of callers, checked and brought into the form that a network uses."""
