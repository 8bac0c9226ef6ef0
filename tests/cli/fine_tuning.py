#!/usr/bin/env python3
"""Fine-tuning: frozen layers in every precision."""
import shutil
import sys

from saved import copy_step, same_files, saved_run, tensors
from tap import case, main

FLOPS = {"f32": "50G", "bf16": "50G", "f16": "50G"}


@case
def frozen_parameters_of_16_bits_are_kept_as_rounded(weft):
    """They have no master: the files have their values, and any precision goes on from those."""
    for compute in ("bf16", "f16"):
        config = saved_run(weft, model__layers__1__frozen=True, cluster__device__flops=FLOPS,
                           train__precision={"compute": compute})
        for planner in ("all-fsdp", "all-dp"):
            run = f"{compute}-{planner}"
            copy_step(weft, "run", run, 6)
            weft.expect(0, "train", config, "--run", run, "-q", "--resume", "--planner", planner)
            same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")
        wide = f"{compute}-wide"
        weft.expect(0, "train", config, "--run", wide, "-q", "-n", "3", "--set",
                    "train.precision.compute=f32", "--resume=run/checkpoints/step-8", "--set",
                    "train.steps=9")
        before = tensors(weft, "run/checkpoints/step-8/model.safetensors")
        after = tensors(weft, f"{wide}/checkpoints/step-9/model.safetensors")
        frozen = [name for name in before if name.startswith("h.")]
        assert 0 < len(frozen) < len(before), before.keys()
        for name in before:
            assert (before[name] == after[name]) == (name in frozen), name
            if compute == "bf16":
                low = any(before[name][0::4]) or any(before[name][1::4])
                assert low == (name not in frozen), name
        shutil.rmtree(weft.path("run"))


main(sys.argv[1])
