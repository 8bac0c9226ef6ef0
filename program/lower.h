/* What the parts of lowering share: lower_prepare.c looks at plan and stages, lower_buffers.c says
 * which buffers there are, lower.c which instructions use them. Internal to program/. */
#ifndef WEFT_PROGRAM_LOWER_H
#define WEFT_PROGRAM_LOWER_H

#include <stdint.h>

#include "base/status.h"
#include "program/program.h"
#include "spec/layer.h"

/* A unit that a layer reads. */
struct weft_layer_unit {
    int32_t unit;
    bool in_backward; /* its backward reads it too */
};

struct weft_lowering {
    const struct weft_plan *plan;
    const struct weft_lower_inputs *inputs;
    struct weft_program *program;
    struct weft_pool pool;                    /* of what is needed only while lowering */
    struct weft_layer_work *works;            /* by layer */
    int32_t *first_layer_unit;                /* by layer, and one more: in layer_units */
    struct weft_layer_unit *layer_units;      /* of all layers */
    int32_t *buffers[WEFT_BUFFER_KIND_COUNT]; /* by unit or layer: instance 0, or -1; the others
                                                 stand behind it */
};

/* Checks that plan and stages belong together, and fills all of the lowering and of its program
 * that is no instruction: weft_lower_buffers included. WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_lower_prepare(struct weft_lowering *lowering,
                                                  struct weft_error *err);

/* Fills lowering->program->buffers without lives and offsets, sorted by kind, index, instance, and
 * lowering->buffers. works must be filled. */
WEFT_MUST_USE enum weft_status weft_lower_buffers(struct weft_lowering *lowering,
                                                  struct weft_error *err);

/* Number of the residency in which a unit's gathered parameters are read in a slot: the last
 * gather whose window lies before it, round the period's end where none does. 0 for a unit that
 * nothing gathers. */
int32_t weft_lower_residency(const struct weft_plan *plan, int32_t unit, int32_t slot);

/* Residencies of a unit in a period: as many as there are buffers for them. */
int32_t weft_lower_residencies(const struct weft_plan *plan, int32_t unit);

#endif
