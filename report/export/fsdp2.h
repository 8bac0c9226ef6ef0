/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in the terms of PyTorch's FSDP2: one wrapped unit of whole modules for each unit of the
 * plan, prefetch lists, and the place of each reduction. FSDP2 launches collectives in hooks:
 *
 *  before a unit's first module: its own gather, then its forward list;
 *  before the backward of its last module: its own gather, then its backward list;
 *  after the backward of its first module: its reduction, or at the end of backward.
 *
 * Modules that share a tensor are one unit too. It stays gathered between them.
 *
 * The root's forward list comes before the first unit. */
#ifndef WEFT_REPORT_EXPORT_FSDP2_H
#define WEFT_REPORT_EXPORT_FSDP2_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json_keys.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "plan/plan.h"
#include "report/answer.h"

/* Units that a hook gathers, in order of launch. */
struct weft_fsdp2_list {
    int32_t n;
    int32_t *units;
};

struct weft_fsdp2_unit {
    const char *name;
    int32_t n_layers;
    int32_t *layers; /* its modules, in forward order */
    enum weft_policy policy;
    bool reshards;  /* after forward; otherwise after backward */
    bool unshards;  /* in backward: false for an embedding, whose backward reads no parameters */
    bool ends_late; /* FSDP2 would reduce after its backward, the plan does at the end */
    bool drains;    /* the first one that trains: no gradient flows into it, and FSDP2 itself
                       reduces it at the end */
    struct weft_fsdp2_list forward, backward; /* an empty list: no prefetch */
    int32_t n_checkpoints;
    int32_t *checkpoints; /* its layers that recompute their saved activations */
};

/* A module while a unit's modules are listed; begins as {0}. */
struct weft_fsdp2_module {
    bool checkpoints; /* those of layers that recompute alone */
    int32_t layer;    /* the next one */
    const char *name;
    size_t length; /* of the name */
};

/* A collective of the step. */
struct weft_fsdp2_event {
    int32_t unit;
    bool gathers; /* false: reduces */
};

struct weft_fsdp2 {
    struct weft_pool pool;
    const struct weft_plan *plan; /* outlives it */
    /* The plan as FSDP2 runs it (fsdp2_run.h), set by the caller; NULL: not known. */
    const struct weft_plan *run;
    int32_t n_layers;
    const char **layers; /* names of modules, in forward order */
    int32_t n_units;
    struct weft_fsdp2_unit *units;       /* in order of first use */
    struct weft_fsdp2_list root_forward; /* gathers before the first unit */
    int32_t most_inputs; /* inputs of reductions that are held at once, at least 1 */
    int32_t parameter_bytes, gradient_bytes; /* of an element; gradients as they are reduced */
    int32_t n_events;
    struct weft_fsdp2_event *events; /* of one micro-step, in FSDP2's order */
    /* A sentence for each difference between FSDP2 and the plan. */
    int32_t n_sentences;
    const char **sentences;
};

/* WEFT_E_DATA for a plan with a unit that is not of whole layers. The caller destroys it before
 * the plan. */
WEFT_MUST_USE enum weft_status weft_fsdp2_create(const struct weft_plan *plan, const char *source,
                                                 struct weft_fsdp2 **out, struct weft_error *err);
/* Moves to the next module of a unit, in forward order; false after the last one. A layer of a
 * model of Hugging Face has the modules of that model. Others are named as their layers. */
bool weft_fsdp2_next_module(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_unit *unit,
                            struct weft_fsdp2_module *module);

void weft_fsdp2_destroy(struct weft_fsdp2 *fsdp2);

/* True if some layer recomputes. */
bool weft_fsdp2_recomputes(const struct weft_fsdp2 *fsdp2);
/* True if some unit is reduced late: the training loop then calls finish before it clips. */
bool weft_fsdp2_finishes(const struct weft_fsdp2 *fsdp2);

extern const struct weft_key_table weft_fsdp2_keys;
/* Puts a document of `format` "weft-export" into an answer: its head, all of it, and the members
 * "modules" of a unit, "order" and "not_expressed". `tested` NULL: it has none. */
void weft_export_put_head(const struct weft_plan *plan, const char *target, const char *tested,
                          struct weft_answer *out);
void weft_fsdp2_put(const struct weft_fsdp2 *fsdp2, struct weft_answer *out);
void weft_fsdp2_put_modules(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_unit *unit,
                            struct weft_answer *out);
void weft_fsdp2_put_order(const struct weft_fsdp2 *fsdp2, struct weft_answer *out);
void weft_fsdp2_put_sentences(const struct weft_fsdp2 *fsdp2, struct weft_answer *out);

/* The same as Python, fewer than 80 lines, that needs PyTorch alone. */
void weft_fsdp2_snippet(const struct weft_fsdp2 *fsdp2, struct weft_text *out);

#endif
