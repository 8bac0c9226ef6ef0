# SPDX-License-Identifier: Apache-2.0
"""Small exchanges between the ranks of a plan. Object collectives need NumPy, so these send tensors."""
from contextlib import contextmanager

GROUPS = [None]  # exchanges in each of them in turn reach all ranks of a plan; None: the default group


@contextmanager
def within(mesh):
    """Limits exchanges to the ranks of a mesh: the stages of a pipeline have a plan each."""
    kept = list(GROUPS)
    if mesh is not None:
        GROUPS[:] = [mesh.get_group(dimension) for dimension in range(mesh.ndim)]
    try:
        yield
    finally:
        GROUPS[:] = kept


def has_ranks():
    import torch.distributed as dist
    return dist.is_available() and dist.is_initialized() and any(dist.get_world_size(group) > 1 for group in GROUPS)


def is_first():
    import torch.distributed as dist
    return not has_ranks() or all(dist.get_rank(group) == 0 for group in GROUPS)


def find_backends(group=None):
    """Returns the backend of each type of device. A group made without a backend has one for each."""
    from torch.distributed.distributed_c10d import get_backend_config
    return dict(part.split(":") for part in str(get_backend_config(group)).split(","))


def find_ranks_device():
    """Returns the device that the ranks train on: a GPU if NCCL joins them."""
    import torch
    on_gpu = find_backends(GROUPS[0]).get("cuda") == "nccl" and torch.cuda.is_available()
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")


def find_device():
    """Returns the device of tensors for exchanges."""
    import torch
    return torch.device("cpu") if "cpu" in find_backends(GROUPS[0]) else torch.device("cuda", torch.cuda.current_device())


def share_text(text):
    """Returns the first rank's text on all ranks."""
    import torch
    import torch.distributed as dist
    if not has_ranks():
        return text
    device = find_device()
    for group in GROUPS:
        data = torch.tensor(list(text.encode()), dtype=torch.uint8, device=device)
        length = torch.tensor([data.numel()], device=device)
        dist.broadcast(length, group=group, group_src=0)
        if dist.get_rank(group) != 0:
            data = torch.empty(int(length), dtype=torch.uint8, device=device)
        dist.broadcast(data, group=group, group_src=0)
        text = bytes(data.tolist()).decode()
    return text


def gather_numbers(numbers):
    """Returns the lists of numbers of all ranks, equally long."""
    import torch
    import torch.distributed as dist
    rows = [list(numbers)]
    for group in reversed(GROUPS) if has_ranks() else ():
        mine = torch.tensor(rows, dtype=torch.float64, device=find_device())
        every = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
        dist.all_gather(every, mine, group=group)
        rows = [row for each in every for row in each.tolist()]
    return rows
