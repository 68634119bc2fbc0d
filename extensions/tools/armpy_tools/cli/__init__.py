"""Commands of the tools; each is a folder of its name."""
