"""Discovery of candidates: entry points of distributions, and folders of modules."""
