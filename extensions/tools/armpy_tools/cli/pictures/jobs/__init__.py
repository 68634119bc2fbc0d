# SPDX-License-Identifier: Apache-2.0
"""Jobs: results of many pictures, written as they come, and taken up again where they stopped."""
