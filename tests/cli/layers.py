#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers from a shared object: --layers FILE in every command that reads a config, and every refusal.
tests/library/launch.py compares the bits with libweft's.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from configs import tiny
from tap import case, main

INCLUDE = Path(__file__).resolve().parent.parent.parent / "include"

# y = gain * x, with one gain for all channels.
SCALE = r"""
#include <weft.h>
#include <string.h>
static enum weft_status scale_shape(void *context, const struct weft_layer_facts *facts,
                                    struct weft_layer_shape *out, struct weft_error *error)
{
    (void)context;
    if (facts->keys[0] == 13) return weft_fail(error, WEFT_E_DATA, "13 is not for scales");
    out->n_tensors = 1;
    out->tensors[0] = (struct weft_layer_tensor){"gain", 1, 0, WEFT_INIT_ONE, 0, false};
    return WEFT_OK;
}
static enum weft_status scale_needs(void *context, const struct weft_layer_facts *facts,
                                    struct weft_layer_needs *out, struct weft_error *error)
{
    (void)context, (void)error;
    out->backward_reads_input = true;
    out->forward_flops = (double)(facts->samples * facts->seq_len * facts->hidden);
    out->backward_flops = 3 * out->forward_flops;
    return WEFT_OK;
}
static enum weft_status scale_forward(void *context, const struct weft_layer_call *call,
                                      struct weft_error *error)
{
    const float *x = call->input, *gain = call->tensors[0];
    float *y = call->output;
    (void)context, (void)error;
    for (int64_t i = 0; i < call->rows * call->facts.hidden; i++) y[i] = *gain * x[i];
    return WEFT_OK;
}
static enum weft_status scale_backward(void *context, const struct weft_layer_call *call,
                                       struct weft_error *error)
{
    const float *x = call->input, *gain = call->tensors[0], *dy = call->output_gradient;
    float *dx = call->input_gradient, *d_gain = call->gradients[0];
    double sum = 0;
    (void)context, (void)error;
    for (int64_t i = 0; i < call->rows * call->facts.hidden; i++) {
        dx[i] = *gain * dy[i];
        sum += (double)dy[i] * x[i];
    }
    if (d_gain != NULL) *d_gain = (float)sum + (call->accumulate[0] ? *d_gain : 0);
    return WEFT_OK;
}
static const struct weft_kind_key keys[] = {{"luck", "a number", 0, 100, true, 7}};
static const struct weft_layer_kind scale = {
    .type = TYPE, .keys = keys, .n_keys = 1, .dtypes = 1u << WEFT_F32, .shape = scale_shape,
    .needs = scale_needs, .forward = scale_forward, .backward = BACKWARD};
static const struct weft_layer_kind *const kinds[] = {&scale};
EXPORT
"""
EXPORT = "const struct weft_layers weft_layers = {WEFT_LAYERS_ABI, 1, kinds};"


def build(weft, name, source=SCALE, kind='"scale"', backward="scale_backward", export=EXPORT):
    path = weft.write("layers.c", source)
    subprocess.run([os.environ.get("CC", "cc").split()[-1], "-std=c11", "-O1", "-shared", "-fPIC", "-I",
                    INCLUDE, f"-DTYPE={kind}", f"-DBACKWARD={backward}", f"-DEXPORT={export}", path, "-o",
                    weft.path(name)], check=True)
    return name


def config_of(weft, *types, **changes):
    config = tiny(**changes)
    layers = config["model"]["layers"]
    for kind in types:
        layers.insert(1, {"name": f"own.{kind}", "type": kind, "hidden": layers[0]["hidden"]})
    return weft.write("own.json", config)


def result_of(weft, run):
    return json.loads(Path(weft.path(f"{run}/result.json")).read_text(encoding="utf-8"))


@case
def every_command_reads_a_config_with_them(weft):
    own, layers = config_of(weft, "scale"), ["--layers", build(weft, "scale.so")]
    weft.expect(0, "check", own, *layers)
    assert "own.scale" in weft.expect(0, "check", "--print", own, *layers)
    weft.expect(0, "estimate", own, *layers)
    weft.expect(0, "plan", own, *layers, "-o", "plan.json", "-q", "--planner", "greedy")
    assert "own.scale" in weft.expect(0, "explain", "plan.json", "--all")
    weft.expect(0, "verify", "plan.json", "--config", own, *layers)
    weft.expect(0, "simulate", "plan.json", "--config", own, *layers)
    weft.expect(0, "profile", own, *layers, "-o", "profile.json", "-q")
    weft.expect(0, "plan", own, *layers, "--profile", "profile.json", "-q", "--planner", "greedy")


@case
def a_sweep_hands_them_to_its_processes(weft):
    own = config_of(weft, "scale")
    build(weft, "scale.so")
    out = weft.expect(0, "sweep", own, "--layers", "scale.so", "--planners", "greedy", "--points", "2",
                      "--json", "-q")
    assert '"greedy"' in out, out


@case
def a_measured_sweep_trains_with_them(weft):
    own = config_of(weft, "scale", cluster__base="256MiB", train__steps=2)
    build(weft, "scale.so")
    out = weft.expect(0, "sweep", own, "--layers", "scale.so", "--planners", "greedy", "--limits", "1GiB",
                      "--measure", "--json", "-q")
    points = json.loads(out)["curves"][0]["points"]
    assert [point.get("measured_step_ns", 0) > 0 for point in points] == [True], points


@case
def generate_computes_with_them(weft):
    """A layer with a gain of 1 changes no token, and generate needs its file."""
    build(weft, "scale.so")
    own = config_of(weft, "scale", train__steps=2, train__checkpoint={"at_end": True})
    weft.expect(0, "train", own, "--layers", "scale.so", "--run", "run", "-q")
    prompt = ["--prompt", "The", "--tokens", "5", "--temperature", "0"]
    weft.expect(65, "generate", "run", *prompt, says=["scale", "--layers FILE"])
    out = weft.expect(0, "generate", "run", *prompt, "--layers", "scale.so")
    assert out.startswith("The") and len(out) > 3, out


@case
def ranks_train_and_resume_with_them(weft):
    """Kinds come from several files; the run resumes from another directory."""
    build(weft, "scale.so")
    build(weft, "twice.so", kind='"twice"')
    own = config_of(weft, "scale", "twice", train__steps=4, train__checkpoint={"every": 2})
    both = ["--layers", "scale.so", "--layers", "./twice.so"]
    weft.expect(0, "train", own, *both, "-n", "2", "--run", "whole", "-q")
    weft.expect(0, "train", own, *both, "-n", "2", "--run", "run", "-q", "--set", "train.steps=2")
    weft.expect(65, "train", "--resume", "--run", "run", "-q", says=["scale", "--layers FILE"])
    os.mkdir(weft.path("sub"))
    done = subprocess.run([weft.program, "train", "--resume", "--run", "../run", "--layers",
                           "../scale.so", "--layers", "../twice.so", "--set", "train.steps=4", "-q"],
                          cwd=weft.path("sub"), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert result_of(weft, "run")["fingerprint"] == result_of(weft, "whole")["fingerprint"]


@case
def a_stopped_run_says_how_to_go_on_with_them(weft):
    build(weft, "scale.so")
    own = config_of(weft, "scale", train__steps=100000, train__checkpoint={"every": 50000})
    process = weft.start("train", own, "--layers", "scale.so", "-n", "2", "--run", "run", "--json")
    for line in process.stdout:
        if '"step": 2' in line:
            break
    process.terminate()
    _, err = process.communicate(timeout=60)
    command = f"weft train --resume --run run --layers {weft.path('scale.so')}"
    assert process.returncode == 75 and command in " ".join(err.split()), err


@case
def a_file_that_cannot_be_used_is_refused(weft):
    own = config_of(weft, "scale")
    weft.write("text.so", "no object\n")
    os.mkdir(weft.path("folder.so"))
    build(weft, "none.so", export="")
    build(weft, "old.so", export="const struct weft_layers weft_layers = {WEFT_LAYERS_ABI + 1, 1, kinds};")
    build(weft, "empty.so", export="const struct weft_layers weft_layers = {WEFT_LAYERS_ABI, 0, kinds};")
    build(weft, "taken.so", kind='"linear"')
    build(weft, "half.so", backward="0")
    lacking = SCALE.replace("return weft_fail", "return weft_fall")
    build(weft, "lacks.so", source=lacking.replace("#include <string.h>", "int weft_fall();"))
    build(weft, "scale.so")
    shutil.copy(weft.path("scale.so"), weft.path("again.so"))
    for name, code, says in (("missing.so", 66, "No such file"), ("text.so", 65, "cannot be loaded"),
                             ("folder.so", 65, "not a file"), ("none.so", 65, "exports no weft_layers"),
                             ("old.so", 65, "version 2"), ("empty.so", 65, "no kinds"),
                             ("taken.so", 65, "there is a type of this name already"),
                             ("half.so", 65, "needs all of shape, needs, forward and backward"),
                             ("lacks.so", 65, "weft_fall")):
        for command in ("check", "train"):
            weft.expect(code, command, own, "--layers", name, says=[f"--layers {name}", says])
    weft.expect(65, "check", own, "--layers", "scale.so", "--layers", "again.so",
                says=["--layers again.so", "there is a type of this name already"])
    weft.expect(64, "check", own, *["--layers", "scale.so"] * 17, says="at most 16 times")
    assert not os.path.exists(weft.path("run"))


@case
def their_errors_name_the_layer(weft):
    own = config_of(weft, "scale")
    build(weft, "scale.so")
    weft.expect(65, "check", own, says=['"scale" is not possible', "--layers FILE"])
    weft.expect(65, "check", own, "--layers", "scale.so", "--set", "model.layers.1.luck=13",
                says=['"own.scale"', "13 is not for scales"])
    weft.expect(65, "check", own, "--layers", "scale.so", "--set", "model.layers.1.luck=101", says="luck")


if __name__ == "__main__":
    main(sys.argv[1])
