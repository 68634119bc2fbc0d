"""Backends in processes of their own: the application's side."""
