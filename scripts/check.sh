#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: check.sh [all]. Builds and runs the tests: plain, under ASan+UBSan, and the races under TSan, and then quick
# judged mutants for two minutes (tests/mutants/mutants.py). Suite `plain` never runs under sanitizers, because it compares
# text or bits. Sanitized builds have only the programs of their tests. Of the longest process tests the tree's seed
# draws a third of the cases (tests/cli/tap.py). `all`, nightly or by hand, adds suites `repeats` and `race` under ASan,
# suite `thorough` to the plain tests, all cases of the longest tests, all mutants, and a build of
# the product without a GPU part, by clang if there is one. The end lists the slowest tests, skipped tests with reasons,
# failures, seconds, and one line that counts. After a green run build-check/passed holds the tested commit; after `all`,
# build-check/passed-all also its date.
set -u
cd "$(dirname "$0")/.."
rm -f build-check/passed
usual="--no-suite thorough"
sanitized_too="--no-suite style --no-suite plain --no-suite repeats --no-suite race"
kernels_for="-Dgpu_code=90"
if [ "${1:-}" = all ]; then
    usual=""
    sanitized_too="--no-suite style --no-suite plain"
    kernels_for=""
    export WEFT_TEST_ALL=1
fi
# Tests that draw their cases draw new ones for each content of the tree, and the same ones when it is checked again.
: "${WEFT_TEST_SEED:=$((0x$(git rev-parse "HEAD^{tree}" 2>/dev/null | cut -c1-7 || true)0))}"
export WEFT_TEST_SEED
logs=""
broken=""
took=""
cpu_file=$(mktemp)
trap 'rm -f "$cpu_file"' EXIT
# Many tests wait for processes and clocks more than they compute.
at_once=$(($(nproc) * 2))
begun=$(date +%s)

# Sets cpu to the CPU seconds of all ended children. A busy machine changes them less than the clock's.
count_cpu() {
    times >"$cpu_file"
    cpu=$(awk 'NR == 2 { gsub(/s/, ""); split($1, u, "m"); split($2, s, "m")
        printf "%d", 60 * (u[1] + s[1]) + u[2] + s[2] }' "$cpu_file")
}

configure() { # directory, meson options...
    directory=$1
    shift
    [ -f "$directory/build.ninja" ] || meson setup "$directory" "$@" >"$directory.log" 2>&1 || {
        cat "$directory.log"
        return 1
    }
}

# Builds targets ("": all, tests: those of the chosen tests) and runs tests.
run_suites() { # name, directory, targets, meson test options...
    name=$1
    directory=$2
    targets=$3
    shift 3
    echo "== $name"
    started=$(date +%s)
    count_cpu
    started_cpu=$cpu
    ninja -C "$directory" build.ninja >"$directory.log" 2>&1
    meson test -C "$directory" --no-rebuild --list "$@" >"$directory/tests-expected"
    [ "$targets" != tests ] || targets=$(python3 scripts/test_programs.py "$directory" <"$directory/tests-expected") ||
        broken="$broken $name(programs)"
    # $targets is a list of words.
    # shellcheck disable=SC2086
    if ! ninja -C "$directory" $targets >>"$directory.log" 2>&1; then
        tail -n 60 "$directory.log"
        broken="$broken $name(build)"
        return
    fi
    built=$(date +%s)
    count_cpu
    built_cpu=$cpu
    rm -f "$directory/meson-logs/testlog.json"
    meson test -C "$directory" --no-rebuild --num-processes "$at_once" --print-errorlogs "$@" || true
    count_cpu
    took="$took $name $((built - started))+$(($(date +%s) - built)) (CPU $((built_cpu - started_cpu))+$((cpu - built_cpu))),"
    if [ -f "$directory/meson-logs/testlog.json" ]; then
        logs="$logs $name=$directory"
    else
        broken="$broken $name(no-log)"
    fi
}

# A killed run of mutants may have left a file changed.
python3 tests/mutants/mutants.py --restore build-check
# The kernels need nvcc and a C++ compiler. They are built for one GPU architecture; with `all`, for six, which takes ptxas minutes.
gpu="-Dgpu=auto"
if cuda=$(sh scripts/find_cuda.sh) && [ -x "$cuda/bin/nvcc" ] && command -v c++ >/dev/null; then gpu="-Dgpu=enabled $kernels_for"; fi
# shellcheck disable=SC2086
configure build-check -Dwerror=true -Ddebug=false $gpu || broken="$broken plain(configure)"
# shellcheck disable=SC2086
run_suites plain build-check "" -t 2 $usual
# Sanitizers watch code at -O1, with lines but without variables, which compiles in less than half the time. Only the
# plain build has warnings as errors, because gcc's warnings depend on its optimisations.
sanitized="-Doptimization=1 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 -Db_lundef=false"
# shellcheck disable=SC2086
configure build-asan $sanitized -Db_sanitize=address,undefined ||
    broken="$broken sanitizers(configure)"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# shellcheck disable=SC2086
run_suites asan+ubsan build-asan tests -t 6 $sanitized_too
# shellcheck disable=SC2086
configure build-tsan $sanitized -Db_sanitize=thread ||
    broken="$broken tsan(configure)"
export TSAN_OPTIONS=halt_on_error=1
run_suites tsan build-tsan tests -t 8 --suite race
if [ "${1:-}" = all ]; then
    # clang's warnings do not depend on its optimisations, and without them it compiles in a third of the time.
    compiler=$(command -v clang || echo "${CC:-gcc}")
    CC=$compiler configure build-no-gpu -Doptimization=0 -Ddebug=false -Dwerror=true -Dgpu=disabled ||
        broken="$broken no-gpu(configure)"
    run_suites no-gpu build-no-gpu "program library/libweft.a library/libweft.so.0.2.0" --suite style
    [ "${compiler##*/}" = clang ] || logs="$logs skipped=clang:not-installed"
fi
# Mutants change files of this tree for moments, so they come last, and only if build-check's tests ran.
echo "== mutants"
started=$(date +%s)
count_cpu
started_cpu=$cpu
# Only mutants that died before are drawn. check-all judges all of them.
if [ "${1:-}" = all ]; then
    python3 tests/mutants/mutants.py --build build-check || broken="$broken mutants"
else
    python3 tests/mutants/mutants.py --build build-check --seconds 120 --seed "$WEFT_TEST_SEED" || broken="$broken mutants"
fi
count_cpu
took="$took mutants $(($(date +%s) - started)) (CPU $((cpu - started_cpu))),"
count_cpu
echo "$(($(date +%s) - begun)) s in all (CPU $cpu); seconds of build+tests:${took%,}"
python3 scripts/count_tests.py "$broken" $logs || exit 1
git rev-parse HEAD >build-check/passed 2>/dev/null || rm -f build-check/passed
[ "${1:-}" != all ] || echo "$(date -u +%F) $(cat build-check/passed 2>/dev/null)" >build-check/passed-all
[ ! -f build-check/passed-all ] || echo "last green check-all: $(cat build-check/passed-all)"
