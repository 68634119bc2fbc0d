"""Operands for conformance cases: templates, and instances of them made of chance."""
