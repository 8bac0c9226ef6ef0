/* SPDX-License-Identifier: Apache-2.0 */
/* Joint functions of a warp's threads. */
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "base/numbers.h"
#include "tests/emulation/emu.h"
#include "tests/emulation/run.h"

enum { ALL = -1 };

void __syncwarp(unsigned mask, const char *file, int line)
{
    emu_meet("__syncwarp", mask, NULL, NULL, file, line);
}

void emu_work_shuffle(void *const brought[EMU_WARP], unsigned mask)
{
    for (int lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) == 0) continue;
        struct emu_shuffle *shuffle = (struct emu_shuffle *)brought[lane];
        if (shuffle->from < 0 || shuffle->from >= EMU_WARP || (mask >> shuffle->from & 1) == 0) {
            emu_stop(EMU_MEETING, "lane %d shuffles from lane %d, which is not in mask %08x", lane,
                     shuffle->from, mask);
        }
        shuffle->result = ((const struct emu_shuffle *)brought[shuffle->from])->value;
    }
}

static void work_ballot(void *const brought[EMU_WARP], unsigned mask)
{
    unsigned bits = 0;
    for (int lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) != 0 && *(const unsigned *)brought[lane] != 0) bits |= 1u << lane;
    }
    for (int lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) != 0) *(unsigned *)brought[lane] = bits;
    }
}

unsigned __ballot_sync(unsigned mask, int predicate, const char *file, int line)
{
    unsigned word = predicate != 0;
    emu_meet("__ballot_sync", mask, &word, work_ballot, file, line);
    return word;
}

static void work_maximum(void *const brought[EMU_WARP], unsigned mask)
{
    unsigned most = 0;
    for (int lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) == 0) continue;
        const unsigned value = *(const unsigned *)brought[lane];
        most = value > most ? value : most;
    }
    for (int lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) != 0) *(unsigned *)brought[lane] = most;
    }
}

unsigned __reduce_max_sync(unsigned mask, unsigned value, const char *file, int line)
{
    emu_meet("__reduce_max_sync", mask, &value, work_maximum, file, line);
    return value;
}

static void work_sum(void *const brought[EMU_WARP], unsigned mask)
{
    unsigned sum = 0;
    for (int lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) != 0) sum += *(const unsigned *)brought[lane];
    }
    for (int lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) != 0) *(unsigned *)brought[lane] = sum;
    }
}

unsigned __reduce_add_sync(unsigned mask, unsigned value, const char *file, int line)
{
    emu_meet("__reduce_add_sync", mask, &value, work_sum, file, line);
    return value;
}

/* Atomics need no locks, because threads run one at a time. */

template <typename T> static void before_atomic(const T *to)
{
    if (emu_hooks.atomic != NULL) emu_hooks.atomic(to, sizeof(*to));
}

unsigned atomicAdd(unsigned *to, unsigned value)
{
    before_atomic(to);
    const unsigned old = *to;
    *to = old + value;
    return old;
}

unsigned long long atomicAdd(unsigned long long *to, unsigned long long value)
{
    before_atomic(to);
    const unsigned long long old = *to;
    *to = old + value;
    return old;
}

unsigned atomicOr(unsigned *to, unsigned value)
{
    before_atomic(to);
    const unsigned old = *to;
    *to = old | value;
    return old;
}

unsigned atomicMin(unsigned *to, unsigned value)
{
    before_atomic(to);
    const unsigned old = *to;
    *to = value < old ? value : old;
    return old;
}

float emu_power_of_two(float x)
{
    const float y = exp2f(x);
    return y < FLT_MIN ? 0.0f : y;
}

float emu_logarithm(float x)
{
    return log2f(x);
}

/* Matrices. Lane l = 4 g + t has these elements. c: rows g and g + 8, columns 2 t and 2 t + 1. a:
 * the same rows, columns 2 t, 2 t + 1 and both plus 8. b: column g, rows as a's columns. The lower
 * half of a word comes first. */
enum { M = 16, N = 8, K = 16 };

struct mma {
    float *c;
    const uint32_t *a, *b;
};

typedef float widen_half(uint16_t x);

static float half_of(widen_half *widen, uint32_t word, int which)
{
    return widen((uint16_t)(word >> 16 * which));
}

static void work_mma(widen_half *widen, void *const brought[EMU_WARP])
{
    float a[M][K], b[K][N];
    for (int lane = 0; lane < EMU_WARP; lane++) {
        const struct mma *part = (const struct mma *)brought[lane];
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 8; i++) {
            const int word = i / 2, column = 2 * t + i % 2 + (word >= 2 ? 8 : 0);
            a[g + (word % 2 != 0 ? 8 : 0)][column] = half_of(widen, part->a[word], i % 2);
            if (word < 2) b[2 * t + i % 2 + 8 * word][g] = half_of(widen, part->b[word], i % 2);
        }
    }
    for (int lane = 0; lane < EMU_WARP; lane++) {
        const struct mma *part = (const struct mma *)brought[lane];
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + (i >= 2 ? 8 : 0), column = lane % 4 * 2 + i % 2;
            double sum = (double)part->c[i];
            for (int k = 0; k < K; k++) {
                sum += (double)a[row][k] * (double)b[k][column];
            }
            part->c[i] = (float)sum;
        }
    }
}

static void work_mma_bf16(void *const brought[EMU_WARP], unsigned mask)
{
    (void)mask;
    work_mma(weft_bf16_widen, brought);
}

static void work_mma_f16(void *const brought[EMU_WARP], unsigned mask)
{
    (void)mask;
    work_mma(weft_f16_widen, brought);
}

void emu_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
    struct mma part = {c, a, b};
    emu_meet("mma", (unsigned)ALL, &part, work_mma_bf16, file, line);
}

void emu_mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
    struct mma part = {c, a, b};
    emu_meet("mma", (unsigned)ALL, &part, work_mma_f16, file, line);
}

struct matrices {
    uint32_t *to;
    const uint16_t *row;
    bool transpose;
};

static void work_matrices(void *const brought[EMU_WARP], unsigned mask)
{
    (void)mask;
    for (int lane = 0; lane < EMU_WARP; lane++) {
        const struct matrices *part = (const struct matrices *)brought[lane];
        for (int i = 0; i < 4; i++) {
            uint16_t halves[2];
            for (int which = 0; which < 2; which++) {
                const int along = lane / 4, across = lane % 4 * 2 + which;
                const int row = part->transpose ? across : along;
                const int column = part->transpose ? along : across;
                halves[which] = ((const struct matrices *)brought[8 * i + row])->row[column];
            }
            part->to[i] = (uint32_t)halves[0] | (uint32_t)halves[1] << 16;
        }
    }
}

void emu_load_matrices(uint32_t to[4], const void *row, bool transpose, const char *file, int line)
{
    enum { ROW_BYTES = 16 };
    struct matrices part = {to, (const uint16_t *)row, transpose};
    if (emu_hooks.access != NULL) {
        emu_hooks.access(row, ROW_BYTES, false, file + line, (uint32_t)emu_lane());
    }
    emu_meet("ldmatrix", (unsigned)ALL, &part, work_matrices, file, line);
}
