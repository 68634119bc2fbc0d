# SPDX-License-Identifier: Apache-2.0
"""Networks and model files for tests, and damage to such files."""
