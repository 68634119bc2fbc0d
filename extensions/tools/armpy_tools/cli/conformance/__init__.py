"""The commands that join ``armpy conformance``: accuracy on models, and pages of results."""
