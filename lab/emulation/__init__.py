"""64-bit Arm, emulated: an environment with Python, and native code that runs in it."""
