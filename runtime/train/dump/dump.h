/* SPDX-License-Identifier: Apache-2.0 */
/* A dump writes tensors of chosen layers and steps of a replay as .npy, in f32: values that a
 * forward leaves, under their names in the recipe (layers/recipe/recipe.h), gradients of a group
 * before any sum, and updates of parameters. One rank computes the whole step. Files:
 *
 *     step-7.micro-2.h.3.attended.npy                activation of micro-step 2, from 0
 *     step-7.group-1.h.3.mlp.up.weight.gradient.npy  part of the step's mean gradient
 *     step-7.h.3.mlp.up.weight.update.npy            parameter after the step minus before it */
#ifndef WEFT_RUNTIME_TRAIN_DUMP_DUMP_H
#define WEFT_RUNTIME_TRAIN_DUMP_DUMP_H

#include "base/status.h"
#include "runtime/exec/exec.h"
#include "spec/model.h"

struct weft_dump_options {
    const struct weft_model *model;
    const char *layers;    /* names with commas, after "layer:" */
    const char *directory; /* made if it is not there */
    int64_t first_step;    /* steps from here on are written */
};

struct weft_dump;

/* Checks "layer:NAME,NAME" against the model. WEFT_E_USAGE names a layer that is not there, and the
 * nearest one. */
WEFT_MUST_USE enum weft_status weft_dump_check(const struct weft_model *model, const char *layers,
                                               struct weft_error *err);

/* Strings and the model must outlive it. WEFT_E_CREATE if the directory cannot be made. */
WEFT_MUST_USE enum weft_status weft_dump_create(const struct weft_dump_options *options,
                                                struct weft_dump **out, struct weft_error *err);
void weft_dump_destroy(struct weft_dump *dump); /* accepts NULL */

/* For weft_exec_options.on_layer: queues copies of a chosen layer's results. */
void weft_dump_look(void *dump, const struct weft_exec_event *event);

/* Drops the copies of a step that is done again. */
void weft_dump_forget(struct weft_dump *dump);

/* Around a step: reads the parameters before it, and writes all files of it. Both settle. */
WEFT_MUST_USE enum weft_status weft_dump_before(struct weft_dump *dump, struct weft_exec *exec,
                                                int64_t step, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_dump_after(struct weft_dump *dump, struct weft_exec *exec,
                                               int64_t step, struct weft_error *err);

#endif
