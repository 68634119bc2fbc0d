"""``armpy doctor``: what is wrong with backends, plugins and files, and what to do about it."""
