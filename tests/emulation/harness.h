/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of kernels. A case fails if a number is wrong. On the emulator (emulated.cc) it runs for
 * several GPUs and orders of blocks and threads, and any finding is a failure. On a GPU (on_gpu.cc)
 * it runs once, with nvcc's kernels. Speaks TAP.
 *
 * --all              longer lists of shapes, all targets and orders
 * --table FILE       adds a line per kernel to FILE
 * --bits FILE        compares the results of each case's first run with FILE
 * --write-bits FILE  makes that file; not with --all, which has other shapes */
#ifndef WEFT_TESTS_EMULATION_HARNESS_H
#define WEFT_TESTS_EMULATION_HARNESS_H

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "tests/emulation/emulator.h"
#include "tests/emulation/watch.h"

void emu_begin(int argc, char **argv);
typedef void emu_case_fn(void);
void emu_case(const char *name, emu_case_fn *fn);
/* A case with other bits on a GPU. It has sums on tensor cores, approximate powers, the library's
 * logarithm. */
void emu_case_without_bits(const char *name, emu_case_fn *fn);
/* Fails unless each word is in the name of a launched kernel. Returns the exit code. */
int emu_end(std::initializer_list<const char *> kernels);

/* True if long lists of shapes are wanted. */
bool emu_thorough(void);

/* Unless `is`, fails the case with this message. Returns `is`. */
bool emu_expect(bool is, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails unless `is` is within `most` of `wanted`. The program's end reports the worst share of a
 * bound. */
bool emu_near(const char *what, double is, double wanted, double most);

/* Random numbers by the case's seed and the number of calls. */
double emu_uniform(void); /* in [0, 1) */
double emu_normal(void);
int64_t emu_below(int64_t below);

/* The type of an operand's elements. NaNs of a float type are equal in every comparison and hash,
 * because their signs and payloads differ between processors. Other elements are bytes. */
enum emu_type { EMU_BYTES, EMU_F32, EMU_F64, EMU_BF16, EMU_F16 };
template <typename T> constexpr enum emu_type emu_type_of(void)
{
    return std::is_same<T, float>::value    ? EMU_F32
           : std::is_same<T, double>::value ? EMU_F64
                                            : EMU_BYTES;
}
/* True if elements have the same bits, or are both NaN. The number of bytes fits the type. */
bool emu_same_elements(enum emu_type type, size_t bytes, const void *a, const void *b);

/* Allocates memory between guards, `shift_bytes` after a multiple of 256 bytes. */
void *emu_allocate(const char *name, size_t bytes, size_t shift_bytes, enum emu_mode mode,
                   enum emu_type type);
/* The type of the operand that has this address; EMU_BYTES if there is none. */
enum emu_type emu_type_at(const void *address);
struct weft_hash emu_hash(const void *data);
bool emu_guards_hold(const void *data);
void emu_release(void *data); /* fails the case if its guards changed */

/* An operand of a kernel. Unset elements are NaN in every type. */
template <typename T> struct emu_buffer {
    T *data;
    int64_t n;

    emu_buffer(const char *name, enum emu_mode mode, int64_t elements, int64_t shift = 0,
               enum emu_type type = emu_type_of<T>())
        : data((T *)emu_allocate(name, (size_t)elements * sizeof(T), (size_t)shift * sizeof(T),
                                 mode, type)),
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

/* Fails at the first difference. True if there is none. NaNs are equal. */
template <typename T> bool emu_same_bits(const char *what, int64_t n, const T *is, const T *wanted)
{
    for (int64_t i = 0; i < n; i++) {
        if (emu_same_elements(emu_type_of<T>(), sizeof(T), is + i, wanted + i)) continue;
        return emu_expect(false, "%s: element %lld of %lld has other bits: %.9g, not %.9g", what,
                          (long long)i, (long long)n, (double)is[i], (double)wanted[i]);
    }
    return true;
}

#endif
