#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the commit of this source tree, followed by "-dirty" if files differ from it. Exits with 1 if the tree is no
# checkout. A tree inside another repository has no commit of its own.
set -eu
cd "$(dirname "$0")/.."
[ -e .git ]
git describe --always --abbrev=12 --exclude='*' --dirty
