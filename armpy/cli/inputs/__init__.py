"""The inputs of a model as commands take them: one group of options, completed in one place."""
