"""Executions of a compilation: arguments, bursts, events and fences."""
