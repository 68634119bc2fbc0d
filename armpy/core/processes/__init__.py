# SPDX-License-Identifier: Apache-2.0
"""Workers: processes in which code runs that may take its process with it."""
