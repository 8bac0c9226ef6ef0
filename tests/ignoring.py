#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a test where all signals are ignored that a script, nohup or a supervisor may ignore, and one is
blocked: ignoring.py PROGRAM [ARGUMENTS...]. Children inherit both, so the test must set its own signals."""
import os
import signal
import sys

for number in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGALRM", "SIGPIPE"):
    signal.signal(getattr(signal, number), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.execvp(sys.argv[1], sys.argv[1:])
