"""Models as applications build them, operand by operand, or with a function per operation."""
