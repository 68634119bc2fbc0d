"""Models as applications build them, validated and described as plain data."""
