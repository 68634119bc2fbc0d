"""Commands of the conformance kit; each is a folder of its name."""
