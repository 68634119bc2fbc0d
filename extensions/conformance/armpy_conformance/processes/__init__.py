"""What a backend shares with the process that it is in, and its life in one of its own."""
