"""``armpy calibrate``: measures backends on this machine."""
