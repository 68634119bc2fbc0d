# SPDX-License-Identifier: Apache-2.0
"""64-bit Arm, emulated: an environment with Python, and native code that runs in it."""
