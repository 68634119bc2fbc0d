"""``armpy keys``: makes and shows keys that compiled models are signed with."""
