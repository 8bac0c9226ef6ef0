/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between harness.cc (operands and numbers of cases) and a runner. A program has one
 * runner, emulated.cc or on_gpu.cc. */
#ifndef WEFT_TESTS_EMULATION_CASES_H
#define WEFT_TESTS_EMULATION_CASES_H

#include <string>

#include "tests/emulation/harness.h"

struct emu_options {
    bool thorough;
    const char *table, *bits, *new_bits; /* NULL: not requested */
};
const struct emu_options *emu_given(void);

/* Surround each run of a case. Attempt 0 is the first; its results are compared with stored bits if
 * there are any. */
void emu_attempt_begin(const char *name, int attempt, bool has_bits);
uint64_t emu_attempt_seed(void);
void emu_attempt_end(const char *where);
/* Prints a line of TAP. */
void emu_told(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The runner's functions. */
void emu_runner_open(void);
void *emu_runner_allocate(size_t alignment, size_t bytes); /* usable by kernels and the host */
void emu_runner_free(void *memory);
void emu_runner_close(std::initializer_list<const char *> kernels);
std::string emu_runner_counts(void);

#endif
