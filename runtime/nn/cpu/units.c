/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/units.h"

struct load_argument {
    const struct weft_nn_cpu *cpu;
    enum weft_dtype dtype;
    int64_t n;
    const float *host;
    void *to;
};

static enum weft_status load_elements(struct weft_stream *stream, const void *argument,
                                      struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct load_argument *a = argument;
    a->cpu->kernels->narrow(a->dtype, a->n, a->host, weft_nn_cpu_reach(a->cpu, a->to));
    return WEFT_OK;
}

void weft_nn_cpu_load(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype,
                      int64_t n, const float *host, void *to)
{
    const struct load_argument argument = {weft_nn_cpu_of(nn), dtype, n, host, to};
    weft_stream_push(stream, load_elements, &argument, sizeof(argument));
}

struct initial_argument {
    const struct weft_nn_cpu *cpu;
    struct weft_nn_initial initial;
};

/* Elements that a thread draws at once. */
enum { DRAWN_ELEMENTS = 4096 };

static void draw_values(const struct initial_argument *a, int64_t first, int64_t n, float *out)
{
    const struct weft_nn_initial *initial = &a->initial;
    const struct weft_normal law = {initial->seed, initial->name, initial->std};
    switch (initial->init) {
    case WEFT_INIT_ZERO:
    case WEFT_INIT_ONE:
        for (int64_t i = 0; i < n; i++) {
            out[i] = initial->init == WEFT_INIT_ONE ? 1.0f : 0.0f;
        }
        return;
    case WEFT_INIT_NORMAL:
        a->cpu->kernels->normal(&law, first, n, out);
        return;
    case WEFT_INIT_COUNT:
        return;
    }
}

/* Draws one part, from element `at` of the argument on. */
static void draw_part(const struct initial_argument *a, int64_t at)
{
    const int64_t left = a->initial.n - at, n = left < DRAWN_ELEMENTS ? left : DRAWN_ELEMENTS;
    const enum weft_dtype dtype = a->initial.dtype;
    float values[DRAWN_ELEMENTS];
    void *to = weft_nn_cpu_element(a->cpu, a->initial.to, at, weft_dtype_bytes(dtype));
    draw_values(a, a->initial.first + at, n, dtype == WEFT_F32 ? to : values);
    if (dtype != WEFT_F32) a->cpu->kernels->narrow(dtype, n, values, to);
}

/* All of a rank's cores draw. A value depends on its place alone, so their number changes no
 * bit. */
static enum weft_status initialise_part(struct weft_stream *stream, const void *argument,
                                        struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct initial_argument *a = argument;
    const int64_t n = a->initial.n;
#ifdef _OPENMP
#pragma omp parallel for num_threads(a->cpu->threads) schedule(static) if (n > DRAWN_ELEMENTS)
#endif
    for (int64_t at = 0; at < n; at += DRAWN_ELEMENTS) {
        draw_part(a, at);
    }
    return WEFT_OK;
}

void weft_nn_cpu_initialise(struct weft_nn *nn, struct weft_stream *stream,
                            const struct weft_nn_initial *initial)
{
    const struct initial_argument argument = {weft_nn_cpu_of(nn), *initial};
    weft_stream_push(stream, initialise_part, &argument, sizeof(argument));
}

struct round_argument {
    const struct weft_nn_cpu *cpu;
    const struct weft_nn_unit *unit;
};

static enum weft_status round_unit(struct weft_stream *stream, const void *argument,
                                   struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct round_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    for (int64_t i = 0; unit->master != NULL && i < unit->n_renew; i++) {
        const struct weft_nn_piece *piece = &unit->renew[i];
        a->cpu->kernels->narrow(unit->dtype, piece->count, weft_nn_cpu_values(a->cpu, unit, piece),
                                weft_nn_cpu_element(a->cpu, unit->parameters, piece->parameter_at,
                                                    weft_dtype_bytes(unit->dtype)));
    }
    return WEFT_OK;
}

void weft_nn_cpu_round(struct weft_nn *nn, struct weft_stream *stream,
                       const struct weft_nn_unit *unit)
{
    const struct round_argument argument = {weft_nn_cpu_of(nn), unit};
    weft_stream_push(stream, round_unit, &argument, sizeof(argument));
}

struct average_argument {
    const struct weft_nn_cpu *cpu;
    const struct weft_nn_unit *unit;
    struct weft_nn_outer outer;
};

static void step_outer(const struct weft_nn_outer *outer, int64_t n, float *anchor, float *momentum,
                       float *values)
{
    for (int64_t i = 0; i < n; i++) {
        const float change = anchor[i] - values[i];
        momentum[i] = outer->momentum * momentum[i] + change;
        anchor[i] -= outer->lr * (change + outer->momentum * momentum[i]);
        values[i] = anchor[i];
    }
}

/* A division is rounded once, so the bits are those of the mean for any number of nodes. */
static enum weft_status average_unit(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct average_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    const float nodes = (float)a->outer.nodes;
    for (int64_t i = 0; i < unit->n_own; i++) {
        const struct weft_nn_piece *piece = &unit->own[i];
        float *values = weft_nn_cpu_values(a->cpu, unit, piece);
        for (int64_t at = 0; at < piece->count; at++)
            values[at] /= nodes;
        if (unit->anchor != NULL)
            step_outer(&a->outer, piece->count,
                       weft_nn_cpu_element(a->cpu, unit->anchor, piece->state_at, sizeof(float)),
                       weft_nn_cpu_element(a->cpu, unit->outer, piece->state_at, sizeof(float)),
                       values);
        if (unit->master == NULL) continue;
        a->cpu->kernels->narrow(unit->dtype, piece->count, values,
                                weft_nn_cpu_element(a->cpu, unit->parameters, piece->parameter_at,
                                                    weft_dtype_bytes(unit->dtype)));
    }
    return WEFT_OK;
}

void weft_nn_cpu_average(struct weft_nn *nn, struct weft_stream *stream,
                         const struct weft_nn_unit *unit, const struct weft_nn_outer *outer)
{
    const struct average_argument argument = {weft_nn_cpu_of(nn), unit, *outer};
    weft_stream_push(stream, average_unit, &argument, sizeof(argument));
}
