"""Jobs: results of many pictures, written as they come, and taken up again where they stopped."""
