"""Measures what is fastest where lowerings have several ways, and keeps what it finds."""
