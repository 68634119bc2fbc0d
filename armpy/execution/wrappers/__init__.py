"""Wrappers of an execution's steps: variables, profiles, logs, stops, second tries."""
