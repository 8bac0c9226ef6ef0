#include "scheduler/planners/knapsack.h"

#include <stdlib.h>
#include <string.h>

struct label {
    int64_t cost, weight[WEFT_KNAPSACK_WEIGHTS];
    int32_t parent, choice;
};

struct run {
    const struct weft_knapsack_option *options;
    int32_t n_options;
    struct label *labels; /* of all groups, one after another */
    size_t n_labels, room;
    struct label *merged; /* [merged_room]: scratch */
    size_t merged_room;
    size_t *ends; /* [n_options]: ends of the sorted runs of the group's new labels */
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

/* Sorts the labels from `begin` on. Those of each option are sorted: the labels they extend are. */
static void merge_options(struct run *run, size_t begin)
{
    for (int32_t n = run->n_options; n > 1; n = (n + 1) / 2) {
        size_t from = begin;
        for (int32_t k = 0; k < n; k += 2) {
            const size_t end = run->ends[k + 1 < n ? k + 1 : k];
            if (k + 1 < n) merge_two(run, from, run->ends[k], end);
            run->ends[k / 2] = from = end;
        }
    }
}

/* Keeps the labels from `begin` on that no other beats, the cheapest first. */
static void prune_labels(struct run *run, size_t begin)
{
    size_t n_stairs = 0, kept = begin;
    merge_options(run, begin);
    for (size_t i = begin; i < run->n_labels; i++)
        if (climb_stairs(run, &n_stairs, &run->labels[i])) run->labels[kept++] = run->labels[i];
    run->n_labels = kept;
    while (run->n_labels - begin > WEFT_KNAPSACK_MOST_LABELS) {
        run->exact = false;
        kept = begin;
        for (size_t i = begin; i < run->n_labels; i++)
            if ((i - begin) % 2 == 0 || i + 1 == run->n_labels)
                run->labels[kept++] = run->labels[i];
        run->n_labels = kept;
    }
}

/* Combines every label from `begin` to `end` with every option of the group, if it still fits with
 * `rest`, the least weights of later groups. */
static enum weft_status extend_labels(struct run *run, int32_t group, size_t begin, size_t end,
                                      const int64_t *capacity, const int64_t *rest,
                                      struct weft_error *err)
{
    size_t most = end + (end - begin) * (size_t)run->n_options;
    if (most > run->room) {
        struct label *labels = realloc(run->labels, 2 * most * sizeof *labels);
        if (!labels) return weft_fail_memory(err, "a knapsack");
        run->labels = labels;
        run->room = 2 * most;
    }
    if (most - end > run->merged_room) {
        struct label *merged = realloc(run->merged, 2 * (most - end) * sizeof *merged);
        if (!merged) return weft_fail_memory(err, "a knapsack");
        run->merged = merged;
        run->merged_room = 2 * (most - end);
    }
    for (int32_t o = 0; o < run->n_options; o++) {
        const struct weft_knapsack_option *option =
            &run->options[(size_t)group * (size_t)run->n_options + (size_t)o];
        for (size_t i = begin; i < end; i++) {
            struct label label = {
                .cost = run->labels[i].cost + option->cost, .parent = (int32_t)i, .choice = o};
            bool fits = option->allowed;
            for (int r = 0; r < WEFT_KNAPSACK_WEIGHTS; r++) {
                label.weight[r] = run->labels[i].weight[r] + option->weight[r];
                fits &= label.weight[r] + rest[r] <= capacity[r];
            }
            if (fits) run->labels[run->n_labels++] = label;
        }
        run->ends[o] = run->n_labels;
    }
    prune_labels(run, end);
    return WEFT_OK;
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

static enum weft_status solve_groups(struct run *run, int32_t n_groups, const int64_t *capacity,
                                     int64_t (*rest)[WEFT_KNAPSACK_WEIGHTS], int32_t *choice,
                                     struct weft_error *err)
{
    size_t begin = 0;
    run->labels[run->n_labels++] = (struct label){.parent = -1};
    fill_rest(run, n_groups, rest);
    for (int32_t g = 0; g < n_groups; g++) {
        size_t end = run->n_labels;
        WEFT_TRY(extend_labels(run, g, begin, end, capacity, rest[g + 1], err));
        begin = end;
        if (run->n_labels == end) return WEFT_E_INFEASIBLE;
    }
    size_t at = begin; /* the cheapest of the last group */
    for (int32_t g = n_groups - 1; g >= 0; g--) {
        choice[g] = run->labels[at].choice;
        at = (size_t)run->labels[at].parent;
    }
    return WEFT_OK;
}

enum weft_status weft_knapsack(const struct weft_knapsack_option *options, int32_t n_groups,
                               int32_t n_options, const int64_t capacity[WEFT_KNAPSACK_WEIGHTS],
                               int32_t *choice, bool *exact, struct weft_error *err)
{
    struct run run = {.options = options, .n_options = n_options, .room = 64, .exact = true};
    size_t n_stairs = ((size_t)WEFT_KNAPSACK_MOST_LABELS + 1) * (size_t)(n_options + 1);
    int64_t(*rest)[WEFT_KNAPSACK_WEIGHTS] = calloc((size_t)n_groups + 1, sizeof *rest);
    run.labels = malloc(run.room * sizeof *run.labels);
    run.stairs = malloc(n_stairs * sizeof *run.stairs);
    run.ends = calloc((size_t)n_options + 1, sizeof *run.ends);
    enum weft_status status = rest && run.labels && run.stairs && run.ends
                                  ? solve_groups(&run, n_groups, capacity, rest, choice, err)
                                  : weft_fail_memory(err, "a knapsack");
    if (exact) *exact = run.exact;
    free(rest);
    free(run.labels);
    free(run.stairs);
    free(run.merged);
    free(run.ends);
    return status;
}
