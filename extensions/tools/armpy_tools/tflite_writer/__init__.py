"""Writing: graphs into model files of other runtimes."""
