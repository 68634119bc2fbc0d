"""Broken: it is no Python. Linters leave it out."""

def get_backend_id() -> str
    return "BrokenSyntaxError"
