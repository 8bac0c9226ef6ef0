/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/hash.h"

#include "runtime/nn/cpu/units.h"

/* Hashes parameters of 16 bits without a master as fp32, part by part. */
static void add_narrow(const struct weft_nn_cpu *cpu, const struct weft_nn_unit *unit,
                       const struct weft_nn_piece *piece, struct weft_hash *sum)
{
    enum { PIECE = 1024 };
    const int64_t size = weft_dtype_bytes(unit->dtype);
    float values[PIECE];
    for (int64_t at = 0; at < piece->count; at += PIECE) {
        const int64_t n = piece->count - at < PIECE ? piece->count - at : PIECE;
        cpu->kernels->widen(
            unit->dtype, n,
            weft_nn_cpu_element(cpu, unit->parameters, piece->parameter_at + at, size), values);
        weft_nn_hash_elements(sum, piece->name, piece->first + at, values, n);
    }
}

struct hash_argument {
    const struct weft_nn_cpu *cpu;
    const struct weft_nn_unit *unit;
    void *sum;
};

static enum weft_status add_hash(struct weft_stream *stream, const void *argument,
                                 struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct hash_argument *a = argument;
    uint64_t *sum = weft_nn_cpu_reach(a->cpu, a->sum);
    struct weft_hash mine = {.high = sum[0], .low = sum[1]};
    for (int64_t i = 0; i < a->unit->n_own; i++) {
        const struct weft_nn_piece *piece = &a->unit->own[i];
        if (a->unit->master == NULL && a->unit->dtype != WEFT_F32)
            add_narrow(a->cpu, a->unit, piece, &mine);
        else
            weft_nn_hash_elements(&mine, piece->name, piece->first,
                                  weft_nn_cpu_values(a->cpu, a->unit, piece), piece->count);
    }
    sum[0] = mine.high;
    sum[1] = mine.low;
    return WEFT_OK;
}

void weft_nn_cpu_add_hash(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_unit *unit, void *sum)
{
    const struct hash_argument argument = {weft_nn_cpu_of(nn), unit, sum};
    weft_stream_push(stream, add_hash, &argument, sizeof(argument));
}

struct mix_argument {
    const struct weft_nn_cpu *cpu;
    const void *from;
    int64_t bytes;
    void *word;
};

static enum weft_status mix_hash(struct weft_stream *stream, const void *argument,
                                 struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct mix_argument *a = argument;
    uint64_t *word = weft_nn_cpu_reach(a->cpu, a->word);
    const struct weft_hash hash =
        weft_hash_bytes(weft_nn_cpu_reach(a->cpu, a->from), (size_t)a->bytes);
    *word = (*word ^ hash.low) * UINT64_C(0x9e3779b97f4a7c15) + hash.high;
    return WEFT_OK;
}

void weft_nn_cpu_mix_hash(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                          int64_t bytes, void *word)
{
    const struct mix_argument argument = {weft_nn_cpu_of(nn), from, bytes, word};
    weft_stream_push(stream, mix_hash, &argument, sizeof(argument));
}
