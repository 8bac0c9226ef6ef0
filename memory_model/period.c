#include "memory_model/period.h"

#include <stdlib.h>

const char *weft_slot_kind_name(enum weft_slot_kind kind)
{
    static const char *const names[WEFT_SLOT_KIND_COUNT] = {
        [WEFT_SLOT_UPDATE] = "update",   [WEFT_SLOT_FILL] = "fill",
        [WEFT_SLOT_FORWARD] = "forward", [WEFT_SLOT_BACKWARD] = "backward",
        [WEFT_SLOT_DRAIN] = "drain",     [WEFT_SLOT_NORM] = "norm",
    };
    return names[kind];
}

/* The arrays of a period while they are being written. */
struct draft {
    struct weft_pool *pool;
    int32_t n_slots;
    struct weft_slot *slots;
    int32_t *update, *first_gradient, *last_gradient, *n_uses;
    const int32_t **uses;
    int32_t *forward, *backward;
};

static int32_t append(struct draft *draft, enum weft_slot_kind kind, int32_t index)
{
    draft->slots[draft->n_slots] = (struct weft_slot){.kind = kind, .index = index};
    return draft->n_slots++;
}

static enum weft_status list_uses(struct draft *draft, const struct weft_shards *shards, int32_t u,
                                  struct weft_error *err)
{
    const struct weft_unit *unit = &shards->units[u];
    int32_t *uses = weft_pool_array(draft->pool, 2 * (size_t)unit->n_layers, sizeof *uses);
    if (uses == NULL) return weft_fail_memory(err, "the period");
    int32_t n = 0;
    for (int32_t i = 0; i < unit->n_layers; i++)
        uses[n++] = draft->forward[unit->layers[i]];
    for (int32_t i = unit->n_layers - 1; i >= 0; i--) {
        if (unit->reads_in_backward[i]) uses[n++] = draft->backward[unit->layers[i]];
    }
    draft->uses[u] = uses;
    draft->n_uses[u] = n;
    /* Gradients of a unit come in reverse: the last layer's backward is the first to add to it. */
    draft->first_gradient[u] =
        unit->trainable ? draft->backward[unit->layers[unit->n_layers - 1]] : -1;
    draft->last_gradient[u] = unit->trainable ? draft->backward[unit->layers[0]] : -1;
    return WEFT_OK;
}

static enum weft_status fill(struct weft_period *period, const struct weft_model *model,
                             const struct weft_shards *shards, size_t most_slots,
                             struct weft_error *err)
{
    size_t n_units = (size_t)shards->n_units, n_layers = (size_t)model->n_layers;
    struct draft draft = {.pool = &period->pool};
    draft.slots = weft_pool_array(draft.pool, most_slots, sizeof *draft.slots);
    draft.update = weft_pool_array(draft.pool, n_units, sizeof *draft.update);
    draft.first_gradient = weft_pool_array(draft.pool, n_units, sizeof *draft.first_gradient);
    draft.last_gradient = weft_pool_array(draft.pool, n_units, sizeof *draft.last_gradient);
    draft.n_uses = weft_pool_array(draft.pool, n_units, sizeof *draft.n_uses);
    draft.uses = weft_pool_array(draft.pool, n_units, sizeof *draft.uses);
    draft.forward = weft_pool_array(draft.pool, n_layers, sizeof *draft.forward);
    draft.backward = weft_pool_array(draft.pool, n_layers, sizeof *draft.backward);
    if (draft.slots == NULL || draft.update == NULL || draft.first_gradient == NULL ||
        draft.last_gradient == NULL || draft.n_uses == NULL || draft.uses == NULL ||
        draft.forward == NULL || draft.backward == NULL) {
        return weft_fail_memory(err, "the period");
    }
    for (int32_t u = 0; u < shards->n_units; u++)
        draft.update[u] = shards->units[u].trainable ? append(&draft, WEFT_SLOT_UPDATE, u) : -1;
    period->fill = append(&draft, WEFT_SLOT_FILL, -1);
    for (int32_t l = 0; l < model->n_layers; l++)
        draft.forward[l] = append(&draft, WEFT_SLOT_FORWARD, l);
    for (int32_t l = model->n_layers - 1; l >= 0; l--)
        draft.backward[l] = append(&draft, WEFT_SLOT_BACKWARD, l);
    period->drain = append(&draft, WEFT_SLOT_DRAIN, -1);
    period->norm = append(&draft, WEFT_SLOT_NORM, -1);
    for (int32_t u = 0; u < shards->n_units; u++)
        WEFT_TRY(list_uses(&draft, shards, u, err));
    period->n_slots = draft.n_slots;
    period->slots = draft.slots;
    period->n_units = shards->n_units;
    period->update = draft.update;
    period->n_uses = draft.n_uses;
    period->uses = draft.uses;
    period->first_gradient = draft.first_gradient;
    period->last_gradient = draft.last_gradient;
    period->forward = draft.forward;
    period->backward = draft.backward;
    return WEFT_OK;
}

enum weft_status weft_period_create(const struct weft_model *model,
                                    const struct weft_shards *shards, struct weft_period **out,
                                    struct weft_error *err)
{
    int64_t most_slots = (int64_t)shards->n_units + 2 * (int64_t)model->n_layers + 3;
    if (most_slots > INT32_MAX) {
        return weft_fail(err, WEFT_E_DATA, "the model has %d layers: too many to number the slots",
                         (int)model->n_layers);
    }
    struct weft_period *period = calloc(1, sizeof *period);
    if (period == NULL) return weft_fail_memory(err, "the period");
    enum weft_status status = fill(period, model, shards, (size_t)most_slots, err);
    if (status != WEFT_OK) {
        weft_period_destroy(period);
        return status;
    }
    *out = period;
    return WEFT_OK;
}

void weft_period_destroy(struct weft_period *period)
{
    if (period == NULL) return;
    weft_pool_finish(&period->pool);
    free(period);
}
