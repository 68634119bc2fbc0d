"""``armpy compile``: prepares a model ahead of time, as a file that starts at once."""
