# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 in PyTorch as its users write one, with the sizes and layers of Weft's configs. Attention is PyTorch's fused one.
Weights are random, because time does not depend on them.
"""
from typing import NamedTuple

from torch import nn
from torch.nn import functional as F


class Sizes(NamedTuple):
    vocab: int
    seq_len: int
    hidden: int
    heads: int
    blocks: int


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        hidden = sizes.hidden
        self.heads = sizes.heads
        self.ln1, self.ln2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.fc, self.mlp_proj = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        samples, seq_len, hidden = x.shape
        q, k, v = (part.view(samples, seq_len, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln1(x)).split(hidden, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(samples, seq_len, hidden))
        return x + self.mlp_proj(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Returns the mean loss of a batch."""

    def __init__(self, sizes):
        super().__init__()
        self.vocab = sizes.vocab
        self.tokens = nn.Embedding(sizes.vocab, sizes.hidden)
        self.positions = nn.Embedding(sizes.seq_len, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.blocks))
        self.ln_f = nn.LayerNorm(sizes.hidden)
        self.head = nn.Linear(sizes.hidden, sizes.vocab, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, self.vocab).float(), targets.view(-1))
