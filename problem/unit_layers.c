/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/unit_layers.h"

#include <string.h>

enum { MOST_LAYERS = 1 << 20 };

const struct weft_unit_layers *weft_problem_unit_layers(const struct weft_problem *problem,
                                                        int32_t unit)
{
    const bool is_known =
        problem->names.unit_layers != NULL && !problem->decisions[unit].is_of_layer;
    return is_known ? &problem->names.unit_layers[unit] : NULL;
}

bool weft_problem_is_fused(const struct weft_problem *problem, int32_t unit)
{
    const struct weft_unit_layers *layers = weft_problem_unit_layers(problem, unit);
    return layers != NULL && layers->n_tied == 0 && layers->last > layers->first;
}

/* Whether a layer owns a tensor of the unit. */
static bool owns_part(const struct weft_model *model, const struct weft_unit *unit, int32_t layer)
{
    for (int32_t i = 0; i < unit->n_tensors; i++)
        if (model->tensors[unit->tensors[i]].layer == layer) return true;
    return false;
}

static enum weft_status fill_unit(struct weft_problem *problem, const struct weft_model *model,
                                  const struct weft_unit *unit, struct weft_unit_layers *out,
                                  struct weft_error *err)
{
    bool is_tied = unit->shares;
    out->first = unit->layers[0];
    out->last = unit->layers[unit->n_layers - 1];
    for (int32_t i = 0; i < unit->n_layers; i++)
        is_tied |= !owns_part(model, unit, unit->layers[i]);
    if (!is_tied) return WEFT_OK;
    out->tied = weft_pool_array(&problem->pool, (size_t)unit->n_layers, sizeof *out->tied);
    if (out->tied == NULL) return weft_fail_memory(err, "problem");
    out->n_tied = unit->n_layers;
    memcpy(out->tied, unit->layers, (size_t)unit->n_layers * sizeof *out->tied);
    return WEFT_OK;
}

enum weft_status weft_problem_name_layers(struct weft_problem *problem,
                                          const struct weft_model *model,
                                          const struct weft_shards *shards, struct weft_error *err)
{
    struct weft_pool *pool = &problem->pool;
    problem->names.unit_layers =
        weft_pool_array(pool, (size_t)shards->n_units, sizeof *problem->names.unit_layers);
    if (problem->names.unit_layers == NULL) return weft_fail_memory(err, "problem");
    for (int32_t u = 0; u < shards->n_units; u++)
        WEFT_TRY(fill_unit(problem, model, &shards->units[u], &problem->names.unit_layers[u], err));
    if (model->modules == NULL) return WEFT_OK;
    problem->names.modules =
        weft_pool_array(pool, (size_t)model->n_layers, sizeof *problem->names.modules);
    if (problem->names.modules == NULL) return weft_fail_memory(err, "problem");
    problem->names.n_modules = model->n_layers;
    for (int32_t l = 0; l < model->n_layers; l++) {
        problem->names.modules[l] = weft_pool_string(pool, model->modules[l]);
        if (problem->names.modules[l] == NULL) return weft_fail_memory(err, "problem");
    }
    return WEFT_OK;
}

void weft_unit_layers_write(const struct weft_problem *problem, int32_t unit,
                            struct weft_json_writer *writer)
{
    const struct weft_unit_layers *layers = weft_problem_unit_layers(problem, unit);
    if (layers == NULL) return;
    weft_json_key(writer, layers->n_tied > 0 ? "tied_layers" : "layers");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < layers->n_tied; i++)
        weft_json_add_integer(writer, layers->tied[i]);
    if (layers->n_tied == 0) weft_json_add_integer(writer, layers->first);
    if (layers->n_tied == 0) weft_json_add_integer(writer, layers->last);
    weft_json_end_array(writer);
}

void weft_problem_write_modules(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    if (problem->names.n_modules == 0) return;
    weft_json_key(writer, "modules");
    weft_json_begin_array(writer);
    for (int32_t l = 0; l < problem->names.n_modules; l++)
        weft_json_add_string(writer, problem->names.modules[l]);
    weft_json_end_array(writer);
}

/* Reads increasing layers. Of a range the last may be the first. */
static enum weft_status read_layers(const struct weft_json_value *list, bool is_range,
                                    int32_t *layers, const char *where, struct weft_error *err)
{
    int64_t before = -1, layer = 0;
    int32_t n = 0;
    for (const struct weft_json_value *at = weft_json_first(list); at; at = weft_json_next(at)) {
        const bool increases = weft_json_integer(at, &layer) &&
                               (is_range && n == 1 ? layer >= before : layer > before);
        if (!increases || layer > MOST_LAYERS)
            return weft_fail(err, WEFT_E_DATA, "%s: its layers are no increasing numbers", where);
        layers[n++] = (int32_t)layer;
        before = layer;
    }
    return WEFT_OK;
}

/* Whether an earlier unit was read. Decisions of layers have no such keys. */
static bool has_unit_before(const struct weft_problem *problem, int32_t unit)
{
    for (int32_t u = 0; u < unit; u++)
        if (!problem->decisions[u].is_of_layer) return true;
    return false;
}

enum weft_status weft_unit_layers_read(struct weft_problem *problem, int32_t unit,
                                       const struct weft_json_value *object, const char *where,
                                       struct weft_error *err)
{
    const struct weft_json_value *range = weft_json_member(object, "layers");
    const struct weft_json_value *tied = weft_json_member(object, "tied_layers");
    const struct weft_json_value *list = range ? range : tied;
    const size_t n = list == NULL ? 0 : weft_json_count(list);
    if (problem->decisions[unit].is_of_layer) return WEFT_OK;
    if (has_unit_before(problem, unit) && (list != NULL) != (problem->names.unit_layers != NULL))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: all units have layers or tied_layers, or none has: plan again",
                         where);
    if (list == NULL) return WEFT_OK;
    if (weft_json_kind(list) != WEFT_JSON_ARRAY || n == 0 || (range != NULL && n != 2))
        return weft_fail(err, WEFT_E_DATA, "%s: layers are [first, last], or tied_layers a list",
                         where);
    if (problem->names.unit_layers == NULL)
        problem->names.unit_layers = weft_pool_array(&problem->pool, (size_t)problem->n_decisions,
                                                     sizeof *problem->names.unit_layers);
    int32_t *layers = weft_pool_array(&problem->pool, n, sizeof *layers);
    if (problem->names.unit_layers == NULL || layers == NULL)
        return weft_fail_memory(err, "problem");
    WEFT_TRY(read_layers(list, range != NULL, layers, where, err));
    problem->names.unit_layers[unit] = (struct weft_unit_layers){.first = layers[0],
                                                                 .last = layers[n - 1],
                                                                 .n_tied = range ? 0 : (int32_t)n,
                                                                 .tied = range ? NULL : layers};
    return WEFT_OK;
}

/* Whether a text is names of modules, "a.b,c". */
static bool names_modules(const char *text)
{
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    for (;; text++) {
        const size_t length = strspn(text, characters);
        if (length == 0) return false;
        text += length;
        if (*text != ',') return *text == '\0';
    }
}

enum weft_status weft_problem_read_modules(struct weft_problem *problem,
                                           const struct weft_json_value *object, const char *where,
                                           struct weft_error *err)
{
    const struct weft_json_value *list = weft_json_member(object, "modules");
    if (list == NULL) return WEFT_OK;
    if (weft_json_kind(list) != WEFT_JSON_ARRAY)
        return weft_fail(err, WEFT_E_DATA, "%s.modules: a list of names of modules", where);
    const size_t n = weft_json_count(list);
    const char *name = NULL;
    problem->names.modules = weft_pool_array(&problem->pool, n, sizeof *problem->names.modules);
    if (problem->names.modules == NULL) return weft_fail_memory(err, "problem");
    for (const struct weft_json_value *at = weft_json_first(list); at; at = weft_json_next(at)) {
        if (!weft_json_string(at, &name) || !names_modules(name))
            return weft_fail(err, WEFT_E_DATA, "%s.modules[%d]: no names of modules", where,
                             problem->names.n_modules);
        problem->names.modules[problem->names.n_modules] = weft_pool_string(&problem->pool, name);
        if (problem->names.modules[problem->names.n_modules++] == NULL)
            return weft_fail_memory(err, "problem");
    }
    return WEFT_OK;
}
