"""The commands of armpy: a module of each name, imported when its command is named."""
