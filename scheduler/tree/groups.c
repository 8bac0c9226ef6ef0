#include "scheduler/tree/groups.h"

#include <stdlib.h>
#include <string.h>

static bool same_holds(const struct weft_problem_unit *a, const struct weft_problem_unit *b, int p)
{
    if (a->n_holds[p] != b->n_holds[p]) return false;
    for (int32_t i = 0; i < a->n_holds[p]; i++)
        if (a->holds[p][i].category != b->holds[p][i].category ||
            a->holds[p][i].bytes != b->holds[p][i].bytes)
            return false;
    return true;
}

static bool same_blocks(const struct weft_problem_item *a, const struct weft_problem_item *b)
{
    return a->item.kind == b->item.kind && a->item.gather == b->item.gather &&
           a->item.policies == b->item.policies && a->item.n_blocks == b->item.n_blocks &&
           a->item.stair_bytes == b->item.stair_bytes && a->block_ns == b->block_ns;
}

/* Items stand in order of unit, so those of alike units stand in the same order. */
static bool same_items(const struct weft_digest *table, const int32_t *first_item, int32_t u,
                       int32_t v)
{
    int32_t n = first_item[u + 1] - first_item[u];
    if (n != first_item[v + 1] - first_item[v]) return false;
    for (int32_t k = 0; k < n; k++)
        if (!same_blocks(&table->problem->items[first_item[u] + k],
                         &table->problem->items[first_item[v] + k]))
            return false;
    return true;
}

static bool alike(const struct weft_digest *table, const int32_t *first_item, const uint8_t *keeper,
                  int32_t u, int32_t v)
{
    const struct weft_problem_unit *a = &table->problem->units[u], *b = &table->problem->units[v];
    if (a->policies != b->policies ||
        memcmp(&keeper[u * WEFT_POLICY_COUNT], &keeper[v * WEFT_POLICY_COUNT], WEFT_POLICY_COUNT) !=
            0)
        return false;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        if (a->policies >> p & 1u && (a->update_ns[p] != b->update_ns[p] || !same_holds(a, b, p)))
            return false;
    return same_items(table, first_item, u, v);
}

/* The class of each unit: the first unit that it is alike. */
static bool classify(const struct weft_digest *table, const uint8_t *keeper, int32_t *class_of)
{
    int32_t *first_item = calloc((size_t)table->n_units + 1, sizeof *first_item);
    if (!first_item) return false;
    for (int32_t i = 0; i < table->n_items; i++)
        first_item[table->problem->items[i].item.unit + 1]++;
    for (int32_t u = 0; u < table->n_units; u++)
        first_item[u + 1] += first_item[u];
    for (int32_t u = 0; u < table->n_units; u++) {
        class_of[u] = u;
        for (int32_t v = 0; v < u && class_of[u] == u; v++)
            if (class_of[v] == v && alike(table, first_item, keeper, u, v)) class_of[u] = v;
    }
    free(first_item);
    return true;
}

uint32_t weft_kept_by(const uint8_t *keeper, uint32_t policies, int policy)
{
    uint32_t kept = 0;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        if (policies >> p & 1u && keeper[p] == policy) kept |= 1u << p;
    return kept;
}

static bool add_class(const struct weft_digest *table, const uint8_t *keeper,
                      const int32_t *class_of, int32_t leader, struct weft_pool *pool,
                      struct weft_group *out, int32_t *n_out)
{
    uint32_t allowed = table->problem->units[leader].policies;
    int32_t n = 0, *units = weft_pool_array(pool, (size_t)table->n_units, sizeof *units);
    if (!units) return false;
    for (int32_t u = leader; u < table->n_units; u++)
        if (class_of[u] == leader) units[n++] = u;
    for (int p = 0; p < WEFT_POLICY_COUNT && n > 1; p++) {
        uint32_t policies = weft_kept_by(&keeper[leader * WEFT_POLICY_COUNT], allowed, p);
        if (policies != 0 && policies != allowed)
            out[(*n_out)++] = (struct weft_group){policies, n, units};
    }
    return true;
}

enum weft_status weft_groups_make(const struct weft_digest *table, const uint8_t *keeper,
                                  struct weft_pool *pool, struct weft_group **out, int32_t *n_out,
                                  struct weft_error *err)
{
    size_t n_units = (size_t)table->n_units;
    int32_t *class_of = calloc(n_units + 1, sizeof *class_of);
    struct weft_group *groups = weft_pool_array(pool, n_units * WEFT_POLICY_COUNT, sizeof *groups);
    bool ok = class_of && groups && classify(table, keeper, class_of);
    *n_out = 0;
    for (int32_t u = 0; ok && u < table->n_units; u++)
        if (class_of[u] == u) ok = add_class(table, keeper, class_of, u, pool, groups, n_out);
    free(class_of);
    *out = groups;
    return ok ? WEFT_OK : weft_fail_memory(err, "groups of units");
}
