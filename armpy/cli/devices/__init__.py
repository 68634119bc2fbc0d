"""``armpy devices``: lists what backends run on."""
