/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/pages.h"

#include <stdlib.h>
#include <string.h>

#include "memory_model/pages/share.h"

/* A problem's rows on their way into pages. */
struct paginator {
    const struct weft_problem *from;
    struct weft_problem *to;
    int64_t page_bytes;
    enum weft_page_rows rows;
};

static int64_t round_to_pages(const struct paginator *p, int64_t bytes)
{
    return (bytes + p->page_bytes - 1) / p->page_bytes * p->page_bytes;
}

/* The number of slots of a hold. */
static int32_t hold_length(const struct paginator *p, const struct weft_hold *hold)
{
    int32_t length = hold->last - hold->first + 1;
    return length > 0 ? length : length + p->from->n_slots;
}

/* True if the hold's bytes are rounded alone. */
static bool is_rounded(const struct paginator *p, const struct weft_hold *hold)
{
    if (hold->tier != 0 || weft_category_is_outside(hold->category)) return false;
    if (hold_length(p, hold) == p->from->n_slots) return false;
    return p->rows == WEFT_PAGES_USUAL || hold->bytes >= p->page_bytes;
}

static struct weft_hold *copy_holds(struct paginator *p, const struct weft_hold *from, int32_t n,
                                    int32_t more)
{
    struct weft_hold *holds =
        weft_pool_array(&p->to->pool, (size_t)n + (size_t)more + 1, sizeof *holds);
    for (int32_t i = 0; holds != NULL && i < n; i++) {
        holds[i] = from[i];
        if (is_rounded(p, &from[i])) holds[i].bytes = round_to_pages(p, from[i].bytes);
    }
    return holds;
}

static bool copy_decisions(struct paginator *p)
{
    const struct weft_problem *from = p->from;
    struct weft_pool *pool = &p->to->pool;
    p->to->decisions = weft_pool_array(pool, (size_t)from->n_decisions, sizeof *p->to->decisions);
    if (p->to->decisions == NULL) return false;
    for (int32_t d = 0; d < from->n_decisions; d++) {
        struct weft_problem_decision *to = &p->to->decisions[d];
        *to = from->decisions[d];
        to->strategies = weft_pool_array(pool, (size_t)to->n_strategies, sizeof *to->strategies);
        if (to->strategies == NULL) return false;
        for (int32_t k = 0; k < to->n_strategies; k++) {
            const struct weft_problem_strategy *strategy = &from->decisions[d].strategies[k];
            to->strategies[k] = *strategy;
            to->strategies[k].holds = copy_holds(p, strategy->holds, strategy->n_holds, 0);
            if (to->strategies[k].holds == NULL) return false;
        }
    }
    return true;
}

/* True if the hold is of a buffer that may share a page with others. */
static bool is_small(const struct paginator *p, const struct weft_hold *hold)
{
    return p->rows == WEFT_PAGES_USUAL && is_rounded(p, hold) && hold->bytes < p->page_bytes;
}

/* The hold of a page for all small buffers of its number. */
static struct weft_hold hold_of_page(const struct paginator *p,
                                     const struct weft_small_buffer *small, int32_t n, int32_t page)
{
    int32_t first = INT32_MAX, end = 0, n_slots = p->from->n_slots;
    for (int32_t i = 0; i < n; i++) {
        struct weft_life life = small[i].life;
        int32_t last = life.last < life.first ? life.last + n_slots : life.last;
        if (small[i].shares != page) continue;
        if (life.first < first) first = life.first;
        if (last >= end) end = last + 1;
    }
    if (end - first >= n_slots) end = first + n_slots;
    return (struct weft_hold){WEFT_CATEGORY_ACTIVATIONS, first, (end - 1) % n_slots, p->page_bytes,
                              0};
}

/* Copies the common holds. Small ones are replaced by the pages that they share. */
static enum weft_status copy_common(struct paginator *p, struct weft_error *err)
{
    const struct weft_problem *from = p->from;
    int32_t n_small = 0, n_kept = 0, n_pages = 0;
    struct weft_hold *holds = copy_holds(p, from->common, from->n_common, 0);
    struct weft_small_buffer *small = calloc((size_t)from->n_common + 1, sizeof *small);
    if (holds == NULL || small == NULL) {
        free(small);
        return weft_fail_memory(err, "a problem in pages");
    }
    for (int32_t i = 0; i < from->n_common; i++) {
        const struct weft_hold *hold = &from->common[i];
        if (is_small(p, hold))
            small[n_small++] =
                (struct weft_small_buffer){hold->bytes, {hold->first, hold->last}, -1};
        else
            holds[n_kept++] = holds[i];
    }
    enum weft_status status =
        weft_share_pages(small, n_small, from->n_slots, p->page_bytes, &n_pages, err);
    for (int32_t page = 0; status == WEFT_OK && page < n_pages; page++)
        holds[n_kept++] = hold_of_page(p, small, n_small, page);
    free(small);
    p->to->common = holds;
    p->to->n_common = n_kept;
    return status;
}

/* The bytes that a block counts. */
static int64_t block_bytes(const struct paginator *p, const struct weft_item *item)
{
    int64_t bytes = item->stair_bytes, all = item->n_blocks * bytes, least = INT64_MAX;
    if (item->stair_tier != 0 || bytes == 0) return bytes;
    if (p->rows == WEFT_PAGES_USUAL) return round_to_pages(p, all) / item->n_blocks;
    if (all < p->page_bytes) return bytes;
    for (int32_t k = 1; k <= item->n_blocks; k++) {
        int64_t of_one = round_to_pages(p, k * bytes) / k;
        if (of_one < least) least = of_one;
    }
    return least;
}

static bool copy_items(struct paginator *p)
{
    const struct weft_problem *from = p->from;
    p->to->items = weft_pool_array(&p->to->pool, (size_t)from->n_items, sizeof *p->to->items);
    if (p->to->items == NULL) return false;
    for (int32_t i = 0; i < from->n_items; i++) {
        p->to->items[i] = from->items[i];
        p->to->items[i].item.stair_bytes = block_bytes(p, &from->items[i].item);
    }
    return true;
}

/* The limit leaves whole pages for the arena. Holds outside it are buffers rounded up to the
 * arena's alignment, so for the least pages the room may be larger by that. */
static void round_limit(struct paginator *p)
{
    int64_t outside_bytes = 0, slack_bytes = 0;
    int64_t *limit_bytes = &p->to->tiers[0].limit_bytes;
    for (int32_t i = 0; i < p->from->n_common; i++) {
        const struct weft_hold *hold = &p->from->common[i];
        if (hold->tier != 0 || !weft_category_is_outside(hold->category)) continue;
        outside_bytes += hold->bytes;
        slack_bytes += p->rows == WEFT_PAGES_LEAST ? WEFT_ARENA_ALIGN_BYTES - 1 : 0;
    }
    if (*limit_bytes == INT64_MAX || *limit_bytes < outside_bytes) return;
    int64_t room_bytes = *limit_bytes - outside_bytes + slack_bytes;
    *limit_bytes = outside_bytes + room_bytes / p->page_bytes * p->page_bytes;
}

enum weft_status weft_problem_in_pages(const struct weft_problem *problem, int64_t page_bytes,
                                       enum weft_page_rows rows, struct weft_problem **out,
                                       struct weft_error *err)
{
    enum weft_status status;
    struct paginator p = {problem, calloc(1, sizeof *problem), page_bytes, rows};
    if (p.to == NULL) return weft_fail_memory(err, "a problem in pages");
    *p.to = *problem;
    p.to->pool = (struct weft_pool){0};
    round_limit(&p);
    WEFT_TRY_GOTO(fail, copy_common(&p, err));
    if (!copy_decisions(&p) || !copy_items(&p)) {
        status = weft_fail_memory(err, "a problem in pages");
        goto fail;
    }
    WEFT_TRY_GOTO(fail, weft_problem_check(p.to, "the problem in whole pages", err));
    *out = p.to;
    return WEFT_OK;
fail:
    weft_problem_destroy(p.to);
    return status;
}
