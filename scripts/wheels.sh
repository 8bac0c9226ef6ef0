#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the wheels `weft` and `weft-solve` into a folder: scripts/wheels.sh [FOLDER]. PYTHON has pip; where auditwheel is
# installed there, it names the oldest system that the wheels run on. Each wheel has the licences of the libraries
# in it, and SOURCES names their exact versions.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM

# Adds the licence of a Debian package to the tree, and the command that brings its sources.
add_licence() {
    mkdir -p "$1/LICENSES/linked"
    cp "/usr/share/doc/$2/copyright" "$1/LICENSES/linked/$2.txt"
    dpkg-query -W -f '${binary:Package} ${Version}: apt-get source ${source:Package}=${source:Version}\n' "$2" \
        >>"$1/LICENSES/linked/SOURCES"
}

# Builds the wheel NAME of the tracked files, with the licences of packages.
build() {
    name=$1
    shift
    tree=$scratch/$name
    mkdir -p "$tree"
    git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$tree"
    for package; do add_licence "$tree" "$package"; done
    if [ "$name" = weft-solve ]; then
        cp scripts/weft-solve.toml "$tree/pyproject.toml"
    else
        sed -i 's|"LICENSES/Apache-2.0.txt"]|"LICENSES/Apache-2.0.txt", "LICENSES/linked/*"]|' "$tree/pyproject.toml"
    fi
    "$python" -m pip wheel --quiet --no-deps --wheel-dir "$scratch/raw" "$tree"
}

build weft libpcre2-dev libgomp1
build weft-solve libglpk-dev libsuitesparse-dev libgmp-dev libltdl-dev zlib1g-dev
for wheel in "$scratch"/raw/*.whl; do
    if "$python" -m auditwheel --version >/dev/null 2>&1; then
        PATH="$(dirname "$(command -v "$python")"):$PATH" "$python" -m auditwheel repair --wheel-dir "$out" "$wheel"
    else
        cp "$wheel" "$out"
    fi
done
ls -l "$out"
