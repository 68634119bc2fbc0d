"""Placement by cost: where layers run cheapest, copies between backends included."""
