/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/groups.h"

#include <stdlib.h>
#include <string.h>

/* True if the strategies differ in slots at most. */
static bool same_strategy(const struct weft_problem_strategy *a,
                          const struct weft_problem_strategy *b)
{
    if (a->kind != b->kind || a->n_holds != b->n_holds || a->n_times != b->n_times) return false;
    for (int32_t i = 0; i < a->n_times; i++)
        if (a->times[i].ns != b->times[i].ns) return false;
    for (int32_t i = 0; i < a->n_holds; i++)
        if (a->holds[i].category != b->holds[i].category || a->holds[i].bytes != b->holds[i].bytes)
            return false;
    return true;
}

static bool same_blocks(const struct weft_problem_item *a, const struct weft_problem_item *b)
{
    return a->item.kind == b->item.kind && a->item.gather == b->item.gather &&
           a->item.strategies == b->item.strategies && a->item.n_blocks == b->item.n_blocks &&
           a->item.stair_bytes == b->item.stair_bytes && a->block_ns == b->block_ns;
}

/* True if the decisions' items are alike. Items are in order of decision, and alike decisions have
 * them in the same order. */
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

static bool are_alike(const struct weft_digest *table, const int32_t *first_item,
                      const uint8_t *keeper, int32_t u, int32_t v)
{
    const struct weft_problem_decision *a = &table->problem->decisions[u],
                                       *b = &table->problem->decisions[v];
    if (a->n_strategies != b->n_strategies) return false;
    size_t at_u = weft_digest_at(table, u, 0), at_v = weft_digest_at(table, v, 0);
    if (keeper && memcmp(&keeper[at_u], &keeper[at_v], (size_t)a->n_strategies) != 0) return false;
    for (int32_t p = 0; p < a->n_strategies; p++)
        if (!same_strategy(&a->strategies[p], &b->strategies[p])) return false;
    return same_items(table, first_item, u, v);
}

enum weft_status weft_classes_make(const struct weft_digest *table, const uint8_t *keeper,
                                   int32_t *class_of, struct weft_error *err)
{
    int32_t *first_item = calloc((size_t)table->n_decisions + 1, sizeof *first_item);
    if (!first_item) return weft_fail_memory(err, "classes of decisions");
    for (int32_t i = 0; i < table->n_items; i++)
        first_item[table->problem->items[i].item.decision + 1]++;
    for (int32_t u = 0; u < table->n_decisions; u++)
        first_item[u + 1] += first_item[u];
    for (int32_t u = 0; u < table->n_decisions; u++) {
        class_of[u] = u;
        for (int32_t v = 0; v < u && class_of[u] == u; v++)
            if (class_of[v] == v && are_alike(table, first_item, keeper, u, v)) class_of[u] = v;
    }
    free(first_item);
    return WEFT_OK;
}

uint64_t weft_kept_by(const uint8_t *keeper, uint64_t strategies, int32_t strategy)
{
    uint64_t kept = 0;
    for (int32_t p = 0; p < WEFT_MOST_STRATEGIES && strategies >> p != 0; p++)
        if (strategies >> p & 1u && keeper[p] == strategy) kept |= UINT64_C(1) << p;
    return kept;
}

static bool add_class(const struct weft_digest *table, const uint8_t *keeper,
                      const int32_t *class_of, int32_t leader, struct weft_pool *pool,
                      struct weft_group *out, int32_t *n_out)
{
    uint64_t allowed = weft_decision_all(&table->problem->decisions[leader]);
    int32_t n = 0,
            *decisions = weft_pool_array(pool, (size_t)table->n_decisions, sizeof *decisions);
    if (!decisions) return false;
    for (int32_t u = leader; u < table->n_decisions; u++)
        if (class_of[u] == leader) decisions[n++] = u;
    for (int32_t p = 0; p < weft_digest_count(table, leader) && n > 1; p++) {
        uint64_t strategies = weft_kept_by(&keeper[weft_digest_at(table, leader, 0)], allowed, p);
        if (strategies != 0 && strategies != allowed)
            out[(*n_out)++] = (struct weft_group){strategies, n, decisions};
    }
    return true;
}

enum weft_status weft_groups_make(const struct weft_digest *table, const uint8_t *keeper,
                                  struct weft_pool *pool, struct weft_group **out, int32_t *n_out,
                                  struct weft_error *err)
{
    size_t n_decisions = (size_t)table->n_decisions;
    int32_t *class_of = calloc(n_decisions + 1, sizeof *class_of);
    struct weft_group *groups =
        weft_pool_array(pool, (size_t)table->problem->n_strategies, sizeof *groups);
    bool ok = class_of && groups && weft_classes_make(table, keeper, class_of, NULL) == WEFT_OK;
    *n_out = 0;
    for (int32_t u = 0; ok && u < table->n_decisions; u++)
        if (class_of[u] == u) ok = add_class(table, keeper, class_of, u, pool, groups, n_out);
    free(class_of);
    *out = groups;
    return ok ? WEFT_OK : weft_fail_memory(err, "groups of decisions");
}
