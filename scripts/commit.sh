#!/bin/sh
# Prints the commit of this source tree, with "-dirty" behind it where files differ from it. Exit 1
# when the tree is no checkout: one that lies inside another repository has no commit of its own.
set -eu
cd "$(dirname "$0")/.."
[ -e .git ]
git describe --always --abbrev=12 --exclude='*' --dirty
