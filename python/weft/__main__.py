# SPDX-License-Identifier: Apache-2.0
"""python -m weft plan SCRIPT.py:BUILD --limits 20GiB,24GiB: the curve of memory against step."""
import argparse
import runpy
import sys

from .measures import measure
from .planning import find_policy, make_config
from .plans import seconds, size
from .program import WeftError, check_version, make_export
from .ranks import is_first


def load_builder(where):
    """Returns the function SCRIPT.py:BUILD. Exceptions of the script pass through."""
    path, _, name = where.rpartition(":")
    if not path:
        raise WeftError(f"{where}: name a script and a function, as in train.py:build")
    found = runpy.run_path(path, run_name="weft_script")
    if name not in found:
        raise WeftError(f"{path} has no {name}; it returns (model, (inputs, targets), loss)")
    return found[name]


def print_curve(measured, options):
    """Prints a line a limit, and one for FSDP2's own rule as Weft's planner fsdp2 has it."""
    rows = [(limit, ()) for limit in options.limits.split(",")] + [(None, ("--planner", "fsdp2"))]
    print(f"{'limit':<12}{'step':>12}{'peak':>14}{'gap':>9}")
    for limit, flags in rows:
        config, profile = make_config(measured, limit, options.ranks, options.cluster)
        try:
            told = make_export(config, profile, flags, force=bool(flags))["predicted"]
        except WeftError as error:
            print(f"{limit or 'fsdp2':<12}{str(error).splitlines()[0]}")
            continue
        print(f"{limit or 'fsdp2':<12}{seconds(told['step_ns']):>12}{size(told['peak_bytes']):>14}"
              f"{100 * told['gap']:>7.2f} %")


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m weft", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("plan", help="plan a script's model at several limits")
    verb.add_argument("script", metavar="SCRIPT.py:BUILD",
                      help="a function that returns (model, (inputs, targets), loss)")
    verb.add_argument("--limits", required=True, help="memory limits of a rank, such as 20GiB,24GiB")
    verb.add_argument("--ranks", type=int, help="number of ranks, with --cluster")
    verb.add_argument("--cluster", help="a cluster's file, or a name such as a100-8")
    options = parser.parse_args(words)
    try:
        check_version()
        build = load_builder(options.script)
    except (WeftError, FileNotFoundError) as error:
        sys.exit(f"weft: {error}")
    model, example, loss = build()
    try:
        policy, _, _ = find_policy(None, "bf16" if options.cluster else None)
        measured = measure(model, example, loss, mp_policy=policy)
        if is_first():
            print_curve(measured, options)
    except WeftError as error:
        sys.exit(f"weft: {error}")


if __name__ == "__main__":
    main()
