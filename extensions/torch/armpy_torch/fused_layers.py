"""PyTorch's fused layers of transformers as the operators that they stand for.

References
----------
PyTorch, ``aten/src/ATen/native/transformers``: ``attention.cpp``, ``transformer.cpp``. In
evaluation mode and without gradients, `torch.nn.MultiheadAttention` and
`torch.nn.TransformerEncoderLayer` call these, for which PyTorch has no decompositions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch.nn import functional


def multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``aten._native_multi_head_attention``: shapes (n, s, c), batches first.

    A mask is true where attention is not paid: (s, s) of type 0, (n, s) of type 1, else of all.
    """
    n, s, c = query.shape
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    q, k, v = [
        functional.linear(x, w, b).view(n, s, num_head, c // num_head).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]
    scores = q @ k.transpose(-2, -1) * (c // num_head) ** -0.5
    if mask is not None:
        shapes: Mapping[int | None, Sequence[int]] = {0: (1, 1, s, s), 1: (n, 1, 1, s)}
        ignored = mask.to(torch.bool).view(shapes.get(mask_type, mask.shape))
        scores = scores.masked_fill(ignored, -torch.inf)
    shares = scores.softmax(-1)
    y = (shares @ v).transpose(1, 2).reshape(n, s, c)
    return functional.linear(y, proj_weight, proj_bias), (
        shares.mean(1) if average_attn_weights else shares
    )


def encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """``aten._transformer_encoder_layer_fwd``; a mask is as of `multi_head_attention`."""

    def attended(x: torch.Tensor) -> torch.Tensor:
        projections = qkv_weight, qkv_bias, proj_weight, proj_bias
        attention = multi_head_attention(
            x, x, x, embed_dim, num_heads, *projections, mask, mask_type=mask_type
        )
        return attention[0]

    def fed(x: torch.Tensor) -> torch.Tensor:
        wide = functional.linear(x, ffn_weight_1, ffn_bias_1)
        active = functional.gelu(wide) if use_gelu else functional.relu(wide)
        return functional.linear(active, ffn_weight_2, ffn_bias_2)

    def normalised(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    if norm_first:
        src = src + attended(normalised(src, *first))
        return src + fed(normalised(src, *second))
    src = normalised(src + attended(src), *first)
    return normalised(src + fed(src), *second)


FUSED_LAYERS: Mapping[object, Callable[..., object]] = {
    torch.ops.aten._native_multi_head_attention.default: multi_head_attention,
    torch.ops.aten._transformer_encoder_layer_fwd.default: encoder_layer,
}
"""Decompositions of the operators."""
