/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/layer_table.h"

#include <string.h>

#include "spec/config_tables.h"

/* A table that is being built. */
struct draft {
    struct weft_field *fields;
    size_t n, capacity;
};

static bool has_field(const struct draft *draft, const char *name)
{
    for (size_t i = 0; i < draft->n; i++)
        if (strcmp(draft->fields[i].name, name) == 0) return true;
    return false;
}

static void add_foreign(struct draft *draft, const struct weft_field *field)
{
    if (has_field(draft, field->name)) return;
    struct weft_field *to = &draft->fields[draft->n++];
    *to = *field;
    to->offset = offsetof(struct weft_layer_decoded, foreign);
    if (to->fallback == NULL) to->fallback = "null";
}

/* Lists all types as choices. NULL without memory. */
static const char *const *name_types(const struct weft_kinds *others, struct weft_pool *pool)
{
    size_t n = WEFT_KIND_COUNT + (others == NULL ? 0 : (size_t)others->n);
    const char **types = weft_pool_array(pool, n + 1, sizeof *types);
    for (size_t i = 0; types != NULL && i < n; i++)
        types[i] = i < WEFT_KIND_COUNT ? weft_kind_at((int32_t)i)->type
                                       : others->kinds[i - WEFT_KIND_COUNT]->type;
    return types;
}

static size_t count_keys(const struct weft_kinds *others)
{
    size_t n = weft_layer_table.n_fields;
    for (int32_t i = 0; i < WEFT_KIND_COUNT; i++)
        n += weft_kind_at(i)->n_keys;
    for (int32_t i = 0; others != NULL && i < others->n; i++)
        n += others->kinds[i]->n_keys;
    return n;
}

static bool begin_draft(struct draft *draft, const struct weft_kinds *others,
                        struct weft_pool *pool)
{
    const char *const *types = name_types(others, pool);
    draft->capacity = count_keys(others) + WEFT_LAYER_KEYS + 1;
    draft->fields = weft_pool_array(pool, draft->capacity, sizeof *draft->fields);
    if (types == NULL || draft->fields == NULL) return false;
    for (size_t i = 0; i < weft_layer_table.n_fields; i++) {
        struct weft_field *field = &draft->fields[draft->n++];
        *field = weft_layer_table.fields[i];
        if (field->kind == WEFT_FIELD_CHOICE) field->choices = types;
    }
    return true;
}

static const struct weft_field_table *end_draft(const struct draft *draft, const char *name,
                                                struct weft_pool *pool)
{
    struct weft_field_table *table = weft_pool_array(pool, 1, sizeof *table);
    if (table == NULL) return NULL;
    *table = weft_layer_table;
    table->name = name;
    table->fields = draft->fields;
    table->n_fields = draft->n;
    return table;
}

static void add_any_keys(struct draft *draft)
{
    struct weft_field field;
    for (size_t i = 0; weft_kind_any_key(i, &field); i++)
        add_foreign(draft, &field);
}

const struct weft_field_table *weft_layer_table_of(const struct weft_kind *kind,
                                                   const struct weft_kinds *others,
                                                   struct weft_pool *pool)
{
    struct draft draft = {0};
    if (!begin_draft(&draft, others, pool)) return NULL;
    for (size_t i = 0; kind != NULL && i < kind->n_keys; i++)
        draft.fields[draft.n++] = kind->keys[i];
    if (kind != NULL && kind->supplied != NULL) return end_draft(&draft, kind->type, pool);
    add_any_keys(&draft);
    return end_draft(&draft, weft_layer_table.name, pool);
}

const struct weft_field_table *weft_layer_table_of_all(const struct weft_kinds *others,
                                                       struct weft_pool *pool)
{
    struct draft draft = {0};
    if (!begin_draft(&draft, others, pool)) return NULL;
    add_any_keys(&draft);
    for (int32_t i = 0; others != NULL && i < others->n; i++)
        for (size_t k = 0; k < others->kinds[i]->n_keys; k++)
            add_foreign(&draft, &others->kinds[i]->keys[k]);
    return end_draft(&draft, weft_layer_table.name, pool);
}
