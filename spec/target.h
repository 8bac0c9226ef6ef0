/* SPDX-License-Identifier: Apache-2.0 */
/* A target is the runtime that a plan is for. Weft runs every plan of its own. Another runtime
 * restricts plans to the ones that it can run, and holds memory in its own way. Each rule of a
 * target is one field of its row: weighing, stages and plans read the row. */
#ifndef WEFT_SPEC_TARGET_H
#define WEFT_SPEC_TARGET_H

#include <stdbool.h>

enum weft_target_id {
    WEFT_FOR_WEFT,
    WEFT_FOR_FSDP2,
    WEFT_FOR_FSDP2_DEFAULT,
    WEFT_FOR_FSDP2_BLOCKING,
    WEFT_FOR_FSDP2_DEFAULT_BLOCKING,
    WEFT_TARGET_COUNT
};

struct weft_target {
    const char *name;      /* plan.for: "weft", "fsdp2", ... */
    const char *title;     /* in messages */
    bool is_foreign;       /* Weft's executor does not run its plans, and they have no program */
    const char *policies;  /* that it has, like plan.policies; NULL: all */
    bool offloads;         /* state and saved activations may be offloaded */
    bool recomputes;       /* whole layers may be recomputed */
    bool recomputes_parts; /* and selected parts of them */
    bool whole_layers;  /* a unit is a whole layer, or layers that share a tensor, in one block */
    bool updates_first; /* all updates come before the first gather of a step */
    bool regathers;     /* sdp releases after each backward and gathers in each forward */
    bool in_order; /* a slot begins with the reductions of gradients that the slot before it made,
                      then its own gathers, then gathers for later slots */
    bool flat_buffers; /* memory as FSDP2 holds it: memory_model/weigh_flat.c */
    bool drains;       /* the end of each backward waits for all reductions */
    bool finalizes;    /* all reductions may be launched at the end of backward, and several may be
                          under way */
    bool gathers_all;  /* every unit is gathered in backward: also one whose backward reads no
                          parameters, and the last one, right after its forward. FSDP2 does so
                          unless set_unshard_in_backward and reshard_after_forward say no */
    bool runs_ahead;   /* the host launches before compute reaches a hook, as on a GPU, and streams
                          wait for events alone: plan/events.h */
    enum weft_target_id blocking; /* the same rules, and each launch waits for compute */
};

struct weft_config;
/* The rules of plan.for. */
const struct weft_target *weft_config_target(const struct weft_config *config);

extern const struct weft_target weft_targets[WEFT_TARGET_COUNT];
/* Their names, with a NULL at the end. */
extern const char *const weft_target_names[WEFT_TARGET_COUNT + 1];

#endif
