"""Plugins that cannot hurt, one to a module."""
