/* SPDX-License-Identifier: Apache-2.0 */
/* Records why compute waited. Repairs read it. */
#include "scheduler/place/list.h"
#include "scheduler/place/list_run.h"

static struct weft_list_wait *wait_of(struct weft_list *list, enum weft_list_wait_kind kind)
{
    return &list->waits[list->slot * WEFT_WAIT_KINDS + (int)kind];
}

void weft_list_begin_waits(struct weft_list *list)
{
    for (int kind = 0; kind < WEFT_WAIT_KINDS; kind++)
        *wait_of(list, (enum weft_list_wait_kind)kind) = (struct weft_list_wait){.ahead = -1};
}

/* Names the block at this position on the lane. */
static void note_ahead(struct weft_list_wait *wait, const struct weft_list_lane *lane, int32_t at)
{
    const struct weft_list_run *run = &lane->runs[weft_list_run_at(lane, at)];
    wait->ahead = run->item;
    wait->straddles = at < lane->n_before;
    wait->nth = run->nth + at - run->begin;
}

void weft_list_note_blocking(struct weft_list *list, const struct weft_list_lane *lane,
                             int32_t n_before, int64_t from_ns)
{
    struct weft_list_wait *wait = wait_of(list, WEFT_WAIT_BLOCKING);
    if (list->lanes.now_ns == from_ns) return;
    wait->ns += list->lanes.now_ns - from_ns;
    note_ahead(wait, lane, n_before - 1);
}

/* Bytes of gathers that were launched in the last slot of their window, although they could start
 * earlier. */
static int64_t launched_late(const struct weft_list *list, const struct weft_list_lane *lane)
{
    int64_t bytes = 0;
    for (int32_t r = lane->n_runs - 1; r >= 0; r--) {
        const struct weft_item *it = &weft_list_item(list, lane->runs[r].item)->item;
        const int32_t begin = lane->runs[r].begin, end = weft_list_run_end(lane, r);
        if (end <= lane->n_before) break;
        if (it->acquires && it->last == list->slot && it->first < list->slot)
            bytes += (end - (begin > lane->n_before ? begin : lane->n_before)) * it->stair_bytes;
    }
    return bytes;
}

void weft_list_note_due(struct weft_list *list, const struct weft_list_lane *lane, int64_t from_ns)
{
    struct weft_list_wait *wait = wait_of(list, WEFT_WAIT_DUE);
    struct weft_list_wait *room = wait_of(list, WEFT_WAIT_ROOM);
    int32_t at = lane->upto[list->slot];
    if (list->lanes.now_ns == from_ns) return;
    wait->ns += list->lanes.now_ns - from_ns;
    room->short_bytes += launched_late(list, lane);
    if (room->short_bytes > 0) room->ns = wait->ns;
    if (--at < 0) return;
    int32_t run = weft_list_run_at(lane, at);
    if (lane->runs[run].furthest <= list->slot) return;
    while (weft_list_item(list, lane->runs[run].item)->item.last <= list->slot)
        at = lane->runs[run--].begin - 1;
    note_ahead(wait, lane, at);
}

void weft_list_note_short(struct weft_list *list, int64_t short_bytes, int64_t from_ns)
{
    struct weft_list_wait *wait = wait_of(list, WEFT_WAIT_SHORT);
    wait->short_bytes = short_bytes;
    wait->ns = list->lanes.now_ns - from_ns;
}

void weft_list_note_full(struct weft_list *list, int64_t late_bytes, int64_t from_ns)
{
    struct weft_list_wait *full = wait_of(list, WEFT_WAIT_FULL);
    full->short_bytes = late_bytes;
    full->ns = list->lanes.now_ns - from_ns;
}

const struct weft_list_wait *weft_list_waits(const struct weft_list *list)
{
    return list->waits;
}
