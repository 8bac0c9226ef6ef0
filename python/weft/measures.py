# SPDX-License-Identifier: Apache-2.0
"""Measures a model: its layers in forward order, their bytes and times, and collectives by size."""
import functools
import statistics
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod
from weakref import WeakKeyDictionary, WeakSet, finalize

from .blocks import choose_device, make_fake, time_layers
from .checks import check_mesh, check_parameters, count_shards
from .program import WeftError
from .ranks import find_backends, gather_numbers, has_ranks, within

REPEATS = 5
SIZES = [1 << shift for shift in range(14, 25, 2)]  # full bytes of a collective, in a profile


def pad_rows(shapes, ranks):
    return sum(-(-shape[0] // ranks) * ranks * prod(shape[1:]) for shape in shapes)


@dataclass
class Layer:
    """One module, or several that are gathered and reduced together."""
    names: list
    modules: list
    parameters: int = 0  # without those of an earlier layer
    shapes: list = field(default_factory=list)  # of trained parameters
    frozen_shapes: list = field(default_factory=list)  # and without a gradient
    whole: int = 0  # with them
    tie: int = None  # the first layer that it shares parameters with
    frozen: bool = False  # no parameter has a gradient
    reads_in_backward: bool = False  # an embedding saves none of its parameters
    frees_input: bool = False  # nobody keeps its input for a backward
    reads_output: bool = False  # in backward, as a ReLU does
    forward_flops: int = 0
    backward_flops: int = 0
    saved: int = 0  # bytes, without outputs of other layers
    output: int = 0
    temporary: int = 0
    freed: int = 0  # of saved, when backward holds most
    rise: int = 0  # bytes that backward holds at most, without gradients and what is there at its begin
    forward_ns: int = 0
    backward_ns: int = 0
    again: "Layer" = None  # the same with an activation checkpoint, if it may have one

    @property
    def name(self):
        """The unit's name: Weft's names have letters, digits, ".", "_" and "-", 200 at most."""
        joined = "-".join(self.names)
        return joined if len(joined) <= 200 else f"{self.names[0]}-and-{len(self.names) - 1}-more"

    def list_parameters(self):
        return list(dict.fromkeys(parameter for module in self.modules for parameter in module.parameters()))

    def pad(self, ranks):
        """Returns the number of parameters with rows padded to a multiple of the ranks, as FSDP2 does."""
        return pad_rows(self.shapes, ranks) + pad_rows(self.frozen_shapes, ranks)


@dataclass
class Measured:
    """Results of weft.measure. Times are 0 for a model on the meta device."""
    layers: list
    ranks: int  # that share a unit
    collectives: dict = field(default_factory=dict)  # kind: ([bytes], [ns])
    update: tuple = ((), ())  # elements, ns
    agree_ns: int = 0
    on_meta: bool = False
    buffers: int = 0  # bytes, whole on each rank
    device: str = "cpu"
    replicas: int = 1  # groups of those ranks
    reduce_copies: bool = False  # a reduction copies its input


def walk_tensors(value):
    """Yields the tensors of nested outputs, dataclasses too."""
    import torch
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from walk_tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from walk_tensors(each)
    elif hasattr(value, "__dataclass_fields__"):
        yield from walk_tensors(vars(value))


def drop_caches(value):
    """Returns a value with None for caches of keys and values, as transformers has them: each call makes one longer."""
    from torch.utils._pytree import tree_map

    def is_cache(each):
        return hasattr(each, "get_seq_length")
    return tree_map(lambda each: None if is_cache(each) else each, value, is_leaf=is_cache)


def has_parameters(module):
    return next(module.parameters(), None) is not None


def open_module(model):
    """Yields the blocks of a model and the modules around them: repeated entries of lists, or a Hugging Face model's own."""
    from torch import nn
    lists = (nn.ModuleList, nn.ModuleDict, nn.Sequential)
    named = {name for module in model.modules() for name in getattr(module, "_no_split_modules", None) or ()}
    large = sum(parameter.numel() for parameter in model.parameters()) / 4

    def is_repeated(module):
        kinds = [type(child) for child in module.children() if has_parameters(child)]
        return isinstance(module, lists) and len(kinds) > len(set(kinds))

    def has_named(module):
        return any(type(each).__name__ in named for each in module.modules() if each is not module)

    def walk(module):
        for child in module.children():
            block = type(child).__name__ in named or (
                is_repeated(module) and not isinstance(child, lists) and not has_named(child) and
                sum(p.numel() for p in child.parameters()) <= large)
            if not has_parameters(child):
                continue
            if isinstance(child, lists) or (not block and (has_named(child) or any(map(is_repeated, child.modules())))):
                yield from walk(child)
            else:
                yield child
    return dict.fromkeys(walk(model))


def find_layers(model, layers=None):
    """Returns (names, modules) of the caller's modules and lists of modules, or of the model's blocks."""
    names = {module: name for name, module in model.named_modules()}
    groups = [list(each) if isinstance(each, (list, tuple)) else [each]
              for each in (open_module(model) if layers is None else layers)]
    for module in (module for group in groups for module in group):
        if module not in names:
            raise WeftError(f"layers has {type(module).__name__}, which is no module of the model")
    return [([names[module] for module in group], group) for group in groups]


class Passes:
    """Runs forward and backward with marks at the begin of each layer's forward and backward."""

    def __init__(self, model, example, loss, found, policy=None):
        self.model, self.loss, self.found, self.policy = model, loss, found, policy
        self.fed = set()  # modules with an input that carries a gradient
        self.blind = set()  # layers that ran forward without grad, as in a reentrant checkpoint
        self.repeated = []  # (layer, layer of the backward that ran its forward again)
        inputs, self.targets = example if isinstance(example, tuple) and len(example) == 2 else (example, None)
        self.inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        self.keywords = {}
        if isinstance(inputs, dict):
            self.inputs, self.keywords = (), inputs

    def cast(self, value, name):
        """Casts floats to a dtype of the policy, as FSDP2 does at the begin and end of each unit."""
        from torch.utils._pytree import tree_map
        dtype = getattr(self.policy, name, None)
        if dtype is None or (name == "param_dtype" and not self.policy.cast_forward_inputs):
            return value
        return tree_map(lambda x: x.to(dtype) if hasattr(x, "is_floating_point") and x.is_floating_point() else x, value)

    def list_calls(self):
        """Returns (layer, module, args, kwargs) of a forward, and the arguments of the loss."""
        calls = []
        with ExitStack() as stack:
            for number, (_, modules) in enumerate(self.found):
                for module in modules:
                    def before(module, args, kwargs, number=number):
                        calls.append((number, module, *self.cast(drop_caches((args, kwargs)), "param_dtype")))
                    stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
            self.run(lambda *_: None, backward=False)
        output, self.output = self.output, None
        return calls, (output,) if self.targets is None else (output, self.targets)

    def run(self, mark, on_output=None, backward=True, on_turn=None):
        """Calls mark("forward" or "backward", number) at begins, on_turn() after the loss, and mark("end", -1).

        A forward that an activation checkpoint repeats is a part of the backward that asked for it.
        """
        import torch
        turned, current = [], [None]
        with ExitStack() as stack:
            for number, module in [(number, module) for number, (_, modules) in enumerate(self.found) for module in modules]:
                def before(module, args, kwargs, number=number):
                    if turned:
                        self.repeated.append((number, current[0]))
                        return self.cast((args, kwargs), "param_dtype")
                    if any(tensor.requires_grad for tensor in walk_tensors([args, kwargs])):
                        self.fed.add(module)
                    if not torch.is_grad_enabled():
                        self.blind.add(number)
                    mark("forward", number)
                    return self.cast((args, kwargs), "param_dtype")

                def after(_, __, output, number=number):
                    output = self.cast(output, "output_dtype")
                    if turned:
                        return output
                    if on_output:
                        on_output(number, output)
                    begun = []

                    def begin(_):
                        if not begun:  # the first gradient of several outputs
                            begun.append(True)
                            current[0] = number
                            mark("backward", number)
                    for tensor in walk_tensors(output):
                        if tensor.requires_grad:
                            tensor.register_hook(begin)
                    return output
                stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(after).remove)
            inputs, keywords = self.cast((self.inputs, self.keywords), "param_dtype")
            output = self.output = self.cast(self.model(*inputs, **keywords), "output_dtype")
            result = self.loss(output) if self.targets is None else self.loss(output, self.targets)
            turned.append(True)
            if on_turn:
                on_turn()
            if backward:
                result.backward()
            mark("end", -1)
        if backward:
            self.output = None
        self.model.zero_grad(set_to_none=True)


def order_layers(model, example, loss, found, policy=None):
    """Returns layers in the order of their use. Raises for a module that is used twice or never.

    FSDP2 reduces all units without a gradient of their inputs at the end of backward, so they become one unit.
    """
    single = [([name], [module]) for names, modules in found for name, module in zip(names, modules)]
    passes, seen = Passes(model, example, loss, single, policy), []
    passes.run(lambda kind, number: seen.append(single[number][1][0]) if kind == "forward" else None, backward=False)
    for (name,), (module,) in single:
        if seen.count(module) > 1:
            raise WeftError(f"layer {name} is used {seen.count(module)} times in a forward: give layers= with a "
                            "module around all of its uses")
        if module not in seen and has_parameters(module):
            raise WeftError(f"layer {name} is never used in this forward: give layers= without it")
    used = [sorted(zip(names, modules), key=lambda pair: seen.index(pair[1])) for names, modules in found
            if all(module in seen for module in modules)]
    kept, first = [], None
    for pairs in sorted(used, key=lambda pairs: seen.index(pairs[0][1])):
        trains = any(parameter.requires_grad for _, module in pairs for parameter in module.parameters())
        if not trains or pairs[0][1] in passes.fed:
            kept.append(pairs)
        elif first is None:
            first = pairs
            kept.append(first)
        else:
            first += pairs
    return [tuple(map(list, zip(*pairs))) for pairs in kept]


class Bytes:
    """Live bytes of tensors that operations make. `on_use` is called with the tensors that they read."""

    def __init__(self, on_use):
        self.live = self.peak = 0
        self.on_use = on_use

    def mode(self):
        from torch.utils._python_dispatch import TorchDispatchMode
        counter, known = self, WeakSet()

        def release(size):
            counter.live -= size

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                for tensor in walk_tensors(args):
                    counter.on_use(tensor)
                made = func(*args, **(kwargs or {}))
                for tensor in walk_tensors(made):
                    storage = tensor.untyped_storage()
                    if storage not in known and not any(
                            storage._cdata == other.untyped_storage()._cdata for other in walk_tensors(args)):
                        known.add(storage)
                        finalize(storage, release, storage.nbytes())
                        counter.live += storage.nbytes()
                        counter.peak = max(counter.peak, counter.live)
                return made
        return Mode()


def check_repeats(passes, layers):
    """Raises for activation checkpoints around layers that FSDP2 would run in another order than planned."""
    for number, other in passes.repeated:
        name = layers[number].name
        if number in passes.blind:
            raise WeftError(f"a reentrant activation checkpoint is around layer {name}, and would launch its prefetch list "
                            "again in backward: give use_reentrant=False, or checkpoint inside its forward")
        if number != other:
            raise WeftError(f"one activation checkpoint has layers {name} and {layers[other].name}: give layers= with a list "
                            "of both, or checkpoint each layer alone")


def measure_bytes(passes, layers):
    """Fills parameters, saved, output and temporary."""
    import torch
    held = {p.untyped_storage()._cdata: None for p in passes.model.parameters()}
    for number, layer in enumerate(layers):
        layer.frozen = not any(p.requires_grad for p in layer.list_parameters())
        for parameter in layer.list_parameters():
            key = parameter.untyped_storage()._cdata
            layer.whole += parameter.numel()
            if held[key] is None:
                held[key] = number
                layer.parameters += parameter.numel()
                kept = layer.shapes if parameter.requires_grad else layer.frozen_shapes
                kept.append((*parameter.shape, 1)[:max(1, parameter.dim())])
            elif held[key] != number:
                first = held[key] if layers[held[key]].tie is None else layers[held[key]].tie
                if layer.tie not in (None, first):
                    raise WeftError(f"layer {layer.name} shares parameters with {layers[layer.tie].name} and with "
                                    f"{layers[first].name}: give layers= without them, and the root holds them unplanned")
                layer.tie = first
    others = WeakSet(t.untyped_storage() for t in walk_tensors([passes.inputs, passes.keywords, passes.targets]))
    others.update(buffer.untyped_storage() for buffer in passes.model.buffers())
    outputs, saved, at, rises = WeakKeyDictionary(), WeakKeyDictionary(), ["forward", 0, 0], {}

    def read(storage):
        layer, owner = layers[at[1]], held[storage._cdata]
        if owner is not None:
            (layer if layer.tie == owner else layers[owner]).reads_in_backward = True

    def use(tensor):  # a checkpoint saves no parameter, and reads it in backward
        if at[0] == "backward" and tensor.untyped_storage()._cdata in held:
            read(tensor.untyped_storage())
    counter = Bytes(use)

    alive = {}  # by layer: outputs when its forward begins; by len(layers): when the loss is there

    def mark(kind, number):
        if kind == "forward":
            alive[number] = set(outputs.values())
        if at[:2] == [kind, number]:  # another module of the layer
            return
        rises[at[0], at[1]] = max(counter.peak - at[2], rises.get((at[0], at[1]), 0))
        counter.peak = counter.live
        at[:] = [kind, number, counter.live]

    def on_output(number, output):
        for tensor in walk_tensors(output):
            storage = tensor.untyped_storage()
            if storage in outputs:
                continue
            outputs[storage] = number
            layers[number].output += storage.nbytes()
            if saved.get(storage) == number:  # by its last operation
                layers[number].saved -= storage.nbytes()
                layers[number].reads_output = True

    def pack(tensor):
        storage, layer = tensor.untyped_storage(), layers[at[1]]
        if storage._cdata in held:
            read(storage)
        elif not any(storage in each for each in (others, outputs, saved)):
            saved[storage] = at[1]
            layer.saved += storage.nbytes()
        return tensor

    with counter.mode(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        passes.run(mark, on_output, on_turn=lambda: alive.update({len(layers): set(outputs.values())}))
    check_repeats(passes, layers)
    for number, layer in enumerate(layers):
        # Backward makes gradients of its trained parameters and of its input.
        made = sum(parameter.nbytes for parameter in layer.list_parameters() if parameter.requires_grad)
        made += layers[number - 1].output if number > 0 else 0
        rise = rises.get(("backward", number), made) - made
        layer.rise = rise
        layer.temporary = max(0, rise, rises["forward", number] - layer.saved - layer.output)
        layer.freed = min(layer.saved, layer.temporary - rise)
    for reader in range(1, len(layers)):
        output = layers[reader - 1].output
        layers[reader].frees_input = output > 0 and reader - 1 not in alive[len(layers)]
        for later in range(reader + 1, len(layers)):  # user code keeps it a while
            if layers[reader].frees_input and reader - 1 in alive[later]:
                layers[later].temporary += output


def measure_flops(passes, layers):
    """Counts operations of each layer's forward; backward has twice as many."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        last = [None, 0]

        def mark(_, number):
            total = counter.get_total_flops()
            if last[0] is not None:
                layers[last[0]].forward_flops += total - last[1]
            last[:] = [number, total]
        passes.run(mark, backward=False)
    for layer in layers:
        layer.backward_flops = 2 * layer.forward_flops


def clock_ns(device):
    import torch
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter_ns()


def measure_times(passes, layers, device):
    """Fills times: the median of the slowest rank. Loss counts for the last layer."""
    runs = []
    for repeat in range(REPEATS + 1):
        marks = []
        passes.run(lambda kind, number: marks.append((kind, number, clock_ns(device))))
        spent = [0] * (2 * len(layers))
        for (kind, number, begin), (_, _, end) in zip(marks, marks[1:]):
            spent[2 * number + (kind == "backward")] += end - begin
        if repeat > 0:
            runs.append(spent)
    medians = [statistics.median(column) for column in zip(*runs)]
    slowest = [int(max(column)) for column in zip(*gather_numbers(medians))]
    for number, layer in enumerate(layers):
        layer.forward_ns, layer.backward_ns = slowest[2 * number:2 * number + 2]


def time_calls(call, device):
    times = []
    for repeat in range(4):
        begin = clock_ns(device)
        call()
        if repeat > 0:
            times.append(clock_ns(device) - begin)
    return int(max(max(row) for row in gather_numbers([statistics.median(times)])))


def measure_collectives(group, device, replicas=None):
    """Returns times of collectives by full size: gloo's reduce-scatter costs more than its gather.

    A reduction over a group of `replicas` too ends with an all-reduce of the part, as HSDP's does.
    """
    import torch
    import torch.distributed as dist
    ranks, found = dist.get_world_size(group), {"all_gather": [], "reduce_scatter": [], "all_reduce": []}
    sizes = [size * ranks for size in SIZES]
    for size in sizes:
        full = torch.zeros(size // 4, device=device)
        part = torch.zeros(size // 4 // ranks, device=device)
        found["all_gather"].append(time_calls(lambda: dist.all_gather_into_tensor(full, part, group=group), device))
        reduce = time_calls(lambda: dist.reduce_scatter_tensor(part, full, group=group), device)
        if replicas is not None:
            reduce += time_calls(lambda: dist.all_reduce(part, group=replicas), device)
        found["reduce_scatter"].append(reduce)
        found["all_reduce"].append(time_calls(lambda: dist.all_reduce(full, group=group), device))
    small = torch.zeros(1, device=device)
    agree = time_calls(lambda: dist.all_reduce(small, group=group), device)
    return {kind: (sizes, times) for kind, times in found.items()}, agree


def measure_update(device):
    import torch
    sizes, times = [1 << 12, 1 << 16, 1 << 20], []
    for size in sizes:
        parameter = torch.zeros(size, device=device, requires_grad=True)
        parameter.grad = torch.ones(size, device=device)
        times.append(time_calls(torch.optim.AdamW([parameter]).step, device))
    return sizes, times


@contextmanager
def keep_state(model, device):
    """Restores random states and buffers, such as a batch norm's, so that measuring changes no later bit."""
    import torch
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, old in buffers:
                    buffer.copy_(old)


@contextmanager
def cast_parameters(model, policy):
    """Holds parameters in the dtype of gathers while layers are measured."""
    kept = [(parameter, parameter.data) for parameter in model.parameters()]
    try:
        for parameter, data in kept:
            parameter.data = data if policy is None or policy.param_dtype is None else data.to(policy.param_dtype)
        yield
    finally:
        for parameter, data in kept:
            parameter.data = data


def measure_all(model, example, loss, found, policy, device, elsewhere, recompute):
    """Returns measured layers. A model that is elsewhere, such as on meta, has times if the ranks' device is known."""
    with keep_state(model, device), cast_parameters(model, policy):
        found = order_layers(model, example, loss, found, policy)
    layers = [Layer(names, modules) for names, modules in found]

    def run(act, *words):
        with keep_state(model, device), cast_parameters(model, policy):
            act(Passes(model, example, loss, found, policy), layers, *words)

    def fill_times(passes, layers):
        if elsewhere is None:
            measure_times(passes, layers, device)
        elif elsewhere:
            calls, arguments = passes.list_calls()
            with unset_fake():
                time_layers(calls, layers, (loss, arguments), walk_tensors, device, REPEATS)
    run(measure_bytes)
    run(measure_flops)
    run(fill_times)
    if recompute:
        run(measure_again, fill_times)
    return layers


def unset_fake():
    """Returns a context in which operations make real tensors."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    return unset_fake_temporarily()


def checkpoint_forward(module):
    """Puts an activation checkpoint around a module's forward, within hooks of the module."""
    from torch.utils.checkpoint import checkpoint
    module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)


@contextmanager
def checkpoint_layers(layers):
    """Holds checkpoints in layers that may have one: of one module, that backward reads, and not the last."""
    kept = []
    try:
        for layer in layers[:-1]:
            if len(layer.modules) == 1 and layer.reads_in_backward and layer.saved > 0:
                kept.append((layer, layer.modules[0].__dict__.get("forward")))
                checkpoint_forward(layer.modules[0])
        yield [layer for layer, _ in kept]
    finally:
        for layer, forward in kept:
            del layer.modules[0].forward
            if forward is not None:
                layer.modules[0].forward = forward


def measure_again(passes, layers, fill_times):
    """Fills `again`: figures with activation checkpoints."""
    twins = [Layer(layer.names, layer.modules, forward_flops=layer.forward_flops) for layer in layers]
    with checkpoint_layers(layers) as found:
        measure_bytes(passes, twins)
        fill_times(passes, twins)
    for layer, twin in zip(layers, twins):
        if layer in found and twin.saved < layer.saved:
            layer.again = twin


def measure(model, example, loss, layers=None, mesh=None, **options):
    """Measures a model that is not wrapped yet, on all ranks at once.

    `example` is (inputs, targets) of a rank's micro-batch, for loss(model(inputs), targets). Layers run in the dtypes of
    mp_policy. With `recompute` they also run with activation checkpoints, which plans may then have.

    A model on the meta device, or on the CPU of ranks with GPUs, may be larger than the device. Its bytes are found with fake
    tensors, and one layer of each kind runs on the device of the ranks, or on `device`. Without ranks a model on meta has
    flops and bytes, and no times unless `device` is given. Without `times` such a model has none.

    Options: mp_policy, recompute, device, times.
    """
    check_mesh(mesh)
    with within(mesh):
        return measure_within(model, example, loss, layers, mesh, **options)


def measure_within(model, example, loss, layers, mesh, mp_policy=None, recompute=False, device=None, times=True):
    """Measures as `measure` does, on the ranks of exchanges."""
    import torch.distributed as dist
    found = find_layers(model, layers)
    for names, modules in found:
        check_parameters(f"layer {'+'.join(names)}", [pair for module in modules for pair in module.named_parameters()])
    if not found:
        raise WeftError("the model has no layers: give layers= with the modules that become units")
    asked = times and (device is not None or has_ranks())
    device, elsewhere = choose_device(model, device)
    if elsewhere:
        with make_fake(model, example, device) as (fake, inputs):
            modules = dict(fake.named_modules())
            found = [(names, [modules[name] for name in names]) for names, _ in found]
            kept = measure_all(fake, inputs, loss, found, mp_policy, device, asked, recompute)
    else:
        kept = measure_all(model, example, loss, found, mp_policy, device, None, recompute)
    measured = Measured(kept, 1, on_meta=elsewhere and not asked, device=device.type)
    if dist.is_available() and dist.is_initialized():
        group = None if mesh is None else mesh.get_group() if mesh.ndim == 1 else mesh.get_group(1)
        replicas = mesh.get_group(0) if mesh is not None and mesh.ndim == 2 else None
        measured.ranks, measured.replicas = count_shards(mesh)
        measured.reduce_copies = device.type == "cpu" and find_backends(group).get("cpu") == "gloo"
        if measured.ranks > 1 and not measured.on_meta:
            measured.collectives, measured.agree_ns = measure_collectives(group, device, replicas)
    measured.buffers = sum({buffer.untyped_storage()._cdata: buffer.untyped_storage().nbytes()
                            for buffer in model.buffers()}.values())
    if not measured.on_meta:
        measured.update = measure_update(device)
    return measured
