# SPDX-License-Identifier: Apache-2.0
"""``armpy calibrate``: measures backends on this machine."""
