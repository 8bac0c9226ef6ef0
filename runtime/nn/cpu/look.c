/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/nn/cpu/units.h"

/* Bits of a dtype's exponent, and the step between exponents. */
struct exponents {
    uint32_t mask, step;
};

static struct exponents exponents_of(enum weft_dtype dtype)
{
    static const struct exponents exponents[WEFT_DTYPE_COUNT] = {[WEFT_F32] = {0x7f800000, 1 << 23},
                                                                 [WEFT_BF16] = {0x7f80, 1 << 7},
                                                                 [WEFT_F16] = {0x7c00, 1 << 10}};
    return exponents[dtype];
}

/* The highest exponent of n numbers, as masked bits. */
static uint32_t highest_of_words(uint32_t mask, const unsigned char *numbers, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, numbers + i * (int64_t)sizeof bits, sizeof bits);
        most = (bits & mask) > most ? bits & mask : most;
    }
    return most;
}

static uint32_t highest_of_halves(uint32_t mask, const unsigned char *numbers, int64_t n)
{
    uint16_t most = 0, half_mask = (uint16_t)mask;
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, numbers + i * (int64_t)sizeof bits, sizeof bits);
        bits &= half_mask;
        most = bits > most ? bits : most;
    }
    return most;
}

bool weft_nn_cpu_adds_up(enum weft_dtype dtype, const void *numbers, int64_t n, int64_t terms)
{
    struct exponents e = exponents_of(dtype);
    uint32_t limit = e.mask;
    /* If each term is below 2^k / terms, their sum is below 2^k, which rounds to a finite
     * number. */
    for (int64_t many = 1; many < terms && limit > e.step; many *= 2)
        limit -= e.step;
    if (terms > 1 && limit > e.step) limit -= e.step;
    return (dtype == WEFT_F32 ? highest_of_words(e.mask, numbers, n)
                              : highest_of_halves(e.mask, numbers, n)) < limit;
}

struct look_argument {
    const struct weft_nn_cpu *cpu;
    struct weft_nn_look look;
};

static bool is_good(const struct weft_nn_cpu *cpu, const struct weft_nn_look *look)
{
    const double *loss = weft_nn_cpu_reach(cpu, look->loss);
    if (loss != NULL && !(fabs(*loss) < WEFT_NN_LOSS_MOST)) return false;
    for (int32_t i = 0; i < look->n_numbers; i++) {
        const struct weft_nn_numbers *numbers = &look->numbers[i];
        if (!weft_nn_cpu_adds_up(numbers->dtype, weft_nn_cpu_reach(cpu, numbers->at), numbers->n,
                                 look->terms))
            return false;
    }
    return true;
}

static enum weft_status look_at_numbers(struct weft_stream *stream, const void *argument,
                                        struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct look_argument *a = argument;
    if (is_good(a->cpu, &a->look)) return WEFT_OK;
    int64_t *first = weft_nn_cpu_reach(a->cpu, a->look.first);
    _Atomic uint32_t *stop = weft_nn_cpu_reach(a->cpu, a->look.stop);
    if (*first == INT64_MAX) *first = a->look.place;
    if (stop != NULL) atomic_store(stop, 1);
    return WEFT_OK;
}

void weft_nn_cpu_look(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_look *look)
{
    const struct look_argument argument = {weft_nn_cpu_of(nn), *look};
    weft_stream_push(stream, look_at_numbers, &argument, sizeof(argument));
}
