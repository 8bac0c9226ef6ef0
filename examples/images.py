#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes images and their classes as a file of samples, for train.data of a ViT:

    python3 examples/images.py images.npy labels.npy --patch 16 -o train.samples

images.npy is [images, channels, height, width]: uint8, which Weft reads as b / 127.5 - 1, or float32 after a
preparation of your own. labels.npy is [images] of integers from 0. Images have the model's image_size already."""
import argparse

import numpy

MAGIC, VERSION, HEADER = 20261130, 1, 256


def patches(images, side):
    """[images, channels, height, width] as rows [images, 1 + patches, channels * side * side]. A row has its patch's
    pixels channel by channel, as the weight of a convolution does. The first row is the class token's and is not read."""
    n, channels, height, width = images.shape
    if height % side or width % side:
        raise SystemExit(f"images of {height} x {width} pixels have no whole patches of {side} x {side}")
    cut = images.reshape(n, channels, height // side, side, width // side, side).transpose(0, 2, 4, 1, 3, 5)
    return numpy.pad(cut.reshape(n, -1, channels * side * side), ((0, 0), (1, 0), (0, 0)))


def write_samples(path, rows, labels):
    """Writes rows [samples, rows, numbers], uint8 or float32, and labels [samples]."""
    kind = "u1" if rows.dtype == numpy.uint8 else "<f4"
    header = numpy.zeros(HEADER, "<i4")
    header[:6] = MAGIC, VERSION, len(rows), rows.shape[1], rows.shape[2], numpy.dtype(kind).itemsize
    numbers = numpy.ascontiguousarray(rows.reshape(len(rows), -1), kind).view("u1")
    bytes_of_labels = numpy.asarray(labels, "<i4").reshape(-1, 1).view("u1")
    with open(path, "wb") as file:
        file.write(header.tobytes())
        file.write(numpy.hstack([numbers, bytes_of_labels]).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images")
    parser.add_argument("labels")
    parser.add_argument("--patch", type=int, default=16, help="pixels of a patch's side")
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_args()
    images, labels = numpy.load(given.images, mmap_mode="r"), numpy.load(given.labels)
    if images.ndim != 4 or labels.shape != images.shape[:1]:
        raise SystemExit(f"images are {images.shape} and labels {labels.shape}: give [n, channels, height, width] and [n]")
    if images.dtype not in (numpy.uint8, numpy.float32) or labels.dtype.kind not in "iu":
        raise SystemExit(f"images are {images.dtype} and labels {labels.dtype}: give uint8 or float32, and integers")
    if labels.size == 0 or labels.min() < 0 or labels.max() > numpy.iinfo("<i4").max:
        raise SystemExit("labels are from 0 on, below 2147483648: give at least one image with such a label")
    write_samples(given.output, patches(images, given.patch), labels)


if __name__ == "__main__":
    main()
