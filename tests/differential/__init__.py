"""Tests that compare armpy with another engine."""
