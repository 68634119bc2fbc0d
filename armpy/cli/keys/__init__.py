# SPDX-License-Identifier: Apache-2.0
"""``armpy keys``: makes and shows keys that compiled models are signed with."""
