#include <string.h>

#include "base/hash.h"
#include "runtime/nn/cpu/units.h"

/* The finaliser of splitmix64 (Steele, Lea and Flood 2014), a bijection that mixes all bits. */
static uint64_t mix_word(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Adds two independent hashes of one element of a tensor. */
static void add_element(struct weft_hash *sum, uint64_t name, uint64_t element, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t place = mix_word(name + element * UINT64_C(0x9e3779b97f4a7c15));
    sum->high += mix_word(place ^ bits);
    sum->low += mix_word(place + ((uint64_t)bits << 32 | 0x5bd1e995u));
}

static void add_elements(struct weft_hash *sum, const struct weft_nn_piece *piece, int64_t from,
                         const float *values, int64_t n)
{
    for (int64_t e = 0; e < n; e++)
        add_element(sum, piece->name, (uint64_t)(piece->first + from + e), values[e]);
}

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
        add_elements(sum, piece, at, values, n);
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
            add_elements(&mine, piece, 0, weft_nn_cpu_values(a->cpu, a->unit, piece), piece->count);
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
