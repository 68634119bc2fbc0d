"""Rules for models as plain data: validity, options, defaults and feature levels."""
