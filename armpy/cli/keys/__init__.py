"""``armpy keys``: makes and shows keys that prepared files are signed with."""
