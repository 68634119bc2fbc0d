"""Models, operands and requests as plain data, as the HAL describes them."""
