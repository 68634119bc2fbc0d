"""Backends in processes of their own: the side of the process."""
