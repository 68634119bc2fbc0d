"""Vendor extensions: their types and operations, who may use them, what is valid."""
