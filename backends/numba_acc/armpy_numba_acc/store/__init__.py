"""Store on disk: object code, compiled programs."""
