"""The contract's memory: managers, tensor handles and their factories, strategies, imports."""
