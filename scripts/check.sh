#!/bin/sh
# Builds and runs every test: plain, under ASan+UBSan (but suite `plain`), and the races under TSan; and compiles the
# product with clang where there is one. Ends with what was skipped and why, and one line that counts.
set -u
cd "$(dirname "$0")/.."
logs=""
broken=""
# Many tests wait for processes and clocks more than they compute.
at_once=$(($(nproc) * 2))

configure() { # directory, meson options...
    directory=$1
    shift
    [ -f "$directory/build.ninja" ] || meson setup "$directory" "$@" >"$directory.log" 2>&1 || {
        cat "$directory.log"
        return 1
    }
}

run_suites() { # name, directory, targets to build ("": all), meson test options...
    name=$1
    directory=$2
    targets=$3
    shift 3
    echo "== $name"
    # Words are targets.
    # shellcheck disable=SC2086
    if ! ninja -C "$directory" $targets >"$directory.log" 2>&1; then
        tail -n 60 "$directory.log"
        broken="$broken $name(build)"
        return
    fi
    rm -f "$directory/meson-logs/testlog.json"
    meson test -C "$directory" --no-rebuild --list "$@" >"$directory/tests-expected"
    meson test -C "$directory" --no-rebuild --num-processes "$at_once" --print-errorlogs "$@" || true
    if [ -f "$directory/meson-logs/testlog.json" ]; then
        logs="$logs $name=$directory"
    else
        broken="$broken $name(no-log)"
    fi
}

# Kernels are built by nvcc too where there is one; tests say what is missing.
gpu=auto
if cuda=$(sh scripts/find_cuda.sh) && [ -x "$cuda/bin/nvcc" ]; then gpu=enabled; fi
configure build-check -Dwerror=true -Ddebug=false -Dgpu=$gpu || broken="$broken plain(configure)"
run_suites plain build-check "" -t 2
# Sanitizers watch code that is compiled in less than half the time at -O1, with lines and no variables. Warnings
# are the plain build's: what gcc warns of hangs on what it optimises.
sanitized="-Doptimization=1 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 -Db_lundef=false"
# shellcheck disable=SC2086
configure build-asan $sanitized -Db_sanitize=address,undefined ||
    broken="$broken sanitizers(configure)"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
run_suites asan+ubsan build-asan "" -t 6 --no-suite style --no-suite plain
# shellcheck disable=SC2086
configure build-tsan $sanitized -Db_sanitize=thread ||
    broken="$broken tsan(configure)"
export TSAN_OPTIONS=halt_on_error=1
races=$(python3 scripts/test_programs.py build-tsan race) || broken="$broken tsan(tests)"
run_suites tsan build-tsan "$races" -t 8 --suite race
clang=$(command -v clang || true)
if [ -n "$clang" ]; then
    echo "== clang"
    CC=clang configure build-clang --buildtype=release -Dwerror=true -Dgpu=disabled && ninja -C build-clang program library/libweft.a >build-clang.log 2>&1 || {
        tail -n 60 build-clang.log
        broken="$broken clang(build)"
    }
fi
[ -n "$clang" ] || logs="$logs skipped=clang:not-installed"
python3 scripts/count_tests.py "$broken" $logs
