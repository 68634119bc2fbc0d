"""Cost model of a machine: its figures, how they are measured, and what corrects them."""
