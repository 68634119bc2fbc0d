"""Networks and model files for tests, and damage to such files."""
