"""Rules for models as plain data: what is valid, optional or default, in which feature level."""
