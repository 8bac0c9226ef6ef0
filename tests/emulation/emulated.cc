/* SPDX-License-Identifier: Apache-2.0 */
/* Runs cases on the emulator. */
#include <cstdio>
#include <cstdlib>

#include "tests/emulation/cases.h"

void emu_runner_open(void)
{
}

void *emu_runner_allocate(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

void emu_runner_free(void *memory)
{
    free(memory);
}

struct attempts {
    const char *name;
    emu_case_fn *fn;
    bool has_bits;
    int n;
};

static void attempt(struct attempts *of, const struct emu_target *target, enum emu_order order)
{
    static const char *const orders[] = {"forward", "backward", "shuffled"};
    emu_attempt_begin(of->name, of->n++, of->has_bits);
    emu_set_target(target);
    emu_set_order(order, emu_attempt_seed());
    emu_take_findings();
    of->fn();
    for (const struct emu_finding &finding : emu_take_findings()) {
        emu_expect(false, "%s: %s", emu_check_name(finding.check), finding.text.c_str());
    }
    emu_attempt_end((std::string(target->name) + ", " + orders[order]).c_str());
}

static void attempt_all(struct attempts of)
{
    if (!emu_thorough()) {
        attempt(&of, emu_target_named("sm_80"), EMU_FORWARD);
        attempt(&of, emu_target_named("sm_89"), EMU_SHUFFLED);
        return;
    }
    for (int i = 0; i < emu_target_count; i++) {
        attempt(&of, &emu_targets[i], (enum emu_order)(i % 3));
    }
    attempt(&of, emu_target_named("sm_80"), EMU_SHUFFLED);
    attempt(&of, emu_target_named("sm_89"), EMU_BACKWARD);
}

void emu_case(const char *name, emu_case_fn *fn)
{
    attempt_all({name, fn, true, 0});
}

void emu_case_without_bits(const char *name, emu_case_fn *fn)
{
    attempt_all({name, fn, false, 0});
}

static void expect_launched(const char *word)
{
    bool found = false;
    for (const struct emu_launched &kernel : emu_kernels_launched()) {
        found = found || kernel.name.find(word) != std::string::npos;
    }
    emu_told(found, "a kernel named %s was launched", word);
}

static double ratio(int64_t is, int64_t least)
{
    return least > 0 ? (double)is / (double)least : 0;
}

/* Writes a line per kernel: name, threads, shared memory, and its requests over the least. */
static void write_table(void)
{
    const char *path = emu_given()->table;
    FILE *file = path == NULL || !emu_watched() ? NULL : fopen(path, "a");
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

void emu_runner_close(std::initializer_list<const char *> kernels)
{
    for (const char *kernel : kernels) {
        expect_launched(kernel);
    }
    write_table();
}

std::string emu_runner_counts(void)
{
    const struct emu_counts counts = emu_counted();
    return std::to_string(counts.launches) + " launches of " +
           std::to_string(emu_kernels_launched().size()) + " kernels, " +
           std::to_string(counts.threads) + " threads, " +
           (emu_watched() ? "watched" : "not watched");
}
