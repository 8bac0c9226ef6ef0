/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's part of a step's record. Ranks add their parts. */
#include "runtime/nn/cpu/units.h"

struct norm_argument {
    const struct weft_nn_cpu *cpu;
    const struct weft_nn_unit *unit;
    void *bins, *bad, *squares; /* squares NULL: of no tensor */
};

/* Adds squares of gradients, widened in pieces on the stack. */
static void add_squares(const struct weft_nn_cpu *cpu, uint64_t *bins, enum weft_dtype dtype,
                        const void *gradient, int64_t n)
{
    enum { PIECE = 4096 };
    float wide[PIECE];
    if (dtype == WEFT_F32) {
        weft_norm_add(bins, gradient, n);
        return;
    }
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = n - at < PIECE ? n - at : PIECE;
        cpu->kernels->widen(dtype, count, weft_nn_at(dtype, gradient, at), wide);
        weft_norm_add(bins, wide, count);
    }
}

/* The bins of the highest exponent. Only infinities and NaNs use them. */
static uint64_t sum_not_finite(const uint64_t *bins)
{
    return bins[WEFT_NORM_WORDS - 2] | bins[WEFT_NORM_WORDS - 1];
}

static void add_piece(const struct norm_argument *a, const struct weft_nn_piece *piece,
                      uint64_t *bins)
{
    const enum weft_dtype dtype = a->unit->gradient_dtype;
    add_squares(
        a->cpu, bins, dtype,
        weft_nn_cpu_element(a->cpu, a->unit->gradient, piece->state_at, weft_dtype_bytes(dtype)),
        piece->count);
}

/* Adds pieces [from, next) of one tensor to bins of their own first. */
static void add_tensor(const struct norm_argument *a, int64_t from, int64_t next, uint64_t *bins)
{
    uint64_t own[WEFT_NORM_WORDS] = {0}, words[WEFT_NORM_PACKED_WORDS];
    uint64_t *squares = weft_nn_cpu_reach(a->cpu, a->squares);
    squares += (int64_t)a->unit->own[from].tensor * WEFT_NORM_PACKED_WORDS;
    for (int64_t i = from; i < next; i++)
        add_piece(a, &a->unit->own[i], own);
    weft_norm_pack(own, words);
    for (int w = 0; w < WEFT_NORM_PACKED_WORDS; w++)
        squares[w] += words[w];
    for (int w = 0; w < WEFT_NORM_WORDS; w++)
        bins[w] += own[w];
}

static enum weft_status add_norm(struct weft_stream *stream, const void *argument,
                                 struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct norm_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    uint64_t *bins = weft_nn_cpu_reach(a->cpu, a->bins), *bad = weft_nn_cpu_reach(a->cpu, a->bad);
    const uint64_t before = sum_not_finite(bins);
    for (int64_t i = 0, next; i < unit->n_own; i = next) {
        next = i + 1;
        while (a->squares != NULL && next < unit->n_own &&
               unit->own[next].tensor == unit->own[i].tensor)
            next++;
        if (a->squares != NULL)
            add_tensor(a, i, next, bins);
        else
            add_piece(a, &unit->own[i], bins);
    }
    if (sum_not_finite(bins) != before) *bad = 1;
    return WEFT_OK;
}

void weft_nn_cpu_add_norm(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_unit *unit, void *bins, void *bad)
{
    const struct norm_argument argument = {weft_nn_cpu_of(nn), unit, bins, bad, NULL};
    weft_stream_push(stream, add_norm, &argument, sizeof(argument));
}

void weft_nn_cpu_add_squares(struct weft_nn *nn, struct weft_stream *stream,
                             const struct weft_nn_unit *unit, void *bins, void *bad, void *squares)
{
    const struct norm_argument argument = {weft_nn_cpu_of(nn), unit, bins, bad, squares};
    weft_stream_push(stream, add_norm, &argument, sizeof(argument));
}

struct loss_argument {
    const struct weft_nn_cpu *cpu;
    const void *loss, *before;
    void *words;
};

static enum weft_status record_loss_words(struct weft_stream *stream, const void *argument,
                                          struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct loss_argument *a = argument;
    const double *loss = weft_nn_cpu_reach(a->cpu, a->loss);
    const void *before = a->before == NULL ? NULL : weft_nn_cpu_reach(a->cpu, a->before);
    record_loss(*loss, before, weft_nn_cpu_reach(a->cpu, a->words));
    return WEFT_OK;
}

void weft_nn_cpu_record_loss(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                             const void *before, void *words)
{
    const struct loss_argument argument = {weft_nn_cpu_of(nn), loss, before, words};
    weft_stream_push(stream, record_loss_words, &argument, sizeof(argument));
}
