"""Memory made from descriptions: roles, contents, and use by executions."""
