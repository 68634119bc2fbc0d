# SPDX-License-Identifier: Apache-2.0
"""Measures the fastest way where lowerings have several, and stores the results."""
