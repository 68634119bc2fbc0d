"""Threads that execute, queues before them, deadlines, and how an execution is stopped."""
