# SPDX-License-Identifier: Apache-2.0
"""Commands of the conformance kit; each is a folder of its name."""
