"""Compilations: a model on its devices, and what its executions take and give."""
