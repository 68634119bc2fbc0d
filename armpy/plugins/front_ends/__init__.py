"""Front-ends of plugins: which one takes a file, and its answer, checked and made plain."""
