# A thin door to meson: installs what a fresh Debian machine lacks, builds, runs.
#
#   make          build into build/
#   make demo     build the program alone, then run `weft demo`
#   make check    build and run the tests (plain, ASan+UBSan, TSan); check-all: every variant of them
#   make bench    re-create the figures of bench/ (minutes; leave the machine alone meanwhile)
#   make format   clang-format over the sources

BUILD ?= build

all: $(BUILD)/build.ninja
	meson compile -C $(BUILD)

program: $(BUILD)/build.ninja
	meson compile -C $(BUILD) program

$(BUILD)/build.ninja: | packages
	meson setup $(BUILD) --buildtype=release

packages:
	@sh scripts/packages.sh

demo: program
	$(BUILD)/cli/weft demo

# Faults of disks are injected by strace, the header is compiled as C++, and ranks are started by
# two MPI libraries; without them those tests are skipped.
test-packages:
	@sh scripts/packages.sh strace g++
	@sh scripts/packages.sh libopenmpi-dev openmpi-bin libmpich-dev mpich iproute2 || true

check: test-packages
	@sh scripts/check.sh

check-all: test-packages
	@sh scripts/packages.sh slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge || true
	@sh scripts/check.sh all

bench: all
	@sh bench/run.sh $(BUILD)

format:
	git ls-files '*.c' '*.h' '*.cc' '*.cu' | xargs clang-format -i

clean:
	rm -rf build build-*

.PHONY: all program packages test-packages demo check check-all bench format clean
