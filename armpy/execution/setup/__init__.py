"""Setup of a runtime: its options, the settings of its networks, its backends."""
