/* What harness.cc, which has operands and numbers of cases, shares with who runs them: emulated.cc
 * or on_gpu.cc, one of which is in a program. */
#ifndef WEFT_TESTS_EMULATION_CASES_H
#define WEFT_TESTS_EMULATION_CASES_H

#include <string>

#include "tests/emulation/harness.h"

struct emu_options {
    bool thorough;
    const char *table, *bits, *new_bits; /* NULL: not asked for */
};
const struct emu_options *emu_given(void);

/* Around each run of a case; the first of them is attempt 0, whose results are compared with stored
 * bits where it has any. */
void emu_attempt_begin(const char *name, int attempt, bool has_bits);
uint64_t emu_attempt_seed(void);
void emu_attempt_end(const char *where);
/* A line of TAP. */
void emu_told(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The runner's own. */
void emu_runner_open(void);
void *emu_runner_allocate(size_t alignment, size_t bytes); /* for kernels and the host */
void emu_runner_free(void *memory);
void emu_runner_close(std::initializer_list<const char *> kernels);
std::string emu_runner_counts(void);

#endif
