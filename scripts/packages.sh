#!/bin/sh
# Installs missing Debian packages: the ones that Weft needs and the arguments. If it cannot, it names them and exits
# with 1.
set -eu
need="meson ninja-build gcc pkg-config libglpk-dev libdnnl-dev libcriterion-dev libpcre2-dev python3 $*"
missing=""
for package in $need; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
echo "installing:$missing" >&2
$sudo apt-get update -q >&2 && $sudo env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends $missing >&2 || {
    echo "packages: could not install:$missing (install them, then run make again)" >&2
    exit 1
}
