"""Measurements of armpy; nothing here is a test."""
