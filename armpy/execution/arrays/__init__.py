"""What callers hand over, as arrays that a network can use, or why not."""
