# SPDX-License-Identifier: Apache-2.0
"""Models that are on no device: bytes by fake tensors, times by one layer of each kind on the device."""
import statistics
from contextlib import contextmanager

from .checks import make_shell
from .program import WeftError
from .ranks import find_ranks_device, gather_numbers, has_ranks


def choose_device(model, device=None):
    """Returns the device of the ranks, and whether the model is elsewhere, so that its layers are measured one by one."""
    import torch
    own = next(model.parameters()).device
    if device is None and has_ranks():
        device = find_ranks_device()
        device = own if own.type == "cuda" and device.type == "cpu" else device
    if device is None:
        device = own if own.type != "meta" else torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(device)
    return device, device.type != own.type


@contextmanager
def make_fake(model, example, device):
    """Yields a copy of the model and of the example with fake tensors on a device, which have no memory."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
    from torch.utils._pytree import tree_map

    def fake(tensor):
        # Strides are kept, so operations make the copies that they make of the tensor.
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device,
                                   requires_grad=tensor.requires_grad and tensor.is_leaf)
    with FakeTensorMode(allow_non_fake_inputs=True):
        shell = make_shell(model, make=fake)
        try:
            yield shell, tree_map(lambda x: fake(x) if isinstance(x, torch.Tensor) else x, example)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise WeftError(f"the model's forward asks for values, which a model on meta does not have ({error}): give the "
                            "example an attention_mask if it is of Hugging Face, or a model on a device") from error


def describe(value):
    """Returns a value with tensors as their shapes, which compares equal for inputs of equal kernels."""
    import torch
    from torch.utils._pytree import tree_map
    return repr(tree_map(lambda x: (tuple(x.shape), x.dtype, x.requires_grad) if isinstance(x, torch.Tensor) else x, value))


def make_real(value, device, ids=2):
    """Returns a value with random numbers for its floats, ones for bools, and 0 to ids - 1 in turns for whole numbers.

    Equal ids would make all gradients of an embedding add up in one row.
    """
    import torch
    from torch.utils._pytree import tree_map

    def real(tensor):
        if not isinstance(tensor, torch.Tensor):
            return tensor
        if tensor.dtype == torch.bool:
            return torch.ones(tensor.shape, dtype=tensor.dtype, device=device)
        if not tensor.is_floating_point():
            return (torch.arange(tensor.numel(), device=device) % ids).reshape(tensor.shape).to(tensor.dtype)
        return torch.randn(tensor.shape, dtype=tensor.dtype, device=device).requires_grad_(tensor.requires_grad)
    return tree_map(real, value)


def time_backward(run, walk, device, repeats):
    """Returns the median times of a forward and its backward. A GPU gets all launches at once."""
    import time

    import torch
    marks = []

    def mark():
        if device.type != "cuda":
            return time.perf_counter_ns()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
    for _ in range(repeats + 1):
        begin = mark()
        outputs = [tensor for tensor in walk(run()) if tensor.requires_grad]
        turn = mark()
        if outputs:
            torch.autograd.backward(outputs, [torch.ones_like(tensor) for tensor in outputs])
        marks.append((begin, turn, mark()))
    if device.type == "cuda":
        torch.cuda.synchronize(device)

    def spend(begin, end):
        return int(1e6 * begin.elapsed_time(end)) if device.type == "cuda" else end - begin
    return [statistics.median(column) for column in zip(*((spend(a, b), spend(b, c)) for a, b, c in marks[1:]))]


def time_layers(calls, layers, loss, walk, device, repeats):
    """Fills times of layers by (number, module, args, kwargs) of their calls: one of each kind of module runs on the device.

    `loss` is (function, arguments), a part of the last layer. Work between layers is not in the times.
    """
    import torch
    known, spent = {}, [[0, 0] for _ in layers]

    def add(number, key, make):
        if key not in known:
            known[key] = time_backward(make(), walk, device, repeats)
            if device.type == "cuda":
                torch.cuda.empty_cache()
        spent[number] = [a + b for a, b in zip(spent[number], known[key])]

    def make_state(tensor):
        real = make_real(tensor.detach(), device, ids=1)
        real = real.mul_(0.02) if real.is_floating_point() else real
        return real.requires_grad_(tensor.requires_grad)

    def begin(module, inputs):
        real = make_shell(module, make=make_state)
        rows = [each.num_embeddings for each in module.modules() if isinstance(each, torch.nn.Embedding)]
        args, kwargs = make_real(inputs, device, min([2, *rows]))
        return lambda: real(*args, **kwargs)
    for number, module, args, kwargs in calls:
        # Modules of one class may do other work, as their attributes say.
        work = layers[number].forward_flops, layers[number].saved
        kind = type(module), work, describe(list(module.state_dict(keep_vars=True).values())), describe((args, kwargs))
        add(number, kind, lambda module=module, inputs=(args, kwargs): begin(module, inputs))
    function, arguments = loss
    real = make_real(arguments, device)
    add(len(layers) - 1, "loss", lambda: lambda: function(*real))
    slowest = [int(max(column)) for column in zip(*gather_numbers([ns for pair in spent for ns in pair]))]
    for number, layer in enumerate(layers):
        layer.forward_ns, layer.backward_ns = slowest[2 * number:2 * number + 2]
