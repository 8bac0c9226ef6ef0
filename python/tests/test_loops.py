# SPDX-License-Identifier: Apache-2.0
"""Training loops on two ranks of PyTorch. Exit code 77 with a line where PyTorch 2.15 is not installed."""
import unittest

from starts import run_ranks, run_tests


class Loops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seen = run_ranks("loops.py")

    def test_accumulated_gradients_are_planned(self):
        """Bits are those of FSDP2's default with the same calls. Reductions are in each micro-step, or in the last one."""
        for cadence, reduces in (("step", 5), ("micro_step", 15)):
            for dtype in ("f32", "bf16"):
                found = self.seen["accumulate"][f"{cadence} {dtype}"]
                self.assertEqual(found["own"], found["default"], (cadence, dtype))
                self.assertEqual(found["calls"], found["default"], (cadence, dtype))
                self.assertEqual((found["differences"], found["reduces"]), ([], reduces), (cadence, dtype))
                measured, planned = found["peaks"]
                # Threads of gloo hold buffers for a moment longer in some runs.
                self.assertTrue(0.95 * planned <= measured <= 1.05 * planned, (cadence, dtype, found["peaks"]))
        seen = self.seen["accumulate"]
        self.assertNotEqual(seen["step f32"]["own"], seen["micro_step f32"]["own"])
        # Gradients between micro-steps are full, and in the dtype of reductions.
        for dtype in ("f32", "bf16"):
            self.assertGreater(seen[f"step {dtype}"]["peaks"][1], 1.05 * seen[f"micro_step {dtype}"]["peaks"][1])
        self.assertIn("3 micro-steps a step, gradients reduced in the last", seen["step f32"]["text"])

    def test_checkpoints_are_planned(self):
        """The less memory, the more blocks recompute. Bits are those of FSDP2's default without checkpoints."""
        for name, blocks in (("plain", 3), ("attentive", 6)):
            found = self.seen["recompute"][name]
            counts = []
            for plan in found["plans"]:
                self.assertEqual(plan["own"], found["default"], name)
                self.assertEqual(plan["differences"], [], name)
                measured, planned = plan["peaks"]
                self.assertTrue(plan["limit"] is None or planned <= plan["limit"], name)
                # Threads of gloo hold buffers for a moment longer in some runs.
                self.assertTrue(0.95 * planned <= measured <= 1.05 * planned, (name, plan["peaks"]))
                counts.append(len(plan["checkpoints"]))
                self.assertEqual("recomputed" in plan["text"], counts[-1] > 0, name)
            self.assertTrue(blocks >= counts[0] > counts[1] > counts[2] == 0, (name, counts))

    def test_replicas_are_planned(self):
        """Two replicas of two shards, as in HSDP: slices are of two ranks."""
        found = run_ranks("loops.py", "replicas", ranks=4)
        self.assertEqual(found["own"], found["default"])
        self.assertEqual((found["differences"], found["ranks"]), ([], 2))
        measured, planned = found["peaks"]
        self.assertTrue(0.95 * planned <= measured <= 1.05 * planned, found["peaks"])
        self.assertIn("plan for FSDP2 on 2 ranks, 2 replicas", found["text"])
        # Stages of a pipeline have their own bits, order, ranks and plan, and hear of two micro-batches under way.
        self.assertEqual([[*row[:3], row[4]] for row in found["stages"]], [[1] * 4] * 4)
        peaks = [row[3] for row in found["stages"]]
        self.assertTrue(peaks[0] == peaks[1] < peaks[2] == peaks[3], peaks)
        for said, words in zip(found["refused"], ("is for 2 replicas of 2 ranks, and the mesh has 1",
                                                  "is for 2 ranks, and there are 4", "shards over one rank",
                                                  "3 dimensions (pp x replicate x shard)",
                                                  "cluster= has no times of an all-reduce over replicas")):
            self.assertIn(words, said)

    def test_a_step_that_ends_early_leaves_no_gradients(self):
        found = self.seen["abort"]
        for name in ("exception", "few", "many"):
            self.assertEqual(found[name], found["whole"], name)
        for name, said in found["told"].items():
            self.assertIn({"few": "plan.step had 1 micro-step", "many": "plan.step has a backward pass after"}.get(
                name, "KeyError(\"the user's own\")"), said[0])
            self.assertEqual(len(said), 2 if name == "lacking" else 1, said)
        self.assertIn("PyTorch before 2.13 cannot drop the gradients", found["told"]["lacking"][1])

    def test_all_ranks_end_if_the_first_one_fails(self):
        found = self.seen["fail first"]
        self.assertEqual(found["other"], ["TypeError('no such thing')", "WeftError('TypeError: no such thing')"])
        for said in found["size"]:
            self.assertRegex(said, "^WeftError.*cluster.base is .*80 GiB")

    def test_a_cluster_takes_the_mesh_s_ranks_and_ties(self):
        found = self.seen["cluster"]
        self.assertEqual((found["ranks"], found["tied"][0]), ([8, 2, 4], "wte&head"))

    def test_a_loop_that_does_not_follow_the_plan_is_told(self):
        told = self.seen["misuse"]
        for name in ("again", "after", "right", "skipped", "twice"):
            self.assertEqual(told[name], [], name)
        for name, words in {
                "few": "plan.step had 1 micro-step with a backward pass of the model's output, and the plan has 2 micro-steps",
                "many": "a backward pass after the plan's 2 micro-steps", "nested": "plan.step is within another one",
                "symmetric": "the plan has no symmetric memory", "none": "micro_steps is 0", "cadence": "cadence daily: give step"}.items():
            self.assertIn(words, told[name], name)
        self.assertIn("this update follows 1 micro-step, of which 1 reduced gradients, and the plan has 2 micro-steps, of "
                      "which 1", told["other"][0])


if __name__ == "__main__":
    run_tests()
