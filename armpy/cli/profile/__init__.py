"""``armpy profile`` and ``armpy run --profile``: where the time went."""
