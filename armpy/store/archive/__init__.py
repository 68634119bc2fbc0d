"""Prepared files: models with everything that preparing them has made, checked and mapped."""
