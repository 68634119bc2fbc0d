"""What is kept on disk from one process to the next, and costs time only if it is lost."""
