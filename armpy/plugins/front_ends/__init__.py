"""Front-ends of plugins: which one takes a file, and what it answers, checked and made plain."""
