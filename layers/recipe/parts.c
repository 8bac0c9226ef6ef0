/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "layers/recipe/derive.h"

/* The step that a tensor of the layer belongs to. */
static const struct weft_walk_step *find_step(const struct weft_walk *walk, int32_t tensor)
{
    const struct weft_walk_step *step = walk->steps;
    while (tensor >= step->first_tensor + step->n_tensors)
        step++;
    return step;
}

/* Reads "attn.q:q attn.k:k": names, and the end of each part's rows. */
static enum weft_status cut_rows(struct weft_walk *walk, const struct weft_walk_step *step,
                                 const struct weft_layer_tensor *tensor,
                                 struct weft_tensor_part out[WEFT_PARTS], int32_t *n_parts,
                                 struct weft_error *err)
{
    const char *suffix = strrchr(tensor->name, '.'), *at = step->from->from;
    int64_t end = 0;
    int32_t n = 0;
    for (; *at != '\0'; n++) {
        const size_t length = strcspn(at, " "), name = strcspn(at, ":");
        const int64_t begin = end;
        int written = -1;
        if (n < WEFT_PARTS && name < length)
            written = snprintf(out[n].name, sizeof out[n].name, "%.*s%s", (int)name, at,
                               suffix != NULL ? suffix : "");
        if (written < 0 || (size_t)written >= sizeof out[n].name)
            return weft_step_refuse(walk, step, err,
                                    "\"from\" has up to %d parts, each a short name and \":end\"",
                                    WEFT_PARTS);
        WEFT_TRY(weft_walk_number(walk, step->index, at + name + 1, length - name - 1, &end, err));
        if (end <= begin || end > tensor->rows)
            return weft_step_refuse(walk, step, err, "\"from\" cuts rows %lld to %lld of %lld",
                                    (long long)begin, (long long)end, (long long)tensor->rows);
        out[n].rows = end - begin;
        at += length;
        at += strspn(at, " ");
    }
    if (end != tensor->rows)
        return weft_step_refuse(walk, step, err, "\"from\" ends at row %lld of %lld",
                                (long long)end, (long long)tensor->rows);
    *n_parts = n;
    return WEFT_OK;
}

enum weft_status weft_recipe_parts(const struct weft_layer *layer, int32_t index,
                                   struct weft_tensor_part out[WEFT_PARTS], int32_t *n_parts,
                                   struct weft_error *err)
{
    const struct weft_batch one = {.samples = 1, .seq_len = 1, .compute = WEFT_F32};
    struct weft_walk walk;
    WEFT_TRY(weft_walk_derive(layer, &one, WEFT_RECOMPUTE_NONE, &walk, err));
    const struct weft_walk_step *step = find_step(&walk, index);
    *n_parts = 0;
    if (step->from->from == NULL) return WEFT_OK;
    return cut_rows(&walk, step, &walk.tensors[index], out, n_parts, err);
}
