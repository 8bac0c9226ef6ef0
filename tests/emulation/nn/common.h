/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of runtime/nn's kernels: the CPU's functions, dtypes, shapes. */
#ifndef WEFT_TESTS_EMULATION_NN_COMMON_H
#define WEFT_TESTS_EMULATION_NN_COMMON_H

#include <algorithm>
#include <string>
#include <vector>

/* C headers must come first, because kernels' headers include some of them. */
extern "C" {
#include "base/hash.h"
#include "base/numbers.h"
#include "runtime/nn/cpu/kernels/kernels.h"
#include "runtime/nn/elements.h"
}

#include "runtime/nn/cuda/kernels/attention.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "tests/emulation/harness.h"

static const enum weft_dtype all_dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16};

/* Elements of a dtype, as bytes. */
typedef emu_buffer<unsigned char> emu_bytes;

static inline int64_t element_bytes(enum weft_dtype dtype)
{
    return dtype == WEFT_F32 ? 4 : 2;
}

/* The largest relative error of one rounding. */
static inline double half_ulp(enum weft_dtype dtype)
{
    return dtype == WEFT_F32 ? 0x1p-24 : dtype == WEFT_BF16 ? 0x1p-8 : 0x1p-11;
}

static inline float element_at(enum weft_dtype dtype, const void *x, int64_t i)
{
    const uint16_t *half = (const uint16_t *)x;
    return dtype == WEFT_F32    ? ((const float *)x)[i]
           : dtype == WEFT_BF16 ? weft_bf16_widen(half[i])
                                : weft_f16_widen(half[i]);
}

static inline void set_element(enum weft_dtype dtype, void *x, int64_t i, float value)
{
    uint16_t *half = (uint16_t *)x;
    if (dtype == WEFT_F32) {
        ((float *)x)[i] = value;
    } else {
        half[i] = dtype == WEFT_BF16 ? weft_bf16_narrow(value) : weft_f16_narrow(value);
    }
}

/* An operand of n elements of a dtype, `shift` elements after a multiple of 256 bytes. */
struct elements : emu_bytes {
    enum weft_dtype dtype;
    int64_t count;

    elements(const char *name, enum emu_mode mode, enum weft_dtype of, int64_t size,
             int64_t shift = 0)
        : emu_bytes(name, mode, size * element_bytes(of), shift * element_bytes(of),
                    of == WEFT_F32    ? EMU_F32
                    : of == WEFT_BF16 ? EMU_BF16
                                      : EMU_F16),
          dtype(of), count(size)
    {
    }
    float get(int64_t i) const
    {
        return element_at(dtype, data, i);
    }
    void set(int64_t i, float value) const
    {
        set_element(dtype, data, i, value);
    }
    void fill_normal(double deviation) const
    {
        for (int64_t i = 0; i < count; i++) {
            set(i, (float)(deviation * emu_normal()));
        }
    }
};

static inline void fill_normal(const emu_buffer<float> &x, double deviation)
{
    for (int64_t i = 0; i < x.n; i++) {
        x[i] = (float)(deviation * emu_normal());
    }
}

/* Sizes around those of a thread, a warp and a block; more with --all. */
static inline std::vector<int64_t> some_sizes(void)
{
    std::vector<int64_t> sizes = {0, 1, 3, 8, 37, 256, 1000, 2053};
    if (emu_thorough()) {
        const int64_t more[] = {2, 4, 7, 16, 31, 33, 64, 511, 513, 1024, 4099};
        sizes.insert(sizes.end(), std::begin(more), std::end(more));
        for (int i = 0; i < 6; i++) {
            sizes.push_back(emu_below(6000));
        }
    }
    return sizes;
}

/* Starts of arrays, in elements after a multiple of 256 bytes: the same for all, and different
 * ones. */
static inline std::vector<int64_t> some_shifts(void)
{
    return emu_thorough() ? std::vector<int64_t>{0, 1, 2, 3, 4, 5, 7}
                          : std::vector<int64_t>{0, 1, 4, 6};
}

/* Compares elements of the type of the operand at `is`. */
static inline bool same_bytes(const std::string &what, const void *is, const void *wanted,
                              int64_t bytes)
{
    if (emu_same_elements(emu_type_at(is), (size_t)bytes, is, wanted)) return true;
    return emu_same_bits(what.c_str(), bytes, (const unsigned char *)is,
                         (const unsigned char *)wanted);
}

static inline const struct weft_kernels *cpu(void)
{
    return weft_kernels_level(0);
}

#endif
