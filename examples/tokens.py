#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes samples of tokens and their classes as a file of samples, for train.data of an encoder:

    python3 examples/tokens.py tokens.npy --labels labels.npy -o train.samples

tokens.npy is [samples, tokens] of integers, as a tokenizer of Hugging Face gives with padding="max_length". Shorter
samples end with the padding token; give it as train.padding. labels.npy is [samples] of integers from 0. A model that
predicts masked tokens (train.masked) reads no labels, so leave it out."""
import argparse

import numpy

MAGIC, VERSION, HEADER = 20261130, 2, 256


def write_samples(path, tokens, labels):
    """Writes tokens [samples, tokens] and labels [samples]."""
    header = numpy.zeros(HEADER, "<i4")
    header[:6] = MAGIC, VERSION, len(tokens), tokens.shape[1], 1, 4
    with open(path, "wb") as file:
        file.write(header.tobytes())
        file.write(numpy.hstack([tokens, labels.reshape(-1, 1)]).astype("<i4").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens")
    parser.add_argument("--labels")
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_args()
    tokens = numpy.load(given.tokens)
    labels = numpy.load(given.labels) if given.labels else numpy.zeros(len(tokens), "<i4")
    if tokens.ndim != 2 or labels.shape != tokens.shape[:1]:
        raise SystemExit(f"tokens are {tokens.shape} and labels {labels.shape}: give [n, tokens] and [n]")
    for name, numbers in ("tokens", tokens), ("labels", labels):
        if numbers.dtype.kind not in "iu" or numbers.size == 0 or numbers.min() < 0 or numbers.max() > 2147483647:
            raise SystemExit(f"{name} are integers from 0 on, below 2147483648: give at least one of them")
    write_samples(given.output, tokens, labels)


if __name__ == "__main__":
    main()
