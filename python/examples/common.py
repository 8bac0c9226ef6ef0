# SPDX-License-Identifier: Apache-2.0
"""A decoder of 6 blocks and its batches, for the examples. Replace both by your own."""
import os

import torch
import torch.distributed as dist
from torch import nn

import weft

SYMBOLS, WIDTH, TOKENS, BATCH = 256, 128, 64, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embeddings = nn.Embedding(SYMBOLS, WIDTH)
        self.layers = nn.ModuleDict({str(number): Block() for number in range(6)})
        self.norm, self.output = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for block in self.layers.values():
            x = block(x)
        return self.output(self.norm(x))

    def init_weights(self):
        torch.manual_seed(0)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02) if parameter.dim() > 1 else nn.init.zeros_(parameter)


def make_batch():
    tokens = torch.randint(0, SYMBOLS, (BATCH, TOKENS + 1), device=find_device())
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def find_device():
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")


def begin():
    if torch.cuda.is_available():
        torch.cuda.set_device(find_device())
    if not dist.is_initialized():
        dist.init_process_group()
    torch.manual_seed(1 + dist.get_rank())


def train(model, plan):
    """Three steps. The last one is recorded, with its memory."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        inputs, targets = make_batch()
        with weft.record(model, optimizer, memory=step == 2) as seen:
            loss_of(model(inputs), targets).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    end(plan, seen)


def end(plan, seen):
    """Prints the figures side by side, and ends with 1 if FSDP2 did otherwise than planned."""
    found = seen.compare(plan)
    if dist.get_rank() == 0:
        print(plan.make_table(seen))
        print("\n".join(found) or "as planned", flush=True)
    os._exit(bool(found))  # threads of PyTorch abort some interpreters that end under load
