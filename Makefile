# A thin door to meson: installs what a fresh Debian machine lacks, builds, runs.
#
#   make          build into build/
#   make demo     build the program alone, then run `weft demo`
#   make install  build and install the product, without tests (PREFIX of `meson setup`: /usr/local)
#   make check    build and run the tests (plain, ASan+UBSan, TSan, some mutants); check-all: every variant of them
#   make bench    re-create the figures of bench/ (minutes; leave the machine alone meanwhile)
#   make format   clang-format over the sources

BUILD ?= build

all: $(BUILD)/build.ninja
	meson compile -C $(BUILD)

program: $(BUILD)/build.ninja
	meson compile -C $(BUILD) program

product: $(BUILD)/build.ninja
	meson compile -C $(BUILD) product

$(BUILD)/build.ninja: | packages
	meson setup $(BUILD) --buildtype=release

packages:
	@sh scripts/packages.sh

demo: program
	$(BUILD)/cli/weft demo

install: product
	meson install -C $(BUILD) --no-rebuild

# strace injects faults of disks, zlib compresses traces, g++ compiles the header as C++ and the emulated GPU, cJSON reads
# written files a second time, and two MPI libraries start ranks. Where one cannot be installed, its tests are skipped,
# and the end of the check counts them.
test-packages: packages
	@sh scripts/packages.sh --optional strace
	@sh scripts/packages.sh --optional g++
	@sh scripts/packages.sh --optional zlib1g-dev
	@sh scripts/packages.sh --optional libcjson-dev
	@sh scripts/packages.sh --optional libopenmpi-dev openmpi-bin libmpich-dev mpich iproute2

check: test-packages
	@sh scripts/check.sh

check-all: test-packages
	@sh scripts/packages.sh --optional slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
	@sh scripts/check.sh all

bench: all
	@sh bench/run.sh $(BUILD)

format:
	git ls-files '*.c' '*.h' '*.cc' '*.cu' | xargs clang-format -i

clean:
	rm -rf build build-*

.PHONY: all program product install packages test-packages demo check check-all bench format clean
