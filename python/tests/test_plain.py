# SPDX-License-Identifier: Apache-2.0
"""The package without PyTorch."""
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import clocks  # noqa: E402
import models  # noqa: E402
import weft  # noqa: E402
from weft import measures, planning, program  # noqa: E402



def make_random_config(choose):
    """Returns a config for FSDP2 of 3 to 7 custom layers."""
    count = choose.randint(3, 7)
    layers = [{"name": f"l{place}", "type": "custom", "hidden": 0, "forward_flops": f"{choose.randint(1, 400)}M",
               "backward_flops": f"{choose.randint(1, 800)}M", "parameters": 2 * choose.randint(1, 300000),
               "output": "64KiB", "saved": f"{choose.randint(1, 500)}KiB", "temporary": "16KiB", "table": place == 0,
               "checkpoints": place > 0, "host_sync": choose.random() < 0.2} for place in range(count)]
    return {"version": 1, "model": {"layers": layers},
            "cluster": {"ranks": 2, "device": {"flops": {"f32": "1T"}, "memory_bandwidth": "10GB/s"},
                        "link": {"intra": {"bandwidth": "1GB/s"}}},
            "train": {"micro_batch": 1, "grad_accum": choose.choice((1, 1, 2, 3)), "reduce": choose.choice(("step", "micro_step")),
                      "seq_len": 1, "steps": 1, "clip_norm": 1.0, "optimizer": {"type": "adamw"}},
            "plan": {"for": "fsdp2", "planner": choose.choice(("ilp", "fsdp2", "greedy")),
                     "recompute": choose.choice(("none", "whole"))}}


PACKAGE = Path(__file__).parents[1]


class Plain(unittest.TestCase):
    def test_a_plan_prints_its_figures(self):
        said = models.rich_plan()
        said["not_expressed"] = ["FSDP2 moves whole units."]
        rule = {"step_ns": 1100000, "peak_bytes": 1 << 24}
        text = str(weft.Plan(said, rule))
        for words in ("2 ranks", "1 ms predicted", "gap 11.10 %", "9.5 MiB", "B:head", "1.1 ms at 16.0 MiB: 9.1 % less",
                      "FSDP2 moves whole units.", "wte", "not gathered in backward",
                      "forward gathers b.1 b.0", "reduced at the end"):
            self.assertIn(words, text)
        rule["step_ns"] = said["predicted"]["step_ns"]
        self.assertIn("nothing to gain", str(weft.Plan(said, rule)))
        self.assertNotIn("gain ", str(weft.Plan(said)))

    def test_a_loss_is_no_gain(self):
        said = models.rich_plan()
        said["predicted"].update(step_ns=1200000, runs_ahead=True)
        rule = {"step_ns": 1100000, "peak_bytes": 1 << 24}
        text = str(weft.Plan(said, rule))
        self.assertIn("1.2 ms predicted on a GPU", text)
        self.assertIn("cost    FSDP2's own rule takes 1.1 ms at 16.0 MiB: the plan takes 9.1 % more", text)
        self.assertNotIn("less", text)

    def test_the_clock_of_a_gpu_has_fsdp2_s_events(self):
        """Three units of 10 ns forward, 20 backward, with gathers of 8 and reductions of 6, by hand."""
        times = clocks.Times([10] * 3, [20] * 3, dict.fromkeys("abc", 8), dict.fromkeys("abc", 6),
                             {name: (place, place) for place, name in enumerate("abc")}, 5)
        said = clocks.make_default(models.make_said([models.make_unit(name) for name in "abc"], []))
        # a is there at 8, b at 16, c at 24. Forward ends at 38, and c is gathered again from its copy-out, 28, to 36. Backward waits
        # for no gather: it ends at 98, and the last reduction at 104.
        self.assertEqual(clocks.find_step(said, times), 104 + 5)
        # Each gather of forward waits for its hook: 3 x (8 + 10). So does that of c: 8 + 3 x 20 + 6.
        self.assertEqual(clocks.find_step(said, times, ahead=False), 54 + 8 + 60 + 6 + 5)
        # A gather of c that takes 30 ends at 46, and the next one at 76, 38 later than backward could begin.
        times.gathers["c"] = 30
        self.assertEqual(clocks.find_step(said, times), 104 + 38 + 5)

    def test_the_program_s_steps_are_those_of_the_judge(self):
        """With micro-steps, lists, late reductions, ties and layers that recompute, on a host that runs ahead or waits."""
        found = set()
        for seed in range(8):
            choose = random.Random(seed)
            config = make_random_config(choose)
            config["plan"]["for"] = choose.choice(("fsdp2", "fsdp2-default", "fsdp2-blocking", "fsdp2-default-blocking"))
            plan, said = program.make_plan(config, None, ("--work-limit", "20M"))
            times, ahead = clocks.read_times(plan), said["predicted"]["runs_ahead"]
            self.assertEqual(ahead, "blocking" not in config["plan"]["for"])
            self.assertEqual(clocks.find_step(said, times, ahead), said["predicted"]["step_ns"], config)
            self.assertLessEqual(clocks.find_step(said, times), clocks.find_step(said, times, ahead=False), config)
            found |= {word for unit in said["units"] for word in (unit["finalize"], *unit["checkpoint"])}
        self.assertGreater(len(found), 2)

    def test_no_plan_is_slower_than_fsdp2_s_default(self):
        """At the default's own peak. If the default's rule is as fast, the plan is that rule, without lists of its own."""
        for seed in range(4):
            config = make_random_config(random.Random(seed))
            config["plan"].update(recompute="none", planner="fsdp2")
            config["plan"]["for"] = "fsdp2-default"
            plan, default = program.make_plan(config, None, ("--work-limit", "1M"), force=True)
            step = clocks.find_step(clocks.make_default(default), clocks.read_times(plan))
            self.assertEqual(default["predicted"]["step_ns"], step, config)
            config["cluster"]["memory_limit"] = f"{default['predicted']['peak_bytes']}B"
            config["plan"].update({"for": "fsdp2", "planner": "ilp"})
            _, said = program.make_plan(config, None, ("--work-limit", "20M"))
            self.assertLessEqual(said["predicted"]["step_ns"], step, config)

    def make_plans(self, seed, ahead, limit=None, reserved=False):
        """Returns figures of a plan of a random config, and those of FSDP2's default."""
        config = make_random_config(random.Random(seed))
        target, default = ("fsdp2", "fsdp2-default") if ahead else ("fsdp2-blocking", "fsdp2-blocking")

        def make(name, way, target, limit=None):
            plan = {**config["plan"], "for": target, "recompute": "none", "planner": name or "ilp", "ahead": way.ahead,
                    "prefetch": way.prefetch}
            cluster = {**config["cluster"], "pools": way.pools, **({"memory_limit": limit} if limit else {})}
            return {**config, "plan": plan, "cluster": cluster}, None

        def free(_, name, way):
            return make(name or "fsdp2", way, target if name else default)
        said, rule = planning.make_plans(ahead, lambda name, way: make(name, way, target, limit), free, None, limit is not None,
                                         reserved)
        return said["predicted"], rule

    def test_plans_tell_pools_where_the_host_runs_ahead(self):
        """Pools never serve each other, so more is reserved than is held at any time. No plan is slower than the default."""
        told, rule = self.make_plans(3, True)
        self.assertTrue(told["runs_ahead"] and rule["runs_ahead"])
        self.assertLessEqual(told["step_ns"], rule["step_ns"])
        for figures in (told, rule):
            self.assertGreater(figures["reserved_bytes"], figures["peak_bytes"])
        told, rule = self.make_plans(3, False)
        self.assertFalse(told["runs_ahead"] or "reserved_bytes" in told or "reserved_bytes" in rule)

    def test_a_limit_of_reserved_memory_is_kept(self):
        """A plan that reserves at most as much as FSDP2's default does. Less is refused."""
        most = self.make_plans(5, True, None, True)[1]["reserved_bytes"]
        told, rule = self.make_plans(5, True, f"{most}B", True)
        self.assertTrue(told["peak_bytes"] < told["reserved_bytes"] <= most, told)
        self.assertLessEqual(told["step_ns"], rule["step_ns"])
        with self.assertRaisesRegex(weft.WeftError, "no plan fits"):
            self.make_plans(5, True, "1KiB", True)

    def test_layers_that_share_a_tensor_have_a_span(self):
        """They are one unit, whose layers the plan lists one by one."""
        layers = [measures.Layer([name], [], shapes=[(64, 32)], tie=tie, forward_flops=10**9, backward_flops=2 * 10**9, output=4096)
                  for name, tie in (("wte", None), ("b", None), ("head", 0))]
        made = planning.make_config(weft.Measured(layers, 2, on_meta=True), cluster="a100-8")
        plan, said = program.make_plan(*made, ("--work-limit", "20M"))
        self.assertEqual(clocks.read_times(plan).spans, {"wte&head": (0, 2), "b": (1, 1)})
        self.assertGreater(clocks.find_step(said, clocks.read_times(plan)), 0)

    def test_other_files_are_refused(self):
        for said in ({}, {"format": "weft-plan"}, {**models.plain_plan(), "target": "deepspeed"}):
            with self.assertRaisesRegex(weft.WeftError, "no plan for FSDP2"):
                weft.Plan(said)

    def test_records_name_the_first_difference(self):
        plan = weft.Plan(models.grouped_plan())
        seen = weft.Record()
        seen.order = [event.replace("b.0+b.1", "b.0, b.1") for event in plan.said["order"]]
        self.assertEqual(seen.compare(plan), [])
        seen.peak_bytes = plan.said["predicted"]["peak_bytes"] + 1
        self.assertIn("above the planned", seen.compare(plan)[0])
        seen.order[3], seen.peak_bytes = "gather b.2", 0
        self.assertEqual(seen.compare(plan), ["the order differs first at collective 3: planned gather head, "
                                              "seen gather b.2"])


    def test_rows_are_padded_to_the_ranks(self):
        """FSDP2 of PyTorch 2.15 gathered 92 elements as 114 and 140."""
        layer = measures.Layer(["b"], [], shapes=[(1, 8), (5, 4), (1,), (7, 8), (7,)])
        self.assertEqual([layer.pad(ranks) for ranks in (1, 2, 4)], [92, 114, 140])


    def test_a_layer_that_may_recompute_keeps_its_input(self):
        layer = measures.Layer(["b"], [], shapes=[(8,)], saved=1000, temporary=50, frees_input=True)
        measured = weft.Measured([layer], 2, on_meta=True)

        def describe():
            config, _ = planning.make_config(measured, cluster="a100-8", recompute="auto")
            return {key: config["model"]["layers"][0].get(key) for key in ("frees_input", "checkpoints", "kept", "restored")}
        self.assertEqual(describe(), {"frees_input": True, "checkpoints": None, "kept": None, "restored": None})
        layer.again = measures.Layer(["b"], [], saved=100, rise=850)
        self.assertEqual(describe(), {"frees_input": False, "checkpoints": True, "kept": "100B", "restored": "800B"})

    def test_buffers_are_held_next_to_the_base(self):
        measured = weft.Measured([measures.Layer(["b"], [], shapes=[(8,)])], 2, on_meta=True, buffers=1000)
        for base, said in (("0B", "1000B"), ("1.5KiB", "2536B"), ("2MB", "2001000B")):
            config, _ = planning.make_config(measured, cluster={"ranks": 2, "base": base})
            self.assertEqual(config["cluster"]["base"], said)
        for base in ("80 GiB", "80", 80, "5iB", "1.2.3GiB"):
            with self.assertRaisesRegex(weft.WeftError, "cluster.base is .*give bytes with a unit and without spaces"):
                planning.make_config(measured, cluster={"ranks": 2, "base": base})

    def test_a_cluster_has_no_replicas(self):
        measured = weft.Measured([measures.Layer(["b"], [], shapes=[(8,)])], 2, on_meta=True, replicas=2)
        with self.assertRaisesRegex(weft.WeftError, "cluster= has no times of an all-reduce over replicas"):
            planning.make_config(measured, cluster="a100-8")


class Program(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.kept = dict(os.environ)
        os.environ["PATH"] = self.directory.name

    def tearDown(self):
        os.environ.clear()
        os.environ.update(self.kept)
        self.directory.cleanup()

    def pretend(self, script):
        path = Path(self.directory.name) / "weft"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def test_no_program_is_one_sentence(self):
        os.environ.pop("WEFT", None)
        with self.assertRaisesRegex(weft.WeftError, "no program weft: put it on PATH, or set WEFT"):
            program.check_version()
        os.environ["WEFT"] = "/nowhere/weft"
        with self.assertRaisesRegex(weft.WeftError, "WEFT=/nowhere/weft: no such program"):
            program.check_version()

    def test_another_version_is_refused(self):
        os.environ["WEFT"] = self.pretend("""echo '{"weft": "9.9"}'""")
        with self.assertRaisesRegex(weft.WeftError, "is weft 9.9, and this package needs 0.2.0"):
            program.check_version()

    def test_the_program_s_message_is_passed_on(self):
        os.environ["WEFT"] = self.pretend("""echo 'weft: warning: slow' >&2; echo 'weft: no plan fits' >&2; exit 78""")
        with self.assertRaisesRegex(weft.WeftError, "^no plan fits$"):
            program.run_program("plan")
        os.environ["WEFT"] = self.pretend("exit 9")
        with self.assertRaisesRegex(weft.WeftError, "weft plan ended with exit code 9"):
            program.run_program("plan")

    def test_the_real_program_has_this_version(self):
        real = self.kept.get("WEFT")
        if not real:
            self.skipTest("WEFT names no program")
        os.environ["WEFT"] = real
        program.check_version()


class Wheel(unittest.TestCase):
    def test_the_program_s_wheel_has_the_package(self):
        root = PACKAGE.parent
        listed = re.findall(r"'(python/weft/[^']*)'", (root / "meson.build").read_text())
        self.assertEqual(sorted(listed), sorted(str(path.relative_to(root)) for path in (PACKAGE / "weft").glob("*.py")))

    def test_it_has_the_package_and_leaves_nothing(self):
        try:
            from setuptools import build_meta  # noqa: F401
            from setuptools.command import bdist_wheel  # noqa: F401
        except ImportError:
            self.skipTest("setuptools 70.1 or newer is not installed")
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "source"
            (source / "weft").mkdir(parents=True)
            (source / "backend").mkdir()
            for path in (PACKAGE / "pyproject.toml", PACKAGE / "backend/weft_backend.py", *(PACKAGE / "weft").glob("*.py")):
                (source / path.relative_to(PACKAGE)).write_bytes(path.read_bytes())
            before = sorted(source.rglob("*"))
            script = "import sys; sys.path.insert(0, 'backend'); import weft_backend; print(weft_backend.build_wheel('..'))"
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
            done = subprocess.run([sys.executable, "-c", script], cwd=source, capture_output=True, text=True,
                                  env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(source.rglob("*")), before, "building leaves nothing in the source")
            wheel = done.stdout.split()[-1]
            self.assertEqual(wheel, f"weft-{weft.__version__}-py3-none-any.whl")
            names = {name for name in zipfile.ZipFile(Path(directory) / wheel).namelist() if "dist-info" not in name}
            self.assertEqual(names, {f"weft/{path.name}" for path in (PACKAGE / "weft").glob("*.py")})
            lines = sum(len(path.read_text().splitlines()) for path in (PACKAGE / "weft").glob("*.py"))
            self.assertLessEqual(lines, 2000)


if __name__ == "__main__":
    unittest.main()
