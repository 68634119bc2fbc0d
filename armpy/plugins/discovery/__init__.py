"""Where candidates are: entry points of distributions, and folders of modules."""
