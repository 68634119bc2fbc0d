"""Calls of loaded networks: by name, in order, started, bound to arrays, in memory that is held."""
