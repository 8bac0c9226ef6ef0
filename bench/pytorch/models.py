# SPDX-License-Identifier: Apache-2.0
"""Models of 8 to 41 units, with a batch and a loss each."""
import torch
from torch import nn

GENERATOR_SEED = 7


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, width))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):
    """A decoder without positions; `tied` shares the table with the head."""
    symbols = 256

    def __init__(self, width=384, heads=6, layers=6, tied=False):
        super().__init__()
        self.wte = nn.Embedding(self.symbols, width)
        self.h = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, self.symbols, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, x):
        x = self.wte(x)
        for block in self.h:
            x = block(x)
        return self.head(x)

    def units(self):
        tied = self.head.weight is self.wte.weight
        return ([[self.wte, self.head]] if tied else [self.wte, self.head]) + list(self.h)

    def batch(self):
        tokens = torch.randint(0, self.symbols, (1, 257))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


class Layers(nn.Module):
    """Modules in a row, each a unit. Batches are `shape` numbers and one of ten classes."""

    def __init__(self, shape, layers):
        super().__init__()
        self.shape, self.layers = shape, nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def units(self):
        return list(self.layers)

    def batch(self):
        return torch.randn(self.shape), torch.randint(0, 10, self.shape[:1])


class Conv(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Head(nn.Linear):
    def forward(self, x):
        return super().forward(x.mean((2, 3)) if x.dim() == 4 else x)


def make_cnn():
    widths = [3, *4 * [32], *4 * [64], *4 * [128], *4 * [256], *3 * [512]]
    steps = zip(widths, widths[1:])
    return Layers((4, 3, 32, 32), [*(Conv(a, b, 1 + (a < b and a > 3)) for a, b in steps), Head(512, 10)])


class Mix(nn.Module):
    """A residual layer of odd widths."""

    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


def make_uneven():
    generator = torch.Generator().manual_seed(GENERATOR_SEED)
    inner = torch.randint(31, 901, (38,), generator=generator).tolist()
    return Layers((256, 129), [nn.Linear(129, 251), *(Mix(251, each) for each in inner), Head(251, 10)])


MODELS = {"gpt-10m": Gpt, "gpt": lambda: Gpt(256, 4, 12), "tied": lambda: Gpt(384, 6, 7, tied=True), "cnn": make_cnn,
          "uneven": make_uneven}


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
