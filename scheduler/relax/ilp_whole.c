/* SPDX-License-Identifier: Apache-2.0 */
/* Whole rows of the integer program: memory rows that count bytes in whole steps (proof/prices.h).
 * The relaxation holds parts of blocks and so fills a slot's room to the byte. These rows prevent
 * that if it matters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/relax/ilp_build.h"

/* Steps that are tried in a slot; the largest first. */
enum { MOST_STEPS = 64 };

/* A search for whole rows that a point exceeds. */
struct separation {
    struct weft_ilp_build build; /* of one row at a time */
    const struct weft_dual *dual;
    const double *x;
    const uint8_t *reference; /* [n_decisions] */
    const int32_t *relies;    /* [n_groups]: counts that rows of the reference rely on, or -1 */
    const uint8_t *uses;      /* [n_groups]: true if rows rely on the group's count */
    struct weft_usual *usual; /* [n_decisions]: the amount that each decision is compared with */
    int64_t *steps;           /* [n_items + n_strategies]: sizes that a slot suggests */
    int32_t n_added;
};

/* The count of a unit of the class's A. If items share channel time, it is the least of their
 * counts. */
static double unit_count(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                         const struct weft_whole_row *row)
{
    double least = INFINITY;
    for (int32_t k = 0; k < of->n_items; k++) {
        const struct weft_problem_item *it = &ilp->table->problem->items[of->items[k]];
        double count = weft_ilp_bytes_units(ilp, weft_whole_count(row, it->item.stair_bytes));
        if (of->counts) return count;
        count = ldexp(count / (double)it->block_ns, ilp->time_shift) * (1 - 1e-15);
        if (count < least) least = count;
    }
    return least;
}

/* Bytes that a strategy of a decision holds in the memory row beyond the usual amount. */
static int64_t more_bytes(const struct separation *of, int32_t decision, int32_t strategy,
                          int32_t row)
{
    const struct weft_digest *table = of->build.ilp->table;
    return weft_digest_fixed(table, decision, strategy, row) -
           weft_usual_bytes(&of->usual[decision], strategy);
}

/* Sums the row in `build`: bytes held in it, as the row counts them. */
static void sum_row(struct separation *of, const struct weft_whole_row *row)
{
    struct weft_ilp_build *build = &of->build;
    const struct weft_ilp *ilp = build->ilp;
    int32_t n_slots = ilp->table->n_slots, tier = row->row / n_slots, s = row->row % n_slots;
    for (int32_t u = 0; u < ilp->table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(ilp->table, u); p++) {
            int32_t z = ilp->z[weft_digest_at(ilp->table, u, p)];
            if (z < 0) continue;
            int64_t count = weft_whole_count(row, more_bytes(of, u, p, row->row));
            if (count != 0) weft_ilp_add_entry(build, z, weft_ilp_bytes_units(ilp, count));
        }
    }
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *class = &ilp->classes[c];
        if (s < class->first || s > class->last || class->unit_bytes == 0) continue;
        if (class->tier != tier) continue;
        double count = unit_count(ilp, class, row);
        if (count == 0) continue;
        if (class->gathers) {
            weft_ilp_add_held(build, class, s, count);
            weft_ilp_add_prefix(build, class, &class->due, s - 1, -count);
        } else {
            weft_ilp_add_prefix(build, class, &class->released, s, count);
            weft_ilp_add_held(build, class, s - 1, -count);
        }
    }
}

/* The value of the row in `build` at x, and the length of its vector; the row is empty again. */
static double take_row(struct separation *of, double *length)
{
    struct weft_ilp_build *build = &of->build;
    double value = 0, squares = 0;
    for (int32_t k = 0; k < build->n_touched; k++) {
        int32_t column = build->touched[k];
        value += build->row[column] * of->x[column];
        squares += build->row[column] * build->row[column];
        build->in_row[column] = false;
    }
    build->n_touched = 0;
    *length = sqrt(squares);
    return value;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static int32_t add_step(int64_t *steps, int32_t n, int64_t bytes)
{
    for (int32_t k = 0; k < n; k++)
        if (steps[k] == bytes) return n;
    steps[n] = bytes;
    return n + 1;
}

/* Lists the sizes of blocks and strategies' bytes that the memory row may hold whole, the largest
 * first. Returns their number. */
static int32_t list_steps(struct separation *of, int32_t row)
{
    const struct weft_ilp *ilp = of->build.ilp;
    const struct weft_digest *table = ilp->table;
    int32_t n = 0, tier = row / table->n_slots, slot = row % table->n_slots;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &table->problem->items[i].item;
        if (slot >= item->first && slot <= item->last && item->stair_bytes > 0 &&
            item->stair_tier == tier)
            n = add_step(of->steps, n, item->stair_bytes);
    }
    for (int32_t u = 0; u < table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(ilp->table, u); p++) {
            if (ilp->z[weft_digest_at(ilp->table, u, p)] < 0) continue;
            int64_t bytes = more_bytes(of, u, p, row);
            if (bytes != 0) n = add_step(of->steps, n, bytes > 0 ? bytes : -bytes);
        }
    }
    qsort(of->steps, (size_t)n, sizeof *of->steps, by_size);
    return n < MOST_STEPS ? n : MOST_STEPS;
}

/* Finds the whole row of the memory row that x exceeds most, in units of its length; false if it
 * exceeds none. Plain held bytes rule out steps at once: they must exceed the room's whole
 * steps. */
static bool find_row(struct separation *of, int32_t at, struct weft_whole_row *out)
{
    const struct weft_ilp *ilp = of->build.ilp;
    double length, most = 1e-6;
    int64_t room_bytes = weft_dual_compare(of->dual, at, of->reference, of->relies, of->usual);
    struct weft_whole_row plain = weft_whole_row(at, 1, room_bytes);
    sum_row(of, &plain);
    double held = take_row(of, &length);
    int32_t n = list_steps(of, at);
    bool found = false;
    for (int32_t k = 0; k < n; k++) {
        struct weft_whole_row row = weft_whole_row(at, of->steps[k], room_bytes);
        if (held <= weft_ilp_bytes_units(ilp, room_bytes - row.rest_bytes)) continue;
        sum_row(of, &row);
        double value = take_row(of, &length);
        double excess = value - weft_ilp_bytes_units(ilp, row.room_bytes);
        if (!(length > 0) || excess <= most * length) continue;
        most = excess / length;
        *out = row;
        found = true;
    }
    return found;
}

static bool has_row(const struct separation *of, const struct weft_whole_row *row)
{
    const struct weft_ilp *ilp = of->build.ilp;
    for (int32_t k = 0; k < ilp->n_whole; k++)
        if (ilp->whole[k].row == row->row && ilp->whole[k].step_bytes == row->step_bytes &&
            memcmp(ilp->references[k], of->reference, (size_t)ilp->table->n_decisions) == 0 &&
            memcmp(ilp->uses[k], of->uses, (size_t)ilp->n_groups) == 0)
            return true;
    return false;
}

/* Share of a decision that x gives to the strategies. *most: the one with the greatest share, -1 if
 * none may be chosen. */
static double share_of(const struct weft_ilp *ilp, const double *x, int32_t decision,
                       uint64_t strategies, int *most)
{
    double sum = 0, best = -1;
    *most = -1;
    for (int32_t p = 0; p < weft_digest_count(ilp->table, decision); p++) {
        int32_t z = ilp->z[weft_digest_at(ilp->table, decision, p)];
        if (z < 0 || ilp->lp.upper[z] == 0 || !(strategies >> p & 1u)) continue;
        sum += x[z];
        if (x[z] <= best) continue;
        best = x[z];
        *most = p;
    }
    return sum;
}

/* Gives a group's strategies to `n` of its decisions, the number known to have them. Decisions with
 * the greatest share of them in x come first. */
static void keep_count(const struct weft_ilp *ilp, const double *x, const struct weft_group *group,
                       int32_t n, uint8_t *reference)
{
    for (int32_t k = 0; k < group->n_decisions; k++) {
        int in, out;
        double share = share_of(ilp, x, group->decisions[k], group->strategies, &in);
        int32_t ahead = 0;
        (void)share_of(ilp, x, group->decisions[k], ~group->strategies, &out);
        for (int32_t j = 0; j < group->n_decisions; j++) {
            int other;
            double of = share_of(ilp, x, group->decisions[j], group->strategies, &other);
            ahead += of > share || (of == share && j < k);
        }
        int32_t strategy = ahead < n ? in : out;
        if (strategy >= 0) reference[group->decisions[k]] = (uint8_t)strategy;
    }
}

/* Adds the rows of one reference. */
static void separate_rows(struct separation *of, const uint8_t *reference, int32_t *relies,
                          uint8_t *uses)
{
    struct weft_ilp_build *build = &of->build;
    struct weft_ilp *ilp = build->ilp;
    weft_dual_rely(of->dual, reference, NULL, relies);
    for (int32_t g = 0; g < ilp->n_groups; g++)
        uses[g] = relies[g] >= 0;
    of->reference = reference;
    of->relies = relies;
    of->uses = uses;
    for (int32_t r = 0; !build->failed && r < ilp->table->n_rows; r++) {
        struct weft_whole_row row;
        if (ilp->memory_row[r] < 0 || ilp->n_whole == ilp->most_whole) continue;
        if (!find_row(of, r, &row) || has_row(of, &row)) continue;
        sum_row(of, &row);
        weft_ilp_end_row(build, -INFINITY, weft_ilp_bytes_units(ilp, row.room_bytes));
        if (build->failed) return;
        ilp->references[ilp->n_whole] = of->reference;
        ilp->uses[ilp->n_whole] = of->uses;
        ilp->whole[ilp->n_whole++] = row;
        ilp->lp.n_rows = build->n_rows;
        ilp->lp.n_entries = build->n_entries;
        of->n_added++;
    }
}

/* Opens the program to add rows. */
static struct weft_ilp_build open_program(struct weft_ilp *ilp, struct weft_pool *pool)
{
    const struct weft_lp *lp = &ilp->lp;
    size_t n_columns = (size_t)lp->n_columns;
    struct weft_ilp_build build = {.ilp = ilp,
                                   .n_columns = lp->n_columns,
                                   .most_columns = lp->n_columns,
                                   .n_rows = lp->n_rows,
                                   .most_rows = lp->n_rows + 1,
                                   .n_entries = lp->n_entries,
                                   .most_entries = lp->n_entries};
    build.row = weft_pool_array(pool, n_columns, sizeof *build.row);
    build.touched = weft_pool_array(pool, n_columns, sizeof *build.touched);
    build.in_row = weft_pool_array(pool, n_columns, sizeof *build.in_row);
    build.failed = !build.row || !build.touched || !build.in_row;
    return build;
}

enum weft_status weft_ilp_set_groups(struct weft_ilp *ilp, const struct weft_group *groups,
                                     int32_t n_groups, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct weft_ilp_build build = open_program(ilp, &pool);
    ilp->groups = groups;
    ilp->n_groups = n_groups;
    ilp->group_row = ilp->lp.n_rows;
    for (int32_t g = 0; g < n_groups && !build.failed; g++) {
        for (int32_t k = 0; k < groups[g].n_decisions; k++)
            for (int32_t p = 0; p < weft_digest_count(ilp->table, groups[g].decisions[k]); p++) {
                int32_t z = ilp->z[weft_digest_at(ilp->table, groups[g].decisions[k], p)];
                if (z >= 0 && groups[g].strategies >> p & 1u) weft_ilp_add_entry(&build, z, 1);
            }
        weft_ilp_end_row(&build, 0, groups[g].n_decisions);
    }
    ilp->lp.n_rows = build.n_rows;
    ilp->lp.n_entries = build.n_entries;
    weft_pool_finish(&pool);
    return build.failed ? weft_fail_memory(err, "rows of groups") : WEFT_OK;
}

enum weft_status weft_ilp_add_whole(struct weft_ilp *ilp, const struct weft_dual *dual,
                                    const double *x, int32_t *n_added, struct weft_error *err)
{
    struct weft_pool pool = {0};
    size_t n_decisions = (size_t)ilp->table->n_decisions;
    struct separation of = {.dual = dual, .x = x};
    of.build = open_program(ilp, &pool);
    of.steps = weft_pool_array(
        &pool, (size_t)ilp->table->n_items + (size_t)ilp->table->problem->n_strategies,
        sizeof *of.steps);
    of.usual = weft_pool_array(&pool, n_decisions, sizeof *of.usual);
    int32_t *own = weft_pool_array(&pool, n_decisions, sizeof *own);
    int32_t *relies = weft_pool_array(&pool, (size_t)ilp->n_groups + 1, sizeof *relies);
    uint8_t *uses = weft_pool_array(&ilp->pool, 2 * (size_t)ilp->n_groups + 1, sizeof *uses);
    uint8_t *references = weft_pool_array(&ilp->pool, 2 * n_decisions, sizeof *references);
    of.build.failed =
        of.build.failed || !of.steps || !of.usual || !own || !references || !relies || !uses;
    if (!of.build.failed) weft_ilp_strategies(ilp, x, own);
    for (size_t u = 0; !of.build.failed && u < n_decisions; u++) {
        references[u] = (uint8_t)ilp->table->leanest[u];
        references[n_decisions + u] = (uint8_t)own[u];
    }
    for (int32_t g = 0; g < ilp->n_groups && !of.build.failed; g++)
        if (dual->known[g] >= 0)
            keep_count(ilp, x, &ilp->groups[g], dual->known[g], references + n_decisions);
    if (!of.build.failed) separate_rows(&of, references, relies, uses);
    if (!of.build.failed && memcmp(references, references + n_decisions, n_decisions) != 0)
        separate_rows(&of, references + n_decisions, relies, uses + ilp->n_groups);
    *n_added = of.n_added;
    weft_pool_finish(&pool);
    return of.build.failed ? weft_fail_memory(err, "whole rows") : WEFT_OK;
}
