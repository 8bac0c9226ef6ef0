# SPDX-License-Identifier: Apache-2.0
"""A Llama in PyTorch as its users write one, with the sizes and layers of Weft's llama-10m. Attention is PyTorch's
fused one, with shared heads of keys and values. Weights are random, because time does not depend on them.
"""
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F


class Sizes(NamedTuple):
    vocab: int
    seq_len: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    blocks: int


def angles(sizes, base=10000.0):
    size = sizes.hidden // sizes.heads
    frequencies = 1.0 / base ** (torch.arange(0, size, 2).float() / size)
    turned = torch.outer(torch.arange(sizes.seq_len).float(), frequencies)
    turned = torch.cat((turned, turned), dim=-1)
    return turned.cos(), turned.sin()


def turn(x, cosines, sines):
    low, high = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-high, low), dim=-1) * sines


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        hidden, self.size = sizes.hidden, sizes.hidden // sizes.heads
        kv = self.size * sizes.kv_heads
        self.parts = (hidden, kv, kv)
        self.norm1, self.norm2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.qkv, self.o = nn.Linear(hidden, hidden + 2 * kv, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * sizes.ffn, bias=False)
        self.down = nn.Linear(sizes.ffn, hidden, bias=False)

    def forward(self, x, cosines, sines):
        samples, seq_len, hidden = x.shape
        q, k, v = (part.view(samples, seq_len, -1, self.size).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(self.parts, dim=2))
        q, k = turn(q, cosines, sines), turn(k, cosines, sines)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(attended.transpose(1, 2).reshape(samples, seq_len, hidden))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """Returns the mean loss of a batch."""

    def __init__(self, sizes):
        super().__init__()
        self.vocab = sizes.vocab
        self.tokens = nn.Embedding(sizes.vocab, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.blocks))
        self.norm = nn.RMSNorm(sizes.hidden, eps=1e-5)
        self.head = nn.Linear(sizes.hidden, sizes.vocab, bias=False)
        cosines, sines = angles(sizes)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        cosines, sines = self.cosines.to(x.dtype), self.sines.to(x.dtype)
        for block in self.blocks:
            x = block(x, cosines, sines)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, self.vocab).float(), targets.view(-1))
