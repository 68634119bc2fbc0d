"""What is kept on disk: object code, compiled programs."""
