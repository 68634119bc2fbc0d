# SPDX-License-Identifier: Apache-2.0
"""Programs: steps, the working memory that they run in, and how they are made."""
