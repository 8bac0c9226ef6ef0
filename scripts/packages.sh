#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs missing Debian packages: the ones that Weft needs, or with --optional the arguments. If it cannot, it names
# them. A build needs the first, so then it exits with 1; without the others tests are skipped.
set -eu
if [ "${1:-}" = --optional ]; then
    shift
    wanted="$*"
    otherwise="tests that need them are skipped"
    failure=0
else
    wanted="meson ninja-build gcc pkg-config libglpk-dev libdnnl-dev libcriterion-dev libpcre2-dev python3"
    otherwise="install them, then run make again"
    failure=1
fi
missing=""
for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
echo "installing:$missing" >&2
$sudo apt-get update -q >&2 && $sudo env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends $missing >&2 || {
    echo "packages: could not install:$missing ($otherwise)" >&2
    exit $failure
}
