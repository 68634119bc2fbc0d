"""``armpy conformance``: a backend tried out case by case."""
