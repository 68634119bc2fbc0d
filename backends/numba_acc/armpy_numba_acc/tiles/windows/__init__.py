"""Windows over an image: depthwise convolution, pooling, Winograd's algorithm."""
