# SPDX-License-Identifier: Apache-2.0
"""Helpers that several folders of tests share."""
