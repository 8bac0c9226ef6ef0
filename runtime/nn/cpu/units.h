/* SPDX-License-Identifier: Apache-2.0 */
/* Work on units as tasks of the CPU, for the table of runtime/nn/backend.h. Only files of the "cpu"
 * back end include it. */
#ifndef WEFT_RUNTIME_NN_CPU_UNITS_H
#define WEFT_RUNTIME_NN_CPU_UNITS_H

#include "runtime/nn/cpu/cpu.h"

/* backend.c. Opens a back end with these functions. Memory is `shift_bytes` above its addresses. */
enum weft_status weft_nn_cpu_open(const struct weft_nn_backend *backend, int64_t shift_bytes,
                                  const struct weft_nn_options *options, struct weft_nn **out,
                                  struct weft_error *err);
#define WEFT_NN_CPU_FUNCTIONS                                                                      \
    .close = weft_nn_cpu_close, .describe = weft_nn_cpu_describe,                                  \
    .add_bits = weft_nn_cpu_add_bits, .gemm_name = weft_nn_cpu_gemm_name,                          \
    .prepare = weft_nn_cpu_prepare, .forward = weft_nn_cpu_push_forward,                           \
    .backward = weft_nn_cpu_push_backward, .load = weft_nn_cpu_load,                               \
    .initialise = weft_nn_cpu_initialise, .round = weft_nn_cpu_round,                              \
    .average = weft_nn_cpu_average, .update = weft_nn_cpu_update, .moments = weft_nn_cpu_moments,  \
    .apply = weft_nn_cpu_apply, .add_norm = weft_nn_cpu_add_norm,                                  \
    .add_squares = weft_nn_cpu_add_squares, .record_loss = weft_nn_cpu_record_loss,                \
    .look = weft_nn_cpu_look, .add_hash = weft_nn_cpu_add_hash, .mix_hash = weft_nn_cpu_mix_hash
void weft_nn_cpu_close(struct weft_nn *nn);
const char *weft_nn_cpu_describe(const struct weft_nn *nn);
void weft_nn_cpu_add_bits(const struct weft_nn *nn, struct weft_text *out);
const char *weft_nn_cpu_gemm_name(const struct weft_nn *nn);
void weft_nn_cpu_push_forward(struct weft_nn *nn, struct weft_stream *stream,
                              const struct weft_nn_call *call);
void weft_nn_cpu_push_backward(struct weft_nn *nn, struct weft_stream *stream,
                               const struct weft_nn_call *call);

/* units.c */
void weft_nn_cpu_load(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype,
                      int64_t n, const float *host, void *to);
void weft_nn_cpu_initialise(struct weft_nn *nn, struct weft_stream *stream,
                            const struct weft_nn_initial *initial);
void weft_nn_cpu_round(struct weft_nn *nn, struct weft_stream *stream,
                       const struct weft_nn_unit *unit);
void weft_nn_cpu_average(struct weft_nn *nn, struct weft_stream *stream,
                         const struct weft_nn_unit *unit, const struct weft_nn_outer *outer);

/* update.c */
weft_nn_update_fn weft_nn_cpu_update, weft_nn_cpu_moments, weft_nn_cpu_apply;

/* record.c */
void weft_nn_cpu_add_norm(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_unit *unit, void *bins, void *bad);
void weft_nn_cpu_add_squares(struct weft_nn *nn, struct weft_stream *stream,
                             const struct weft_nn_unit *unit, void *bins, void *bad, void *squares);
void weft_nn_cpu_record_loss(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                             const void *before, void *words);

/* look.c */
void weft_nn_cpu_look(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_look *look);
/* True if n numbers are finite. With more than 1 term they must also be so small that the sum of
 * that many is finite. */
bool weft_nn_cpu_adds_up(enum weft_dtype dtype, const void *numbers, int64_t n, int64_t terms);

/* hash.c */
void weft_nn_cpu_add_hash(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_unit *unit, void *sum);
void weft_nn_cpu_mix_hash(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                          int64_t bytes, void *word);

/* Element `at` of an array with elements of `size` bytes. */
static inline void *weft_nn_cpu_element(const struct weft_nn_cpu *cpu, const void *address,
                                        int64_t at, int64_t size)
{
    return (char *)weft_nn_cpu_reach(cpu, address) + at * size;
}

/* The fp32 parameters of a piece: the master's if there is one. */
static inline float *weft_nn_cpu_values(const struct weft_nn_cpu *cpu,
                                        const struct weft_nn_unit *unit,
                                        const struct weft_nn_piece *piece)
{
    if (unit->master != NULL)
        return weft_nn_cpu_element(cpu, unit->master, piece->state_at, sizeof(float));
    return weft_nn_cpu_element(cpu, unit->parameters, piece->parameter_at, sizeof(float));
}

#endif
