"""Workers: processes in which code runs that may take its process with it."""
