"""``armpy doctor``: facts about an installation, and problems of backends and plugins."""
