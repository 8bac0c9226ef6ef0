#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft demo` on small samples: both plans recompute within a limit that nothing else fits, and end in the same bits."""
import json
import sys

from tap import case, main


@case
def shows_the_gain_of_the_joint_plan(weft):
    """A busy machine may hide the gain that is measured, so it is only present. The predicted one is not."""
    code, out, err = weft.run("demo", "--json", "--set", "train.steps=2", "--set", "train.seq_len=64", timeout=280)
    told = json.loads(out)
    assert code in (0, 1) and ("no gain was seen" in err) == (code == 1), (code, err)
    assert told["same_bits"] and told["emulated"] and 3 <= told["rounds"] <= 5, told
    ilp, rival = told["runs"]
    assert ilp["fits"] and rival["fits"] and (ilp["planner"], rival["planner"]) == ("ilp", "recompute-all"), told
    assert max(ilp["planned_bytes"], rival["planned_bytes"]) <= told["memory_limit_bytes"] < told["least_bytes_without"]
    assert 0 < ilp["recomputed_layers"] <= rival["recomputed_layers"] == 8, told
    gain = rival["predicted_step_ns"] / ilp["predicted_step_ns"] - 1
    assert 0 < gain and abs(gain - told["predicted_gain"]) < 1e-9 and isinstance(told["measured_gain"], float), told


main(sys.argv[1])
