"""GPT-2 in torch for training, with Hugging Face's parameter names."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Projection(nn.Module):
    """An affine map whose weight is stored (inputs, outputs), as GPT-2 stores it."""

    def __init__(self, inputs: int, outputs: int, deviation: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * deviation)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.t(), self.bias)


class Attention(nn.Module):
    """Causal self-attention under a given mask."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = Projection(width, 3 * width, 0.02)
        self.c_proj = Projection(width, width, 0.02 / math.sqrt(2 * layers))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, length, width = x.shape
        parts = self.c_attn(x).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.c_proj(mixed.transpose(1, 2).reshape(rows, length, width))


class Feedforward(nn.Module):
    """Two maps with GPT-2's approximate GELU between them."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.c_fc = Projection(width, 4 * width, 0.02)
        self.c_proj = Projection(4 * width, width, 0.02 / math.sqrt(2 * layers))

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """One layer."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, layers)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Feedforward(width, layers)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    """The whole network; the output matrix is the token embedding.

    Parameters
    ----------
    vocabulary, layers, width, heads, context
        Sizes as in `config.toml`.
    """

    def __init__(self, vocabulary: int, layers: int, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.wte = nn.Parameter(torch.randn(vocabulary, width) * 0.02)
        self.wpe = nn.Parameter(torch.randn(context, width) * 0.02)
        self.h = nn.ModuleList(Block(width, heads, layers) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, inputs: Tensor, positions: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """Return the mean cross-entropy in nats a token over all labels that are not ignored."""
        x = self.wte[inputs] + self.wpe[positions]
        for block in self.h:
            x = block(x, mask)
        logits = functional.linear(self.ln_f(x), self.wte)
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def shipped_state(self) -> dict[str, Tensor]:
        """Return the weights under Hugging Face's names, without the tied output matrix."""
        names = {"wte": "wte.weight", "wpe": "wpe.weight"}
        return {
            f"transformer.{names.get(name, name)}": value.detach().cpu()
            for name, value in self.state_dict().items()
        }
