"""Vendor extensions: their types and operations, permissions, and validation."""
