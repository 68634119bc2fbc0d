"""Folding: what follows from constants and shapes, computed while a network is specialised."""
