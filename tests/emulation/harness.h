/* Tests of kernels: a case fails if a number is wrong. On the emulator (emulated.cc) it is run for
 * several GPUs and orders of blocks and threads, and fails too if the emulator or the watch find
 * anything; on a GPU (on_gpu.cc) it is run once, by what nvcc made of the kernels. Speaks TAP.
 *
 * `--all` runs longer lists of shapes for all targets and orders; `--table FILE` adds a line for
 * each kernel to FILE. `--bits FILE` compares what the first run of each case left in its results
 * with FILE, which `--write-bits FILE` makes (not with --all, whose shapes are others). */
#ifndef WEFT_TESTS_EMULATION_HARNESS_H
#define WEFT_TESTS_EMULATION_HARNESS_H

#include <cmath>
#include <cstring>
#include <initializer_list>

#include "tests/emulation/emulator.h"
#include "tests/emulation/watch.h"

void emu_begin(int argc, char **argv);
typedef void emu_case_fn(void);
void emu_case(const char *name, emu_case_fn *fn);
/* A case whose bits are not the same on a GPU: of sums on tensor cores, of approximate powers, of
 * the library's logarithm, of results that are no numbers. */
void emu_case_without_bits(const char *name, emu_case_fn *fn);
/* Fails when a kernel, one of these words in its name, was never launched. Returns the exit code.
 */
int emu_end(std::initializer_list<const char *> kernels);

/* True: there is time for long lists of shapes. */
bool emu_thorough(void);

/* Counts as a failure of the case, and says so, when not `is`. Returns it. */
bool emu_expect(bool is, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails unless `is` is within `most` of `wanted`. How near to that the worst of a program came is
 * told at its end. */
bool emu_near(const char *what, double is, double wanted, double most);

/* Functions of the case's seed and of how often they were asked. */
double emu_uniform(void); /* from 0 on, below 1 */
double emu_normal(void);
int64_t emu_below(int64_t below);

/* Memory between guards, at `shift` elements behind a multiple of 256 bytes. */
void *emu_allocate(const char *name, size_t bytes, size_t shift_bytes, enum emu_mode mode);
bool emu_guards_hold(const void *data);
void emu_release(void *data); /* fails the case when its guards do not hold */

/* An operand of a kernel. What it does not hold yet is NaN in every type. */
template <typename T> struct emu_buffer {
    T *data;
    int64_t n;

    emu_buffer(const char *name, enum emu_mode mode, int64_t elements, int64_t shift = 0)
        : data((T *)emu_allocate(name, (size_t)elements * sizeof(T), (size_t)shift * sizeof(T),
                                 mode)),
          n(elements)
    {
    }
    emu_buffer(const emu_buffer &) = delete;
    emu_buffer &operator=(const emu_buffer &) = delete;
    ~emu_buffer()
    {
        emu_release(data);
    }
    T &operator[](int64_t i) const
    {
        return data[i];
    }
    size_t bytes(void) const
    {
        return (size_t)n * sizeof(T);
    }
};

/* The first difference, or that there is none. */
template <typename T> bool emu_same_bits(const char *what, int64_t n, const T *is, const T *wanted)
{
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(is + i, wanted + i, sizeof(T)) == 0) continue;
        return emu_expect(false, "%s: element %lld of %lld has other bits: %.9g, not %.9g", what,
                          (long long)i, (long long)n, (double)is[i], (double)wanted[i]);
    }
    return true;
}

#endif
