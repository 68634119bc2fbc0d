"""Memory that applications, models and executions share, and memory made from a description."""
