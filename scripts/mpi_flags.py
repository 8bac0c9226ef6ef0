#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the flags that an MPI compiler wrapper adds: flags.py compile|link WRAPPER FLAG"""
import subprocess
import sys

KEPT = {"compile": ("-I", "-D", "-pthread"), "link": ("-L", "-l", "-Wl,", "-pthread")}
kept = KEPT[sys.argv[1]]
words = subprocess.run(sys.argv[2:], check=True, capture_output=True, text=True).stdout.split()
# -isystem: warnings of this project are not for the headers of others.
print(" ".join(word.replace("-I", "-isystem", 1) if word.startswith("-I") else word
               for word in words if word.startswith(kept)))
