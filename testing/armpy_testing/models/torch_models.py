"""Networks built in PyTorch, small, with random weights; import it only where PyTorch is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import nn
from torch.nn import functional


class Inverted(nn.Module):
    """MobileNetV2's block: wide in the middle, with a shortcut where shapes allow."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        wide = 4 * before
        self.is_residual = stride == 1 and before == after
        self.body = nn.Sequential(
            *convolved(before, wide, 1),
            nn.ReLU6(),
            *convolved(wide, wide, 3, stride, groups=wide),
            nn.ReLU6(),
            *convolved(wide, after, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w)."""
        return x + self.body(x) if self.is_residual else self.body(x)


def convolved(
    before: int, after: int, size: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, nn.Module]:
    """A convolution and its batch normalisation."""
    layer = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
    return layer, nn.BatchNorm2d(after)


class Residual(nn.Module):
    """ResNet's block."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *convolved(before, after, 3, stride), nn.ReLU(), *convolved(after, after, 3)
        )
        self.shortcut = nn.Sequential(*convolved(before, after, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w)."""
        return functional.relu(self.body(x) + self.shortcut(x))


class Excited(nn.Module):
    """MobileNetV3's block: squeeze and excitation, hard swish."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*convolved(channels, channels, 5, groups=channels))
        self.squeeze = nn.Conv2d(channels, channels // 4, 1)
        self.excite = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w)."""
        y = functional.hardswish(self.body(x))
        scale = functional.relu(self.squeeze(functional.adaptive_avg_pool2d(y, 1)))
        return x + functional.silu(y * functional.hardsigmoid(self.excite(scale)))


class Shuffled(nn.Module):
    """ShuffleNetV2's block: half of the channels pass, then they are dealt out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.body = nn.Sequential(
            *convolved(half, half, 1), nn.ReLU(), *convolved(half, half, 3, groups=half)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w)."""
        left, right = x.chunk(2, dim=1)
        y = torch.cat((left, self.body(right)), dim=1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class Modern(nn.Module):
    """ConvNeXt's block: LayerNorm and Gelu with the channels last."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.deep = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide = nn.Linear(channels, 4 * channels)
        self.narrow = nn.Linear(4 * channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w)."""
        y = self.norm(self.deep(x).permute(0, 2, 3, 1))
        y = self.narrow(functional.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


class Segmenting(nn.Module):
    """A small U-Net: pooling, transposed convolution, bilinear resizing, concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(*convolved(3, 8, 3), nn.LeakyReLU(0.1))
        self.deep = nn.Sequential(*convolved(8, 16, 3), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w)."""
        side = self.down(x)
        up = self.up(self.deep(functional.max_pool2d(side, 2)))
        y = self.last(torch.cat((side, up), dim=1))
        y = functional.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return functional.softmax(y, dim=1)


class Attention(nn.Module):
    """Self-attention with several heads, written out or as PyTorch's own function."""

    def __init__(self, width: int, heads: int, *, is_causal: bool, is_written_out: bool) -> None:
        super().__init__()
        self.heads, self.is_causal, self.is_written_out = heads, is_causal, is_written_out
        self.mixed = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, s, c)."""
        n, s, c = x.shape
        parts = self.mixed(x).view(n, s, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        if self.is_written_out:
            scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
            y = functional.softmax(scores, dim=-1) @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return self.out(y.transpose(1, 2).reshape(n, s, c))


class Encoding(nn.Module):
    """A layer of a transformer; normalises before or after."""

    def __init__(self, width: int, heads: int, *, is_first: bool, is_causal: bool = False) -> None:
        super().__init__()
        self.is_first = is_first
        self.attention = Attention(width, heads, is_causal=is_causal, is_written_out=not is_first)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, s, c)."""
        first, second = self.norms
        if self.is_first:
            x = x + self.attention(first(x))
            return x + self.narrow(functional.gelu(self.wide(second(x)), approximate="tanh"))
        x = first(x + self.attention(x))
        return second(x + self.narrow(functional.gelu(self.wide(x))))


class Reading(nn.Module):
    """Token ids into embeddings, layers of a transformer, and one number per token."""

    def __init__(
        self, *, is_causal: bool, width: int = 32, layers: int = 2, heads: int = 4
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(50, width)
        self.places = nn.Parameter(torch.randn(512, width) / 4)
        self.layers = nn.Sequential(
            *(
                Encoding(width, heads, is_first=is_causal, is_causal=is_causal)
                for _ in range(layers)
            )
        )
        self.last = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, s), int64."""
        y = self.words(x) + self.places[: x.shape[1]]
        return self.last(self.layers(y))


class Patches(nn.Module):
    """A vision transformer: patches by a convolution, a class token, layers of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, stride=8)
        self.token = nn.Parameter(torch.randn(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32) / 4)
        self.layers = nn.Sequential(*(Encoding(32, 4, is_first=True) for _ in range(2)))
        self.last = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w)."""
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat((self.token.expand(x.shape[0], -1, -1), y), dim=1) + self.places
        return self.last(self.layers(y)[:, 0])


class Listening(nn.Module):
    """Convolutions of a line, then a GRU in both directions and an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Conv1d(4, 8, 3, stride=2, padding=1)
        self.gru = nn.GRU(8, 8, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(16, 8, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, c, time)."""
        y = functional.elu(self.line(x)).transpose(1, 2)
        y, _ = self.gru(y)
        y, _ = self.lstm(y)
        return self.last(y[:, -1])


def _image(*body: nn.Module, width: int) -> nn.Module:
    """A classifier of images around some blocks."""
    return nn.Sequential(
        *convolved(3, 16, 3, 2),
        nn.ReLU6(),
        *body,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 10),
    )


_IMAGE = (1, 3, 32, 32)

MODELS: Mapping[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = MappingProxyType(
    {
        "mobilenet_v2": (
            lambda: _image(Inverted(16, 16, 1), Inverted(16, 24, 2), Inverted(24, 24, 1), width=24),
            _IMAGE,
        ),
        "resnet": (lambda: _image(Residual(16, 16, 1), Residual(16, 32, 2), width=32), _IMAGE),
        "mobilenet_v3": (lambda: _image(Excited(16), Excited(16), width=16), _IMAGE),
        "shufflenet": (lambda: _image(Shuffled(16), Shuffled(16), width=16), _IMAGE),
        "convnext": (lambda: _image(Modern(16), Modern(16), width=16), _IMAGE),
        "unet": (Segmenting, _IMAGE),
        "vit": (Patches, _IMAGE),
        "bert": (lambda: Reading(is_causal=False), (1, 12)),
        "gpt": (lambda: Reading(is_causal=True), (1, 12)),
        "recurrent": (Listening, (1, 4, 20)),
    }
)
"""How each network is made, and the shape that it reads; token ids if there are two axes."""


def built(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A network with random weights and statistics, and an input for it."""
    torch.manual_seed(7)
    make, shape = MODELS[name]
    model = make().eval()
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.2)
            layer.running_var.uniform_(0.5, 1.5)
            layer.weight.data.uniform_(0.7, 1.3)
            layer.bias.data.normal_(0, 0.2)
    values = torch.randint(0, 50, shape) if len(shape) == 2 else torch.randn(shape)
    return model, values
