# SPDX-License-Identifier: Apache-2.0
"""Models, operands and requests as plain data, as the HAL describes them."""
