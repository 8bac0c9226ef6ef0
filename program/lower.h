/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of lowering, private to program/. lower_prepare.c checks plan and stages,
 * lower_buffers.c makes the buffers, and lower.c emits the instructions. */
#ifndef WEFT_PROGRAM_LOWER_H
#define WEFT_PROGRAM_LOWER_H

#include <stdint.h>

#include "base/status.h"
#include "program/inputs.h"
#include "program/program.h"
#include "spec/layer.h"

/* A unit that a layer reads. */
struct weft_layer_unit {
    int32_t unit;
    bool in_backward; /* the layer's backward reads it too */
};

struct weft_lowering {
    const struct weft_plan *plan;
    const struct weft_lower_inputs *inputs;
    struct weft_program *program;
    struct weft_pool pool;         /* freed after lowering */
    struct weft_layer_work *works; /* [n_layers] */
    int32_t *first_layer_unit;     /* [n_layers + 1] begin of each layer's list in layer_units */
    struct weft_layer_unit *layer_units; /* of all layers */
    /* By unit or layer: index of instance 0, or -1. Further instances follow it. */
    int32_t *buffers[WEFT_BUFFER_KIND_COUNT];
};

/* Checks that plan and stages belong together. Fills the lowering and its program except for the
 * instructions, with weft_lower_buffers. WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_lower_prepare(struct weft_lowering *lowering,
                                                  struct weft_error *err);

/* Fills lowering->buffers and lowering->program->buffers, sorted by kind, index and instance,
 * without lives and offsets. Requires works. */
WEFT_MUST_USE enum weft_status weft_lower_buffers(struct weft_lowering *lowering,
                                                  struct weft_error *err);

/* Number of residencies of a unit in a period, and of buffers for them. */
int32_t weft_lower_residencies(const struct weft_plan *plan, int32_t unit);

#endif
