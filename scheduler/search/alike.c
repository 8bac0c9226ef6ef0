/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/alike.h"

#include <stdlib.h>

/* A combination of kinds. Its number has a digit for each class, the strategy of the leader. */
struct combination {
    int64_t step_ns; /* by the first rule */
    int32_t number;
};

struct alike {
    struct weft_search *search;
    const int32_t *class_of;
};

static int32_t count_of(const struct alike *alike, int32_t leader)
{
    return weft_digest_count(alike->search->table, leader);
}

/* Gives all decisions of a class the kind of the leader's strategy. */
static void set_class(const struct alike *alike, int32_t leader, int32_t strategy,
                      int32_t *strategies)
{
    const struct weft_problem *problem = alike->search->table->problem;
    const int32_t kind = problem->decisions[leader].strategies[strategy].kind;
    for (int32_t d = leader; d < problem->n_decisions; d++)
        if (alike->class_of[d] == leader)
            strategies[d] = weft_decision_of_kind(&problem->decisions[d], kind);
}

static void set_combination(const struct alike *alike, int32_t number, int32_t *strategies)
{
    for (int32_t d = 0; d < alike->search->table->n_decisions; d++) {
        if (alike->class_of[d] != d) continue;
        set_class(alike, d, number % count_of(alike, d), strategies);
        number /= count_of(alike, d);
    }
}

/* At most WEFT_ALIKE_MOST + 1. */
static int32_t count_combinations(const struct alike *alike)
{
    int64_t n = 1;
    for (int32_t d = 0; d < alike->search->table->n_decisions; d++) {
        if (alike->class_of[d] == d) n *= count_of(alike, d);
        if (n > WEFT_ALIKE_MOST) return WEFT_ALIKE_MOST + 1;
    }
    return (int32_t)n;
}

static int compare_combinations(const void *a, const void *b)
{
    const struct combination *x = a, *y = b;
    if (x->step_ns != y->step_ns) return x->step_ns < y->step_ns ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static enum weft_status try_all(const struct alike *alike, int32_t n, struct weft_error *err)
{
    struct weft_search *search = alike->search;
    struct combination *found = calloc((size_t)n, sizeof *found);
    int32_t n_found = 0;
    if (!found) return weft_fail_memory(err, "combinations of strategies");
    for (int32_t k = 0; k < n; k++) {
        set_combination(alike, k, search->other);
        if (!weft_search_fits(search, search->other)) continue;
        const int64_t ns =
            weft_list_place(search->list, search->other, weft_list_rules[0], NULL, NULL);
        if (ns >= 0) found[n_found++] = (struct combination){.step_ns = ns, .number = k};
        if (n_found > 0 && weft_search_is_spent(search)) break;
    }
    qsort(found, (size_t)n_found, sizeof *found, compare_combinations);
    for (int32_t k = 0; k < n_found; k++) {
        if (search->step_ns >= 0 && weft_search_is_spent(search)) break;
        set_combination(alike, found[k].number, search->other);
        weft_search_try(search, search->other);
    }
    free(found);
    return WEFT_OK;
}

/* Changes one class at a time. */
static void climb_classes(const struct alike *alike)
{
    struct weft_search *search = alike->search;
    const struct weft_digest *table = search->table;
    for (int32_t d = 0; d < table->n_decisions; d++)
        if (alike->class_of[d] == d) set_class(alike, d, table->leanest[d], search->other);
    int64_t now_ns = weft_search_try(search, search->other);
    for (bool changed = now_ns >= 0; changed;) {
        changed = false;
        for (int32_t d = 0; d < table->n_decisions; d++) {
            int32_t kept = search->other[d];
            for (int32_t p = 0; alike->class_of[d] == d && p < count_of(alike, d); p++) {
                if (weft_search_is_spent(search)) return;
                if (p == kept) continue;
                set_class(alike, d, p, search->other);
                const int64_t ns = weft_search_fits(search, search->other)
                                       ? weft_search_try(search, search->other)
                                       : -1;
                if (ns >= 0 && ns < now_ns) {
                    now_ns = ns;
                    kept = p;
                    changed = true;
                }
            }
            if (alike->class_of[d] == d) set_class(alike, d, kept, search->other);
        }
    }
}

enum weft_status weft_search_alike(struct weft_search *search, const int32_t *class_of,
                                   struct weft_error *err)
{
    const struct alike alike = {.search = search, .class_of = class_of};
    const int32_t n = count_combinations(&alike);
    if (n <= WEFT_ALIKE_MOST) return try_all(&alike, n, err);
    climb_classes(&alike);
    return WEFT_OK;
}
