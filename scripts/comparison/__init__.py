"""What `compare_trees.py` runs: subjects, their answers in one tree, and what is kept of them."""
