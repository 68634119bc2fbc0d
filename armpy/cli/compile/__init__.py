# SPDX-License-Identifier: Apache-2.0
"""``armpy compile``: prepares a model ahead of time, as a file that starts at once."""
