"""Programs under construction: emitter, memory, choices, and which operations can be lowered."""
