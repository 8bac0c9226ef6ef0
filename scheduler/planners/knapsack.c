/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/knapsack.h"

#include <stdlib.h>
#include <string.h>

#include "problem/decision.h"

/* A partial choice. `parent` is its index among the labels of the group before. */
struct label {
    int64_t cost, weight[WEFT_KNAPSACK_WEIGHTS];
    int32_t parent, choice;
};

/* The part of a label that stays once the next group has its own. */
struct step {
    uint16_t parent;
    uint8_t choice;
};
_Static_assert(WEFT_KNAPSACK_MOST_LABELS <= UINT16_MAX && WEFT_MOST_STRATEGIES <= UINT8_MAX,
               "a step has every parent and choice");

struct run {
    const struct weft_knapsack_option *options;
    int32_t n_options;
    struct label *from; /* of the group before */
    size_t n_from, from_room;
    struct label *labels, *merged; /* [room]: the group's labels, and scratch */
    size_t n_labels, room;
    struct step *steps; /* of all groups, one after another */
    size_t n_steps, steps_room;
    size_t *ends; /* [n_options]: ends of the sorted runs of the group's labels */
    int64_t (*stairs)[WEFT_KNAPSACK_WEIGHTS]; /* the first weight increases, the second decreases */
    bool exact;
};

static int compare_labels(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    for (int r = 0; r < WEFT_KNAPSACK_WEIGHTS; r++)
        if (x->weight[r] != y->weight[r]) return x->weight[r] < y->weight[r] ? -1 : 1;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return x->choice < y->choice ? -1 : x->choice > y->choice;
}

/* Adds a label to the stairs of labels that cost no more. False if one of these weighs no more in
 * both weights. */
static bool climb_stairs(struct run *run, size_t *n, const struct label *label)
{
    size_t low = 0, high = *n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->stairs[middle][0] <= label->weight[0]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0 && run->stairs[low - 1][1] <= label->weight[1]) return false;
    size_t begin = low > 0 && run->stairs[low - 1][0] == label->weight[0] ? low - 1 : low;
    size_t end = begin;
    while (end < *n && run->stairs[end][1] >= label->weight[1])
        end++;
    memmove(run->stairs + begin + 1, run->stairs + end, (*n - end) * sizeof *run->stairs);
    memcpy(run->stairs[begin], label->weight, sizeof *run->stairs);
    *n += begin + 1;
    *n -= end;
    return true;
}

/* Merges the sorted labels begin .. middle - 1 and middle .. end - 1. */
static void merge_two(struct run *run, size_t begin, size_t middle, size_t end)
{
    struct label *labels = run->labels, *merged = run->merged;
    size_t a = begin, b = middle, n = 0;
    while (a < middle && b < end)
        merged[n++] = compare_labels(&labels[a], &labels[b]) < 0 ? labels[a++] : labels[b++];
    /* The rest of the second part is in place. */
    while (a < middle)
        merged[n++] = labels[a++];
    memcpy(labels + begin, merged, n * sizeof *labels);
}

/* Sorts the labels. Those of each option are sorted: the labels they extend are. */
static void merge_options(struct run *run)
{
    for (int32_t n = run->n_options; n > 1; n = (n + 1) / 2) {
        size_t from = 0;
        for (int32_t k = 0; k < n; k += 2) {
            const size_t end = run->ends[k + 1 < n ? k + 1 : k];
            if (k + 1 < n) merge_two(run, from, run->ends[k], end);
            run->ends[k / 2] = from = end;
        }
    }
}

/* Keeps the labels that no other beats, the cheapest first. */
static void prune_labels(struct run *run)
{
    size_t n_stairs = 0, kept = 0;
    merge_options(run);
    for (size_t i = 0; i < run->n_labels; i++)
        if (climb_stairs(run, &n_stairs, &run->labels[i])) run->labels[kept++] = run->labels[i];
    run->n_labels = kept;
    while (run->n_labels > WEFT_KNAPSACK_MOST_LABELS) {
        run->exact = false;
        kept = 0;
        for (size_t i = 0; i < run->n_labels; i++)
            if (i % 2 == 0 || i + 1 == run->n_labels) run->labels[kept++] = run->labels[i];
        run->n_labels = kept;
    }
}

/* Returns the array with room for `most` entries. NULL without memory: the array is as it was. */
static void *with_room(void *array, size_t entry_bytes, size_t most, size_t *room)
{
    if (most <= *room) return array;
    void *grown = realloc(array, 2 * most * entry_bytes);
    if (grown) *room = 2 * most;
    return grown;
}

/* Combines every label with every option of the group, if it still fits with `rest`, the least
 * weights of later groups. */
static void extend_labels(struct run *run, int32_t group, const int64_t *capacity,
                          const int64_t *rest)
{
    run->n_labels = 0;
    for (int32_t o = 0; o < run->n_options; o++) {
        const struct weft_knapsack_option *option =
            &run->options[(size_t)group * (size_t)run->n_options + (size_t)o];
        for (size_t i = 0; i < run->n_from; i++) {
            struct label label = {
                .cost = run->from[i].cost + option->cost, .parent = (int32_t)i, .choice = o};
            bool fits = option->allowed;
            for (int r = 0; r < WEFT_KNAPSACK_WEIGHTS; r++) {
                label.weight[r] = run->from[i].weight[r] + option->weight[r];
                fits &= label.weight[r] + rest[r] <= capacity[r];
            }
            if (fits) run->labels[run->n_labels++] = label;
        }
        run->ends[o] = run->n_labels;
    }
    prune_labels(run);
}

/* Makes the group's labels those to extend, and notes their steps. */
static bool take_labels(struct run *run)
{
    const size_t n = run->n_labels;
    struct step *steps = with_room(run->steps, sizeof *steps, run->n_steps + n, &run->steps_room);
    if (!steps) return false;
    run->steps = steps;
    struct label *from = with_room(run->from, sizeof *from, n, &run->from_room);
    if (!from) return false;
    run->from = from;
    for (size_t i = 0; i < n; i++)
        steps[run->n_steps++] =
            (struct step){(uint16_t)run->labels[i].parent, (uint8_t)run->labels[i].choice};
    memcpy(from, run->labels, n * sizeof *from);
    run->n_from = n;
    return true;
}

/* Fills rest[g][r]: the least weight of group g and all later groups. */
static void fill_rest(const struct run *run, int32_t n_groups,
                      int64_t (*rest)[WEFT_KNAPSACK_WEIGHTS])
{
    memset(rest[n_groups], 0, sizeof rest[n_groups]);
    for (int32_t g = n_groups - 1; g >= 0; g--) {
        for (int r = 0; r < WEFT_KNAPSACK_WEIGHTS; r++) {
            int64_t least = INT64_MAX;
            for (int32_t o = 0; o < run->n_options; o++) {
                const struct weft_knapsack_option *option =
                    &run->options[(size_t)g * (size_t)run->n_options + (size_t)o];
                if (option->allowed && option->weight[r] < least) least = option->weight[r];
            }
            rest[g][r] = rest[g + 1][r] + (least == INT64_MAX ? 0 : least);
        }
    }
}

/* Follows the steps back from the cheapest label of the last group. first [n_groups] is the first
 * step of each. */
static void follow_steps(const struct run *run, int32_t n_groups, const size_t *first,
                         int32_t *choice)
{
    size_t at = 0;
    for (int32_t g = n_groups - 1; g >= 0; g--) {
        const struct step *step = &run->steps[first[g] + at];
        choice[g] = step->choice;
        at = step->parent;
    }
}

/* Makes room for the labels of the next group. */
static bool make_label_room(struct run *run)
{
    const size_t most = run->n_from * (size_t)run->n_options;
    size_t merged_room = run->room;
    struct label *merged = with_room(run->merged, sizeof *merged, most, &merged_room);
    if (!merged) return false;
    run->merged = merged;
    struct label *labels = with_room(run->labels, sizeof *labels, most, &run->room);
    if (labels) run->labels = labels;
    return labels != NULL;
}

static enum weft_status solve_groups(struct run *run, int32_t n_groups, const int64_t *capacity,
                                     int64_t (*rest)[WEFT_KNAPSACK_WEIGHTS], size_t *first,
                                     struct weft_work *work, struct weft_error *err)
{
    fill_rest(run, n_groups, rest);
    for (int32_t g = 0; g < n_groups; g++) {
        first[g] = run->n_steps;
        if (!make_label_room(run)) return weft_fail_memory(err, "a knapsack");
        extend_labels(run, g, capacity, rest[g + 1]);
        if (run->n_labels == 0) return WEFT_E_INFEASIBLE;
        if (!take_labels(run)) return weft_fail_memory(err, "a knapsack");
        weft_work_look(work);
        if (work && work->rang) return WEFT_E_INFEASIBLE;
    }
    return WEFT_OK;
}

enum weft_status weft_knapsack(const struct weft_knapsack_option *options, int32_t n_groups,
                               int32_t n_options, const int64_t capacity[WEFT_KNAPSACK_WEIGHTS],
                               int32_t *choice, bool *exact, struct weft_work *work,
                               struct weft_error *err)
{
    struct run run = {.options = options, .n_options = n_options, .n_from = 1, .exact = true};
    size_t n_stairs = ((size_t)WEFT_KNAPSACK_MOST_LABELS + 1) * (size_t)(n_options + 1);
    int64_t(*rest)[WEFT_KNAPSACK_WEIGHTS] = calloc((size_t)n_groups + 1, sizeof *rest);
    size_t *first = calloc((size_t)n_groups + 1, sizeof *first);
    run.from = calloc(1, sizeof *run.from);
    run.from_room = 1;
    run.stairs = malloc(n_stairs * sizeof *run.stairs);
    run.ends = calloc((size_t)n_options + 1, sizeof *run.ends);
    enum weft_status status = rest && first && run.from && run.stairs && run.ends
                                  ? solve_groups(&run, n_groups, capacity, rest, first, work, err)
                                  : weft_fail_memory(err, "a knapsack");
    if (status == WEFT_OK) follow_steps(&run, n_groups, first, choice);
    if (exact) *exact = run.exact;
    free(rest);
    free(first);
    free(run.from);
    free(run.labels);
    free(run.merged);
    free(run.steps);
    free(run.stairs);
    free(run.ends);
    return status;
}
