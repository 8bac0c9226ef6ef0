/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MOST_NAMED = 8 }; /* placements of a circle named in the error */

struct chain {
    const struct weft_problem *problem;
    const struct weft_placement *from;
    int32_t n;
    int32_t *before; /* [n]: the placement in `from` that it follows; -1: none */
    int32_t *place;  /* [n]: index in the new array; -1: not placed yet */
    struct weft_placement *to;
    int32_t head[WEFT_MOST_LANES]; /* of each lane, its first unplaced placement; n: none */
};

static int32_t lane_of(const struct chain *chain, int32_t at)
{
    return chain->problem->items[chain->from[at].item].lane;
}

/* Fills `before`. Blocks of an item are in index order on their lane. */
static bool find_before(struct chain *chain)
{
    const struct weft_problem *problem = chain->problem;
    int32_t *first = calloc((size_t)problem->n_items + 1, sizeof *first), *at = NULL;
    for (int32_t i = 0; first != NULL && i < problem->n_items; i++)
        first[i + 1] = first[i] + problem->items[i].item.n_blocks;
    if (first != NULL) at = malloc(((size_t)first[problem->n_items] + 1) * sizeof *at);
    for (int32_t b = 0; at != NULL && b < first[problem->n_items]; b++)
        at[b] = -1;
    for (int32_t k = 0; at != NULL && k < chain->n; k++)
        at[first[chain->from[k].item] + chain->from[k].block] = k;
    for (int32_t k = 0; at != NULL && k < chain->n; k++) {
        int32_t after = problem->items[chain->from[k].item].after;
        chain->before[k] = after < 0 ? -1 : at[first[after] + chain->from[k].block];
    }
    bool ok = at != NULL;
    free(first);
    free(at);
    return ok;
}

static void pass_head(struct chain *chain, int32_t lane, int32_t from)
{
    while (from < chain->n && lane_of(chain, from) != lane)
        from++;
    chain->head[lane] = from;
}

/* The first unplaced placement in the array with no unplaced predecessor; -1: all wait. */
static int32_t next_head(const struct chain *chain)
{
    int32_t next = chain->n;
    for (int32_t lane = WEFT_LANE_FIRST; lane < chain->problem->n_lanes; lane++) {
        int32_t at = chain->head[lane];
        if (at >= next) continue;
        if (chain->before[at] < 0 || chain->place[chain->before[at]] >= 0) next = at;
    }
    return next < chain->n ? next : -1;
}

static enum weft_status fail_circle(const struct chain *chain, const char *where,
                                    enum weft_status refusal, struct weft_error *err)
{
    struct weft_text text;
    bool met[WEFT_MOST_LANES] = {false};
    int32_t lane = WEFT_LANE_FIRST;
    while (chain->head[lane] == chain->n)
        lane++;
    /* Every head waits for a placement after another head, so following them reaches a circle. */
    for (; !met[lane]; lane = lane_of(chain, chain->before[chain->head[lane]]))
        met[lane] = true;
    weft_text_init(&text);
    memset(met, 0, sizeof met);
    for (int32_t n = 0; !met[lane] && n < MOST_NAMED; n++) {
        const struct weft_placement *head = &chain->from[chain->head[lane]];
        int32_t before = chain->before[chain->head[lane]];
        met[lane] = true;
        weft_text_addf(&text, "%sitems[%d] block %d on lane %s comes after items[%d] block %d",
                       n == 0 ? "" : ", ahead of which ", head->item, head->block,
                       chain->problem->lanes[lane].name, chain->from[before].item,
                       chain->from[before].block);
        lane = lane_of(chain, before);
    }
    enum weft_status status =
        weft_fail(err, refusal, "%s: placements wait for one another: %s, after the first", where,
                  weft_text_chars(&text));
    weft_text_finish(&text);
    return status;
}

static enum weft_status order_chain(struct chain *chain, const char *where,
                                    enum weft_status refusal, struct weft_error *err)
{
    for (int32_t k = 0; k < chain->n; k++)
        chain->place[k] = -1;
    for (int32_t lane = WEFT_LANE_FIRST; lane < chain->problem->n_lanes; lane++)
        pass_head(chain, lane, 0);
    for (int32_t k = 0; k < chain->n; k++) {
        int32_t at = next_head(chain);
        if (at < 0) return fail_circle(chain, where, refusal, err);
        chain->place[at] = k;
        chain->to[k] = chain->from[at];
        chain->to[k].after = chain->before[at] < 0 ? -1 : chain->place[chain->before[at]];
        pass_head(chain, lane_of(chain, at), at + 1);
    }
    return WEFT_OK;
}

enum weft_status weft_placements_chain(const struct weft_problem *problem,
                                       struct weft_placement *placements, int32_t n_placements,
                                       const char *where, enum weft_status refusal,
                                       struct weft_error *err)
{
    size_t n = (size_t)n_placements;
    for (size_t k = 0; k < n; k++)
        placements[k].after = -1;
    if (!weft_problem_chains(problem)) return WEFT_OK;
    struct chain chain = {.problem = problem, .from = placements, .n = n_placements};
    chain.before = calloc(2 * n + 1, sizeof *chain.before);
    chain.to = calloc(n + 1, sizeof *chain.to);
    enum weft_status status = WEFT_OK;
    if (chain.before == NULL || chain.to == NULL) {
        status = weft_fail_memory(err, "placements");
    } else {
        chain.place = chain.before + n;
        if (!find_before(&chain)) status = weft_fail_memory(err, "placements");
    }
    if (status == WEFT_OK) status = order_chain(&chain, where, refusal, err);
    if (status == WEFT_OK) memcpy(placements, chain.to, n * sizeof *placements);
    free(chain.before);
    free(chain.to);
    return status;
}
