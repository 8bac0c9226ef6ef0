# SPDX-License-Identifier: Apache-2.0
"""Models and plans by hand for the tests."""
import copy
from dataclasses import dataclass


@dataclass
class Output:
    x: object


def make_model(seed=0, width=32, tied=False):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(torch.relu(self.up(self.norm(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(64, width)
            self.b = nn.ModuleList([Block() for _ in range(3)])
            self.head = nn.Linear(width, 64, bias=False)

        def forward(self, x):
            x = self.wte(x)
            for block in self.b:
                x = block(x)
            return self.head(x)

    torch.manual_seed(seed)
    model = Model()
    if tied:
        model.head.weight = model.wte.weight
    return model


def make_cached(products=(1, 1, 1, 40), width=64):
    """Blocks of one class with other work each, with buffers of all kinds, and a cache that takes one call of a block."""
    import torch
    from torch import nn

    class Cache(dict):
        def get_seq_length(self):
            return len(self)

    class Block(nn.Module):
        def __init__(self, number, count):
            super().__init__()
            self.number, self.count = number, count
            self.norm, self.up = nn.BatchNorm1d(width), nn.Linear(width, width)
            self.register_buffer("mask", torch.ones(width, dtype=torch.bool))

        def forward(self, x, cache=None):
            if cache is not None:
                assert self.number not in cache, "the cache of a measured call is used again"
                cache[self.number] = x
            y = self.norm(x.transpose(1, 2)).transpose(1, 2).masked_fill(~self.mask, 0.0)
            for _ in range(self.count):
                y = self.up(y)
            return x + y

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.one = nn.Embedding(64, width), nn.Embedding(1, width)
            self.b = nn.ModuleList([Block(number, count) for number, count in enumerate(products)])
            self.head = nn.Linear(width, 64, bias=False)

        def forward(self, x):
            x, cache = self.wte(x) + self.one(torch.zeros_like(x)), Cache()
            for block in self.b:
                x = block(x, cache=cache)
            return self.head(x)

    torch.manual_seed(0)
    return Model()


def make_nested(positions=False, own=()):
    """Blocks of experts in an inner model. `positions` adds a table for them; `own` is _no_split_modules."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])

        def forward(self, x):
            return x + sum(torch.tanh(expert(x)) for expert in self.experts)

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.act = nn.Embedding(64, 16), nn.ReLU()
            self.wpe = nn.Embedding(8, 16) if positions else None
            self.layers, self.norm = nn.ModuleList([Block() for _ in range(5)]), nn.LayerNorm(16)

        def forward(self, x):
            y = self.wte(x)
            if self.wpe is not None:
                y = y + self.wpe(torch.arange(x.shape[1]))
            for block in self.layers:
                y = self.act(block(y))
            return self.norm(self.act(y))

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = Inner(), nn.Linear(16, 64)
            self._no_split_modules = list(own)

        def forward(self, x):
            return self.head(self.inner(x))
    torch.manual_seed(0)
    return Outer()


def make_unit(name, forward=(), backward=None, **changes):
    return {"name": name, "modules": [name], "policy": "fsdp", "reshard_after_forward": True,
            "unshard_in_backward": True, "replicate": False, "forward": list(forward),
            "backward": [name] if backward is None else list(backward), "finalize": "own", **changes}


def make_said(units, order, root=(), cap=1, requires=()):
    return {"format": "weft-export", "version": 1, "weft": "0.2.0", "target": "fsdp2", "plan": "0" * 32, "ranks": 2,
            "micro_steps": 1, "reduce_every": 1,
            "predicted": {"step_ns": 1000000, "peak_bytes": 10000000, "peak_slot": "B:head", "bound_ns": 900000,
                          "gap": 0.111, "default_step_ns": 1100000},
            "param_dtype": "float32", "reduce_dtype": "float32", "gradient_divide_factor": 2,
            "force_sum_reduction": False, "max_reduce_scatter_inputs": cap,
            "root": {"reshard_after_forward": False, "forward": list(root), "backward": [""]},
            "units": units, "order": order,
            "requires": [{"call": "fully_shard", "torch": "2.6"}, *requires], "not_expressed": []}


LATE = ({"call": "set_manual_backward_finalization", "torch": "2.15"}, {"call": "finalize_backward", "torch": "2.15"})


def plain_plan():
    """One ahead, as FSDP2 does in backward, without its gathers in vain."""
    return make_said(
        [make_unit("wte", ["b.0"], unshard_in_backward=False),
         make_unit("b.0", ["b.1"]),
         make_unit("b.1", ["b.2"], ["b.0"]),
         make_unit("b.2", ["head"], ["b.1"]),
         make_unit("head", [], ["b.2"], reshard_after_forward=False, policy="sdp")],
        ["gather wte", "gather b.0", "gather b.1", "gather b.2", "gather head", "gather b.2", "reduce head",
         "gather b.1", "reduce b.2", "gather b.0", "reduce b.1", "reduce b.0", "reduce wte"])


def rich_plan():
    """The root's list, two ahead, a backward gather in a forward list, late reductions, three inputs."""
    return make_said(
        [make_unit("wte", ["b.1", "b.0"], unshard_in_backward=False),
         make_unit("b.0", []),
         make_unit("b.1", ["b.2"], reshard_after_forward=False, policy="sdp", finalize="end"),
         make_unit("b.2", ["b.0"]),
         make_unit("head", [], ["b.2"], reshard_after_forward=False, policy="sdp", finalize="end")],
        ["gather head", "gather wte", "gather b.1", "gather b.0", "gather b.2", "gather b.0", "gather b.2",
         "reduce b.2", "reduce b.0", "reduce head", "reduce b.1", "reduce wte"],
        root=["head"], cap=3, requires=LATE)


def grouped_plan():
    """A unit of two modules, and nothing ahead."""
    both = make_unit("b.0+b.1", modules=["b.0", "b.1"])
    return make_said(
        [make_unit("wte", [], unshard_in_backward=False), both, make_unit("b.2"),
         make_unit("head", [], reshard_after_forward=False, policy="sdp")],
        ["gather wte", "gather b.0+b.1", "gather b.2", "gather head", "reduce head", "gather b.2", "reduce b.2",
         "gather b.0+b.1", "reduce b.0+b.1", "reduce wte"])


def tied_plan():
    """Layers that share a parameter: gathered once, and reduced at the end, because tokens carry no gradient."""
    return make_said(
        [make_unit("wte&head", ["b.0"], modules=["wte", "head"], reshard_after_forward=False, policy="sdp"),
         make_unit("b.0", ["b.1"]), make_unit("b.1", ["b.2"], ["b.0"]), make_unit("b.2", [], ["b.1"])],
        ["gather wte&head", "gather b.0", "gather b.1", "gather b.2", "gather b.2", "gather b.1", "reduce b.2",
         "gather b.0", "reduce b.1", "reduce b.0", "reduce wte&head"])


def mutants():
    """Plans that break one rule each, by name. The order of the rich or plain plan finds them."""
    def change(base, unit, key, value):
        said = copy.deepcopy(base)
        row = said["root"] if unit == "" else next(u for u in said["units"] if u["name"] == unit)
        row[key] = value
        return said
    return {
        "a list reversed": (rich_plan(), change(rich_plan(), "wte", "forward", ["b.0", "b.1"])),
        "a self-reference forgotten": (grouped_plan(), change(grouped_plan(), "b.2", "backward", [])),
        "the root's list dropped": (rich_plan(), change(rich_plan(), "", "forward", [])),
        "the embedding gathered in backward": (plain_plan(), change(plain_plan(), "wte", "unshard_in_backward", True)),
        "a late reduction at its own place": (rich_plan(), change(rich_plan(), "b.1", "finalize", "own")),
        "a tied pair gathered again": (tied_plan(), change(tied_plan(), "wte&head", "reshard_after_forward", True)),
        "a unit kept after forward": (plain_plan(), change(plain_plan(), "b.0", "reshard_after_forward", False)),
    }
