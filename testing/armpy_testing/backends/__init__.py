"""Backends for tests: scripted, faulty, slow, with memory of their own; and how they are found."""
