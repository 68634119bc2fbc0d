"""Measuring: latency, ratios of things that took turns, and the engines beside armpy."""
