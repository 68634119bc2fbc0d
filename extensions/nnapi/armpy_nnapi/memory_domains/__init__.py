"""Memory made from descriptions: what it is for, what it holds, and how executions use it."""
