"""The execution that is under way: its cancellation, time limits, priority and device time."""
