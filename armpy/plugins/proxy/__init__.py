"""A backend as the core sees it: every call contained, every answer checked."""
