# SPDX-License-Identifier: Apache-2.0
"""Two ranks of PyTorch over gloo. Exit code 77 with a line where PyTorch 2.15 is not installed."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

import models  # noqa: E402
from starts import run_ranks, run_tests  # noqa: E402
from weft import program  # noqa: E402


def write_snippet(directory):
    """Plans the tests' model by planner fsdp2, which reduces the head late; returns snippet path and export."""
    layers = [{"name": name, "type": "custom", "hidden": 0, "forward_flops": "1G", "backward_flops": "2G",
               "parameters": count, "output": "4KiB", "table": name == "wte"}
              for name, count in (("wte", 2048), ("b.0", 8416), ("b.1", 8416), ("b.2", 8416), ("head", 2048))]
    config = {"version": 1, "model": {"layers": layers},
              "cluster": {"ranks": 2, "device": {"flops": {"f32": "1T"}, "memory_bandwidth": "10GB/s"},
                          "link": {"intra": {"bandwidth": "1GB/s"}}},
              "train": {"micro_batch": 1, "seq_len": 1, "steps": 1, "clip_norm": 1.0, "optimizer": {"type": "adamw"}},
              "plan": {"planner": "fsdp2", "block_scale": "whole", "fuse": False}}
    paths = {name: f"{directory}/{name}" for name in ("run.json", "plan.json", "wrap.py")}
    Path(paths["run.json"]).write_text(json.dumps(config))
    program.run_program("plan", paths["run.json"], "-o", paths["plan.json"], "-q")
    export = ("export", paths["plan.json"], "--to", "fsdp2", "--config", paths["run.json"])
    program.run_program(*export, "--snippet", "-o", paths["wrap.py"])
    return paths["wrap.py"], json.loads(program.run_program(*export))


class Copies(unittest.TestCase):
    def test_a_checkpoint_runs_the_copy(self):
        from weft.checks import make_shell
        from weft.measures import checkpoint_forward
        model = models.make_model()
        checkpoint_forward(model.b[0])
        copy = make_shell(model)
        for each in (model, copy):
            self.assertIs(each.b[0].forward.args[0].__self__, each.b[0])


class TwoRanks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            snippet, cls.said = write_snippet(directory)
            cls.seen = run_ranks("worker.py", snippet)

    def test_the_snippet_does_the_same(self):
        self.assertEqual(self.seen["snippet"]["order"], self.said["order"])
        self.assertEqual([unit["finalize"] for unit in self.said["units"]], ["own"] * 4 + ["end"])
        for key in ("losses", "parameters"):
            self.assertEqual(self.seen["snippet"][key], self.seen["default"][key])

    def test_the_order_is_the_exported_one(self):
        for name in ("plain_plan", "rich_plan", "grouped_plan", "tied_plan"):
            said = getattr(models, name)()
            names = {unit["name"]: ", ".join(unit["modules"]) for unit in said["units"]}
            order = [f"{kind} {names[unit]}" for kind, unit in (event.split(" ", 1) for event in said["order"])]
            self.assertEqual(self.seen[name]["order"], order, name)
            self.assertEqual(self.seen[name]["differences"], [], name)

    def test_losses_and_parameters_are_the_default_s_to_the_bit(self):
        for name in ("plain_plan", "rich_plan", "grouped_plan", "lacking", "interrupted"):
            for key in ("losses", "parameters"):
                self.assertEqual(self.seen[name][key], self.seen["default"][key], (name, key))
                self.assertEqual(self.seen["tied_plan"][key], self.seen["tied default"][key], key)
        self.assertEqual(len(set(self.seen["default"]["losses"])), 3)

    def test_the_default_gathers_in_vain(self):
        """Otherwise the plans would prove nothing."""
        self.assertEqual(self.seen["default"]["order"].count("gather wte"), 2)
        self.assertEqual(self.seen["default"]["order"].count("gather head"), 2)

    def test_the_cap_is_set(self):
        self.assertEqual([self.seen[name]["cap"] for name in ("plain_plan", "rich_plan")], [1, 3])

    def test_every_mutant_is_found(self):
        self.assertEqual(set(self.seen["mutants"]), set(models.mutants()))
        for name, found in self.seen["mutants"].items():
            self.assertTrue(found, name)

    def test_late_reductions_need_no_finish(self):
        """The order is the planned one, reductions at the end of backward."""
        self.assertEqual(self.seen["forgotten"], [])

    def test_bad_input_is_one_sentence(self):
        for name, words in {
                "wrapped": "already wrapped", "copied": "b.0 is already wrapped",
                "spread": "parameter weight of unit head is a DTensor", "ranks": "for 3 ranks, and there are 2",
                "differs": "ranks 0 and 1 have different plans", "names": "no module b0; the nearest are b.0",
                "tied": "wte and head share parameter weight", "old": "no set_nothing: install 9.9",
                "scalar": "gate of unit head is a scalar", "planned mixed": "layer b.1 have several dtypes",
                "mixed": "unit b.1 have several dtypes (norm.weight float32, up.weight bfloat16)",
                "whole": "up.weight of unit b.2 is a Parameter of torch.int8", "strided": "FSDP2 refuses the model: ",
                "listed": "FSDP2 refuses the model: ", "hsdp": "(replicate x shard) shards over one rank",
                "planned hsdp": "shards over one rank", "ignored": "no ignored_params", "offload": "no offload_policy",
                "int": "no reshard_after_forward", "placement": "no shard_placement_fn", "unknown": "no option colour",
                "format": "no plan for FSDP2"}.items():
            self.assertIsInstance(self.seen["bad"][name], str, name)
            self.assertIn(words, self.seen["bad"][name])
        self.assertEqual(self.seen["bad"]["defaults"], [])
        self.assertIn("such as scale", self.seen["bad"]["loose"][0])

    def test_layers_are_measured(self):
        layers = {layer["name"]: layer for layer in self.seen["layers"]}
        self.assertEqual(list(layers), ["wte", "b.0", "b.1", "b.2", "head"])
        self.assertEqual([layer["parameters"] for layer in layers.values()], [2048, 8416, 8416, 8416, 2048])
        self.assertEqual([layer["reads_in_backward"] for layer in layers.values()], [False] + 4 * [True])
        # Two products of 32 tokens, 32 x 128 each.
        self.assertEqual(layers["b.1"]["forward_flops"], 2 * 2 * 32 * 32 * 128)
        self.assertEqual(layers["b.1"]["output"], 4 * 32 * 32)
        # The norm's input is b.0's output. Saved are its output, two figures a token, and the relu's result.
        self.assertEqual(layers["b.1"]["saved"], 4 * 32 * (32 + 1 + 1 + 128))
        # Forward holds most when relu has run: its input is there, and the output of `down` is not.
        self.assertEqual(layers["b.1"]["temporary"], 4 * 32 * (128 - 32))
        # Backward holds most in relu's: gradients of its result, of its input and of `down`, 11,520 bytes more than
        # gradients of all parameters and of the input.
        most = 4 * (2 * 32 * 128 + 128 * 32 + 32) - 4 * (8416 + 32 * 32)
        self.assertEqual(layers["b.1"]["freed"], 4 * 32 * (128 - 32) - most)
        self.assertTrue(all(layer["forward_ns"] > 0 for layer in layers.values()))
        for real, meta in zip(self.seen["layers"], self.seen["meta"]):
            self.assertGreater(meta.pop("forward_ns"), 0)
            self.assertEqual(meta, {key: real[key] for key in meta})

    def test_a_model_on_meta_is_measured_layer_by_layer(self):
        """Bytes are those of the model on the device, so the plan holds as much."""
        fake = self.seen["fake"]
        self.assertEqual((fake["differences"], fake["peaks"][0]), ([], fake["peaks"][1]))
        for key in ("losses", "parameters"):
            self.assertEqual(fake[key], self.seen["default"][key])

    def test_layers_of_one_class_have_their_own_times(self):
        """Their buffers are no floats alone, and their calls share a cache."""
        times = {layer["name"]: layer["forward_ns"] for layer in self.seen["cached"]}
        self.assertTrue(all(times.values()), times)
        self.assertEqual(times["b.1"], times["b.2"])
        self.assertGreater(times["b.3"], 3 * times["b.1"])

    def test_outputs_may_be_nested_and_blocks_checkpointed(self):
        plain = [{**layer, "forward_ns": 0} for layer in self.seen["layers"]]
        for kind, layers in self.seen["odd"].items():
            layers = [{**layer, "forward_ns": 0} for layer in layers]
            if "checkpoint" not in kind:
                self.assertEqual(layers, plain, kind)
                continue
            # A checkpoint keeps nothing but the output of the block before.
            self.assertEqual([layer["saved"] for layer in layers[1:4]], [0, 0, 0], kind)
            for key in ("name", "parameters", "output", "forward_flops"):
                self.assertEqual([layer[key] for layer in layers], [layer[key] for layer in plain], (kind, key))

        # Repeated forwards are in backwards.
        self.assertEqual(self.seen["marks"], [f"forward {number}" for number in range(5)] +
                         [f"backward {number}" for number in range(4, -1, -1)] + ["end -1"])

    def test_a_plan_fits_and_is_followed(self):
        planned = self.seen["planned"]
        self.assertEqual(planned["differences"], [])
        for key in ("losses", "parameters"):
            self.assertEqual(planned[key], self.seen["default"][key])
        measured, limit = planned["peaks"]
        # Threads of gloo hold buffers for a moment longer in some runs.
        self.assertTrue(0 < measured <= 1.05 * limit, planned["peaks"])
        self.assertIn("plan for FSDP2 on 2 ranks", planned["text"])
        self.assertEqual(self.seen["large"], 8)

    def test_what_cannot_be_planned_is_one_sentence(self):
        for name, words in {
                "thrice": "layer head shares parameters with wte and with b.0", "twice": "b.0 is used 2 times", "never": "spare is never used", "meta": "give cluster=",
                "reserved": "these ranks run on CPUs: give memory_limit", "both": "give one of them",
                "limit": "no plan fits the memory limit of 1.00 KiB", "ranks": "measured on 2 ranks",
                "strange": "ReLU, which is no module", "broken": "shapes cannot be multiplied"}.items():
            self.assertIn(words, self.seen["bad plans"][name])

    def test_a_tied_pair_is_planned_as_one_unit(self):
        pair = self.seen["pair"]
        self.assertEqual(pair["units"], [["wte", "head"], ["b.0"], ["b.1"], ["b.2"]])
        self.assertEqual(pair["differences"], [])
        for key in ("losses", "parameters"):
            self.assertEqual(pair[key], self.seen["tied default"][key])

    def test_checkpoints_train_or_are_refused(self):
        seen = self.seen["checkpointed"]
        for kind in ("checkpoint", "outer checkpoint", "wide checkpoint"):
            self.assertEqual(seen[kind]["differences"], [], kind)
            for key in ("losses", "parameters"):
                self.assertEqual(seen[kind][key], self.seen["default"][key], (kind, key))
        self.assertIn("reentrant activation checkpoint is around layer b.2", seen["refused"][0])
        self.assertIn("one activation checkpoint has layers b.0 and b.2", seen["refused"][1])

    def test_a_policy_is_planned(self):
        mixed = self.seen["mixed"]
        self.assertEqual(mixed["differences"], [])
        for key in ("losses", "parameters"):
            self.assertEqual(mixed["own"][key], mixed["default"][key])
        measured, limit = mixed["peaks"]
        self.assertTrue(0.9 * limit <= measured <= 1.05 * limit, mixed["peaks"])
        self.assertEqual(mixed["dtypes"], ["bfloat16", "float32"])
        for said, words in zip(mixed["refused"], ("gathers in torch.bfloat16: give mp_policy=MixedPrecisionPolicy(param_dtype=torch.bf",
                                                  "reduce_dtype=torch.bfloat16, and the plan torch.float32",
                                                  "param_dtype=torch.bfloat16, and the plan torch.float32",
                                                  "precision is f16, and mp_policy.param_dtype is bfloat16")):
            self.assertIn(words, said)

    def test_peaks_are_found_with_frozen_parameters(self):
        frozen, trained = self.seen["frozen"]
        self.assertTrue(0 < frozen < trained, self.seen["frozen"])

    def test_frozen_parts_of_layers_are_not_planned_as_trained(self):
        adapters = self.seen["adapters"]
        measured, limit, whole = adapters["peaks"]
        self.assertTrue(adapters["same"])
        self.assertTrue(0.9 * limit <= measured <= 1.05 * limit, adapters["peaks"])
        self.assertLess(limit, 0.9 * whole)
        self.assertIn("optimizer fast: give foreach, fused, for-loop", adapters["refused"])

    def test_blocks_find_themselves(self):
        """Experts are no units; layers without an input gradient are one."""
        nested, own, plain, positions, grouped = self.seen["found"]["names"]
        blocks = [f"inner.layers.{number}" for number in range(5)]
        self.assertEqual(nested, ["inner.wte", *blocks, "inner.norm", "head"])
        self.assertEqual(own[:3], ["inner.wte", "inner.layers.0.experts.0", "inner.layers.0.experts.1"])
        self.assertEqual(plain, ["wte", "b.0", "b.1", "b.2", "head"])
        self.assertEqual(positions[:2], ["inner.wte-inner.wpe", "inner.layers.0"])
        self.assertEqual(grouped, [["wte"], ["b.0"], ["b.1"], ["b.2", "head"]])
        self.assertEqual(self.seen["found"]["differences"], [])
        for key in ("losses", "parameters"):
            self.assertEqual(self.seen["found"]["grouped"][key], self.seen["default"][key])

    def test_a_tied_pair_may_stay_in_the_root(self):
        units, told = self.seen["loose"]
        self.assertEqual(units, ["b.0", "b.1", "b.2"])
        self.assertIn("1 parameters are in no unit, such as wte.weight", told[0])

    def test_measuring_changes_no_state(self):
        """The buffer and the random state stay; the first of the layers with parameters is frozen."""
        self.assertEqual(self.seen["state"][:2], [True, True])
        self.assertEqual(self.seen["state"][2:4], [True, False])

    def test_an_output_that_backward_reads_is_counted_once(self):
        """The ReLU saves its result, which is the output. The loss saves the last output."""
        self.assertEqual(self.seen["relu"], [[0, 4 * 8 * 6, True], [0, 4 * 8 * 2, False]])

    def test_an_input_is_free_if_nobody_keeps_it(self):
        """Backward of a frozen layer reads no input. A forward that names its outputs keeps them to its end."""
        loop, temporaries, named, kept = self.seen["freed inputs"]
        self.assertEqual([loop, named], [[False, True, True, False]] * 2)
        # The forward's end frees two outputs, before the loss has its temporaries in the slot of the last layer.
        self.assertEqual([b - a for a, b in zip(temporaries, kept)], [0, 0, 4 * 8 * 4, 0])

    def test_the_curve_has_a_line_a_limit(self):
        text, error = self.seen["curve"]
        lines = text.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["limit", "1KiB", "1GiB", "fsdp2"])
        self.assertIn("no plan fits", lines[1])
        self.assertRegex(lines[2], r"ms .* MiB .* %$")
        self.assertIn("the user's own", error)

    def test_a_pytorch_without_a_call_warns_once(self):
        told = self.seen["lacking"]["told"]
        self.assertEqual(len(told), 1, told)
        for words in ("finalize_backward (PyTorch 2.15)", "one reduction is under way"):
            self.assertIn(words, told[0])


if __name__ == "__main__":
    run_tests()
