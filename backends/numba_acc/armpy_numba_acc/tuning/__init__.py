"""Measures the fastest way where lowerings have several, and stores the results."""
