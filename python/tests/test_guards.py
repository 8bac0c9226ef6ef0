# SPDX-License-Identifier: Apache-2.0
"""Random sequences of calls on two ranks of PyTorch. Exit code 77 with a line where PyTorch 2.15 is not installed."""
import unittest

from starts import run_ranks, run_tests


class Sequences(unittest.TestCase):
    def test_200_random_sequences_end_in_the_bits_of_fsdp2_that_keeps_nothing(self):
        self.assertIsNone(run_ranks("sequences.py", "200"))


if __name__ == "__main__":
    run_tests()
