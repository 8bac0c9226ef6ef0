#include "tests/emulation/harness.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>

extern "C" {
#include "base/rng.h"
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#endif

enum { ALIGN_BYTES = 256, GUARD_BYTES = 256, GUARD = 0xa5, EMPTY = 0xff };

struct block {
    unsigned char *memory; /* guard, what was asked for, guard */
    size_t data_at, bytes, all_bytes;
};

static bool thorough;
static const char *table_file;
static int n_tests, n_failed_tests, n_failures;
static const char *case_name;
static uint64_t seed, draws;
static double worst_error; /* over what it may be */
static std::map<const void *, struct block> *memory_blocks;

void emu_begin(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0) {
            thorough = true;
        } else if (strcmp(argv[i], "--table") == 0 && i + 1 < argc) {
            table_file = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--all] [--table FILE]\n", argv[0]);
            exit(64);
        }
    }
    memory_blocks = new std::map<const void *, struct block>();
}

bool emu_thorough(void)
{
    return thorough;
}

bool emu_expect(bool is, const char *format, ...)
{
    enum { MOST_LINES = 20 };
    if (is) return true;
    n_failures++;
    if (n_failures > MOST_LINES) return false;
    va_list arguments;
    va_start(arguments, format);
    printf("# %s: ", case_name);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    return false;
}

bool emu_near(const char *what, double is, double wanted, double most)
{
    const double error = fabs(is - wanted);
    if (error > worst_error * most) worst_error = error / most;
    return emu_expect(error <= most, "%s: %.9g, not %.9g within %.3g", what, is, wanted, most);
}

double emu_uniform(void)
{
    return weft_rng_uniform(seed, 0, draws++);
}

double emu_normal(void)
{
    return weft_rng_normal(seed, 1, draws++);
}

int64_t emu_below(int64_t below)
{
    return (int64_t)weft_rng_below(seed, 2, draws++, (uint64_t)below);
}

void *emu_allocate(const char *name, size_t bytes, size_t shift_bytes, enum emu_mode mode)
{
    const size_t data_at = GUARD_BYTES + shift_bytes;
    const size_t all =
        (data_at + bytes + GUARD_BYTES + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    unsigned char *memory = (unsigned char *)aligned_alloc(ALIGN_BYTES, all);
    if (memory == NULL) abort();
    memset(memory, GUARD, all);
    memset(memory + data_at, EMPTY, bytes);
    (*memory_blocks)[memory + data_at] = {memory, data_at, bytes, all};
    ASAN_POISON_MEMORY_REGION(memory, data_at);
    ASAN_POISON_MEMORY_REGION(memory + data_at + bytes, all - data_at - bytes);
    emu_watch_operand(name, memory + data_at, bytes, mode);
    return memory + data_at;
}

bool emu_guards_hold(const void *data)
{
    const struct block block = memory_blocks->at(data);
    ASAN_UNPOISON_MEMORY_REGION(block.memory, block.all_bytes);
    bool hold = true;
    for (size_t i = 0; i < block.all_bytes; i++) {
        const bool inside = i >= block.data_at && i < block.data_at + block.bytes;
        hold = hold && (inside || block.memory[i] == GUARD);
    }
    return hold;
}

void emu_release(void *data)
{
    const struct block block = memory_blocks->at(data);
    emu_watch_release(data);
    emu_expect(emu_guards_hold(data), "memory beside an operand of %zu bytes was written",
               block.bytes);
    memory_blocks->erase(data);
    free(block.memory);
}

static void run_case(emu_case_fn *fn, const struct emu_target *target, enum emu_order order)
{
    static const char *const orders[] = {"forward", "backward", "shuffled"};
    n_failures = 0;
    seed = weft_rng_u64(1, (uint64_t)n_tests, 0);
    draws = 0;
    emu_set_target(target);
    emu_set_order(order, seed);
    emu_take_findings();
    fn();
    for (const struct emu_finding &finding : emu_take_findings()) {
        emu_expect(false, "%s: %s", emu_check_name(finding.check), finding.text.c_str());
    }
    n_tests++;
    n_failed_tests += n_failures > 0;
    printf("%sok %d - %s (%s, %s)\n", n_failures > 0 ? "not " : "", n_tests, case_name,
           target->name, orders[order]);
    fflush(stdout);
}

void emu_case(const char *name, emu_case_fn *fn)
{
    case_name = name;
    if (!thorough) {
        run_case(fn, emu_target_named("sm_80"), EMU_FORWARD);
        run_case(fn, emu_target_named("sm_89"), EMU_SHUFFLED);
        return;
    }
    for (int i = 0; i < emu_target_count; i++) {
        run_case(fn, &emu_targets[i], (enum emu_order)(i % 3));
    }
    run_case(fn, emu_target_named("sm_80"), EMU_SHUFFLED);
    run_case(fn, emu_target_named("sm_89"), EMU_BACKWARD);
}

static void expect_launched(const char *word)
{
    bool found = false;
    for (const struct emu_launched &kernel : emu_kernels_launched()) {
        found = found || kernel.name.find(word) != std::string::npos;
    }
    n_tests++;
    n_failed_tests += !found;
    printf("%sok %d - a kernel named %s was launched\n", found ? "" : "not ", n_tests, word);
}

static double ratio(int64_t is, int64_t least)
{
    return least > 0 ? (double)is / (double)least : 0;
}

/* A line a kernel: its name, threads, shared memory, and what it asked for over the least. */
static void write_table(void)
{
    FILE *file = table_file == NULL || !emu_watched() ? NULL : fopen(table_file, "a");
    if (file == NULL) return;
    for (const struct emu_launched &kernel : emu_kernels_launched()) {
        const struct emu_traffic t = emu_watch_traffic(kernel.name.c_str());
        fprintf(file, "%s\t%u\t%zu\t%.3f\t%.3f\t%.3f\n", kernel.name.c_str(), kernel.threads,
                kernel.shared_bytes, ratio(t.sectors, t.least_sectors),
                ratio(t.passes, t.least_passes),
                ratio(t.bytes_read + t.bytes_written, t.least_read + t.least_written));
    }
    fclose(file);
}

int emu_end(std::initializer_list<const char *> kernels)
{
    for (const char *kernel : kernels) {
        expect_launched(kernel);
    }
    write_table();
    const struct emu_counts counts = emu_counted();
    if (worst_error > 0) printf("# the worst error is %.2f of its bound\n", worst_error);
    printf("1..%d\n", n_tests);
    printf("# %d tests, %d failed; %lld launches of %zu kernels, %lld threads, %s\n", n_tests,
           n_failed_tests, (long long)counts.launches, emu_kernels_launched().size(),
           (long long)counts.threads, emu_watched() ? "watched" : "not watched");
    return n_failed_tests > 0 || n_tests == 0;
}
