/* The invariant that makes it robust: `least[r]` is what slot r > s holds if from now on reductions
 * complete at once and gathers take what is reserved for them in the last slot of their window, or
 * block. It is kept within the limit at every choice, so that there is always a way on. What slot s
 * itself holds is `row`. */
#include "scheduler/list.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct weft_list_rule weft_list_rules[WEFT_LIST_RULES] = {
    {1, true, NULL, NULL},          {0, true, NULL, NULL},         {2, true, NULL, NULL},
    {4, true, NULL, NULL},          {INT32_MAX, true, NULL, NULL}, {1, false, NULL, NULL},
    {INT32_MAX, false, NULL, NULL},
};

/* A reduction on its channel that may not have completed yet. */
struct flight {
    int32_t move; /* its index; -1 when moves are not wanted */
    int32_t put;  /* blocks put on the channel with it */
    int64_t bytes;
};

/* Blocks put on a channel, in order; of those that are not done the first is under way. */
struct channel {
    int32_t *item; /* [n_blocks] */
    int32_t *upto; /* [n_slots + 1]: put, with the last whose window ends in the slot */
    int32_t n_put, n_done, n_before; /* n_before: put before the slot */
    bool begun;                      /* the first that is not done */
};

struct weft_list {
    const struct weft_digest *table;
    /* [n_slots + 1], the last of them an empty slot after the period: */
    int64_t *fixed, *least;
    int64_t *reserved_bytes, *launched_bytes; /* of gathers, by the last slot of their window */
    int64_t *release_bytes;                   /* of reductions, by the first */
    int32_t *left;                            /* [n_items]: blocks not yet placed */
    int32_t *blocked;                         /* [n_items]: first slot of another try */
    struct flight *flights;                   /* [n_blocks] */
    /* One run: */
    const enum weft_policy *policies;
    struct weft_move *moves; /* or NULL */
    int64_t limit;
    struct weft_lanes lanes;
    struct channel channels[WEFT_CHANNELS];
    int32_t n_channels;
    int64_t held;          /* by gathers launched whose window is not over */
    int64_t pending;       /* by reductions not yet complete */
    int64_t row, next_row; /* held in this slot; in the next, if nothing more happens */
    int32_t slot, n_moves;
    int32_t gather_at, reduction_at;  /* positions in the table's orders */
    int32_t flight_begin, flight_end; /* in flights */
    bool has_free_gathers;            /* of no bytes of their own */
    bool puts_off;
    const struct weft_list_delay *delays;
    int64_t *clear_ns; /* [n_slots]: compute from the end of the slot to the next that is clear */
    struct weft_list_wait *waits; /* [n_slots][WEFT_WAIT_KINDS] */
};

enum weft_status weft_list_create(const struct weft_digest *table, struct weft_list **out,
                                  struct weft_error *err)
{
    struct weft_list *list = calloc(1, sizeof *list);
    if (!list) return weft_fail_memory(err, "a list scheduler");
    size_t n_slots = (size_t)table->n_slots + 1, n_items = (size_t)table->n_items + 1;
    list->table = table;
    list->fixed = calloc(6 * n_slots, sizeof *list->fixed);
    list->left = calloc(2 * n_items, sizeof *list->left);
    list->flights = calloc((size_t)table->n_blocks + 1, sizeof *list->flights);
    list->waits = calloc(n_slots * WEFT_WAIT_KINDS, sizeof *list->waits);
    bool ok = list->fixed && list->left && list->flights && list->waits;
    for (int c = 0; c < WEFT_CHANNELS; c++) {
        struct channel *channel = &list->channels[c];
        channel->item = calloc((size_t)table->n_blocks + 1, sizeof *channel->item);
        channel->upto = calloc(n_slots, sizeof *channel->upto);
        ok = ok && channel->item && channel->upto;
    }
    if (!ok) {
        weft_list_destroy(list);
        return weft_fail_memory(err, "a list scheduler");
    }
    list->n_channels = table->problem->n_channels;
    list->least = list->fixed + n_slots;
    list->reserved_bytes = list->least + n_slots;
    list->launched_bytes = list->reserved_bytes + n_slots;
    list->release_bytes = list->launched_bytes + n_slots;
    list->clear_ns = list->release_bytes + n_slots;
    list->blocked = list->left + n_items;
    *out = list;
    return WEFT_OK;
}

void weft_list_destroy(struct weft_list *list)
{
    if (!list) return;
    for (int c = 0; c < WEFT_CHANNELS; c++) {
        free(list->channels[c].item);
        free(list->channels[c].upto);
    }
    free(list->fixed);
    free(list->left);
    free(list->flights);
    free(list->waits);
    free(list);
}

static const struct weft_problem_item *item_of(const struct weft_list *list, int32_t item)
{
    return &list->table->problem->items[item];
}

static struct channel *channel_of(struct weft_list *list, int32_t item)
{
    return &list->channels[item_of(list, item)->channel];
}

/* Puts a block of the item on its channel; returns the index of its move, -1 when moves are not
 * wanted. */
static int32_t put(struct weft_list *list, int32_t item)
{
    struct channel *channel = channel_of(list, item);
    channel->item[channel->n_put++] = item;
    channel->upto[item_of(list, item)->item.last] = channel->n_put;
    list->left[item]--;
    if (!list->moves) return -1;
    list->moves[list->n_moves] = (struct weft_move){.item = item, .slot = list->slot};
    /* What was put off must not begin as soon as it can. */
    if (list->puts_off) list->moves[list->n_moves].launch = list->slot;
    return list->n_moves++;
}

static bool is_reserved(const struct weft_list *list, const struct weft_item *it)
{
    return list->reserved_bytes[it->last] >= it->stair_bytes;
}

/* What it holds in the last slot of its window it takes from what is reserved there, if it can. */
static void put_gather(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &item_of(list, item)->item;
    bool reserved = is_reserved(list, it);
    for (int32_t r = list->slot + 1; r < it->last; r++)
        list->least[r] += it->stair_bytes;
    if (reserved) {
        list->reserved_bytes[it->last] -= it->stair_bytes;
    } else {
        list->least[it->last] += it->stair_bytes;
    }
    list->launched_bytes[it->last] += it->stair_bytes;
    list->held += it->stair_bytes;
    if (it->last > list->slot || !reserved) list->row += it->stair_bytes;
    if (it->last > list->slot + 1 || (it->last == list->slot + 1 && !reserved))
        list->next_row += it->stair_bytes;
    put(list, item);
}

static void put_reduction(struct weft_list *list, int32_t item)
{
    int32_t move = put(list, item);
    list->flights[list->flight_end++] =
        (struct flight){.move = move,
                        .put = channel_of(list, item)->n_put,
                        .bytes = item_of(list, item)->item.stair_bytes};
}

/* Reductions that are complete leave: they are held in this slot and not in the next. */
static void land(struct weft_list *list)
{
    int32_t done = list->channels[list->n_channels - 1].n_done;
    while (list->flight_begin < list->flight_end && list->flights[list->flight_begin].put <= done) {
        const struct flight *flight = &list->flights[list->flight_begin++];
        list->next_row -= flight->bytes;
        list->pending -= flight->bytes;
        if (flight->move >= 0) list->moves[flight->move].slot = list->slot;
    }
}

/* A block that begins now ends before the next slot that is to be clear. */
static bool is_clear(const struct weft_list *list, int32_t item)
{
    if (list->clear_ns[list->slot] == INT64_MAX) return true;
    int64_t left_ns = list->lanes.left[WEFT_LANE_COMPUTE] / WEFT_RATE_ONE;
    return item_of(list, item)->block_ns <= left_ns + list->clear_ns[list->slot];
}

/* The rule puts the next block of the item off, unless it must be put. */
static bool is_put_off(const struct weft_list *list, int32_t item)
{
    if (!list->puts_off) return false;
    if (list->delays) {
        const struct weft_list_delay *delay = &list->delays[item];
        int32_t n_put = item_of(list, item)->item.n_blocks - list->left[item];
        if (list->slot < delay->until && n_put >= delay->free) return true;
    }
    return !is_clear(list, item);
}

/* The rule lets the reduction be put now. Nothing puts off one that is due in the slot, because it
 * would be put at its end and begin before; nor those that have a channel of their own. */
static bool may_reduce(const struct weft_list *list, int32_t item)
{
    if (list->n_channels > 1 || item_of(list, item)->item.last == list->slot) return true;
    return !is_put_off(list, item);
}

/* The next reduction to put; when one must be, those that the rule puts off count too. */
static int32_t ready_reduction(struct weft_list *list, bool must)
{
    const struct weft_digest *table = list->table;
    while (list->reduction_at < table->n_reductions &&
           list->left[table->reductions[list->reduction_at]] == 0)
        list->reduction_at++;
    for (int32_t i = list->reduction_at; i < table->n_reductions; i++) {
        int32_t item = table->reductions[i];
        if (item_of(list, item)->item.first > list->slot) break;
        if (list->left[item] > 0 && (must || may_reduce(list, item))) return item;
    }
    return -1;
}

/* Begins and ends blocks of a channel at the present time. */
static void serve_channel(struct weft_list *list, int32_t c)
{
    struct channel *channel = &list->channels[c];
    int lane = WEFT_LANE_CHANNEL + c;
    for (; channel->n_done < channel->n_put; channel->n_done++) {
        if (!channel->begun)
            weft_lanes_start(&list->lanes, lane,
                             item_of(list, channel->item[channel->n_done])->block_ns);
        channel->begun = weft_lanes_busy(&list->lanes, lane);
        if (channel->begun) return;
    }
}

/* A channel of reductions alone is never idle while one is ready: they are launched as soon as they
 * can be, also while the slot waits for something else. */
static void serve(struct weft_list *list)
{
    int32_t item, last = list->n_channels - 1;
    for (int32_t c = 0; c <= last; c++)
        serve_channel(list, c);
    while (last > 0 && list->channels[last].n_done == list->channels[last].n_put &&
           (item = ready_reduction(list, false)) >= 0) {
        put_reduction(list, item);
        serve_channel(list, last);
    }
    land(list);
}

/* On to the next end of a slot's compute or of a block. */
static void pass(struct weft_list *list)
{
    weft_lanes_advance(&list->lanes, weft_lanes_next(&list->lanes));
    serve(list);
}

static void wait_for(struct weft_list *list, int32_t channel, int32_t n_done)
{
    while (list->channels[channel].n_done < n_done)
        pass(list);
}

/* The next gather that is due after `slot`, -1 when none is; skips those already done. */
static int32_t due_gather(struct weft_list *list, int32_t slot)
{
    const struct weft_digest *table = list->table;
    while (list->gather_at < table->n_gathers && list->left[table->gathers[list->gather_at]] == 0)
        list->gather_at++;
    if (list->gather_at == table->n_gathers) return -1;
    int32_t item = table->gathers[list->gather_at];
    return item_of(list, item)->item.last == slot ? item : -1;
}

/* True when a block launched now fits into this slot, into the next as things stand, and leaves a
 * way through all slots to its deadline. When one of those is the obstacle there is no use in
 * trying again before it is past: least[] never falls. */
static bool gather_fits(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &item_of(list, item)->item;
    int64_t most = list->limit - it->stair_bytes;
    bool reserved = is_reserved(list, it);
    if (it->stair_bytes == 0) return true;
    if (it->last == list->slot) return reserved || list->row <= most;
    if (list->blocked[item] > list->slot) return false;
    for (int32_t r = reserved ? it->last - 1 : it->last; r > list->slot; r--) {
        if (list->least[r] > most) {
            list->blocked[item] = r < it->last ? r + 1 : r;
            return false;
        }
    }
    if (list->row > most) return false;
    /* With bytes reserved in the next slot, it is counted there whether launched now or then. */
    return (it->last == list->slot + 1 && reserved) || list->next_row <= most;
}

/* The gather of the earliest deadline that may start now. Behind one that does not fit only those
 * are tried that hold nothing by themselves. */
static int32_t early_gather(struct weft_list *list)
{
    const struct weft_digest *table = list->table;
    bool free_only = false;
    for (int32_t i = list->gather_at; i < table->n_gathers; i++) {
        int32_t item = table->gathers[i];
        const struct weft_item *it = &item_of(list, item)->item;
        if (list->left[item] == 0 || it->first > list->slot || is_put_off(list, item)) continue;
        if (free_only && it->stair_bytes > 0) continue;
        if (gather_fits(list, item)) return item;
        if (it->last == list->slot) continue; /* it will block, and others need not */
        if (!list->has_free_gathers) break;
        free_only = true;
    }
    return -1;
}

/* What goes on the first channel, idle while the slot computes. False when nothing does. */
static bool put_next(struct weft_list *list, int32_t gather_within)
{
    int32_t due = due_gather(list, list->slot);
    if (due >= 0 && gather_fits(list, due)) {
        put_gather(list, due);
        return true;
    }
    int32_t reduction = list->n_channels == 1 ? ready_reduction(list, false) : -1;
    bool must_reduce = list->next_row > list->limit && list->n_channels == 1 &&
                       (reduction = ready_reduction(list, true)) >= 0;
    int32_t gather = must_reduce ? -1 : early_gather(list);
    if (gather >= 0 && reduction >= 0 &&
        item_of(list, gather)->item.last - list->slot > gather_within)
        gather = -1;
    if (gather >= 0) {
        put_gather(list, gather);
    } else if (reduction >= 0) {
        put_reduction(list, reduction);
    } else {
        return false;
    }
    return true;
}

/* Lets the slot compute, and gives the first channel work whenever it is done with what it has.
 * Once it has been idle, what is put later in the slot would begin with that. */
static void compute(struct weft_list *list, int64_t slot_ns, int32_t gather_within)
{
    const struct channel *channel = &list->channels[0];
    bool idle = false;
    weft_lanes_start(&list->lanes, WEFT_LANE_COMPUTE, slot_ns);
    while (weft_lanes_busy(&list->lanes, WEFT_LANE_COMPUTE)) {
        while (channel->n_done == channel->n_put && !idle) {
            idle = !put_next(list, gather_within);
            serve(list);
        }
        pass(list);
    }
}

/* Reserves room for the blocks of a gather, as many as there is room for. */
static void reserve(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &item_of(list, item)->item;
    int64_t room = list->limit - list->least[it->last], n = it->n_blocks;
    if (it->stair_bytes == 0) return;
    if (list->delays && list->delays[item].until > it->last && n > list->delays[item].free)
        n = list->delays[item].free;
    if (n > room / it->stair_bytes) n = room / it->stair_bytes;
    if (n <= 0) return;
    list->reserved_bytes[it->last] += n * it->stair_bytes;
    list->least[it->last] += n * it->stair_bytes;
}

static void begin(struct weft_list *list, bool stages)
{
    const struct weft_digest *table = list->table;
    size_t n_slots = (size_t)table->n_slots + 1;
    memset(list->fixed, 0, 5 * n_slots * sizeof *list->fixed);
    for (int c = 0; c < WEFT_CHANNELS; c++) {
        struct channel *channel = &list->channels[c];
        memset(channel->upto, 0, n_slots * sizeof *channel->upto);
        channel->n_put = channel->n_done = 0;
        channel->begun = false;
    }
    list->lanes = weft_problem_lanes(table->problem);
    weft_digest_fixed_rows(table, list->policies, list->fixed);
    list->has_free_gathers = false;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &item_of(list, i)->item;
        bool active = weft_item_active(item, list->policies);
        list->left[i] = active ? item->n_blocks : 0;
        list->blocked[i] = 0;
        if (!active) continue;
        if (item->kind != WEFT_ALL_GATHER) {
            list->release_bytes[item->first] += item->n_blocks * item->stair_bytes;
        } else if (item->stair_bytes == 0) {
            list->has_free_gathers = true;
        }
    }
    for (int32_t s = 0; s < table->n_slots; s++)
        list->least[s] = list->fixed[s] + list->release_bytes[s];
    for (int32_t i = 0; stages && i < table->n_gathers; i++)
        if (list->left[table->gathers[i]] > 0) reserve(list, table->gathers[i]);
    list->held = list->pending = 0;
    list->n_moves = 0;
    list->gather_at = list->reduction_at = 0;
    list->flight_begin = list->flight_end = 0;
}

/* What is_clear needs of every slot. */
static void begin_clear(struct weft_list *list, const bool *clear)
{
    int32_t n_slots = list->table->n_slots;
    int64_t ns = INT64_MAX;
    for (int32_t s = n_slots - 1; s >= 0; s--) {
        list->clear_ns[s] = ns;
        if (clear && clear[s]) {
            ns = 0;
        } else if (ns < INT64_MAX) {
            ns += weft_digest_slot_ns(list->table, list->policies, s);
        }
    }
}

static void begin_slot(struct weft_list *list)
{
    int32_t s = list->slot;
    for (int32_t c = 0; c < list->n_channels; c++)
        list->channels[c].n_before = list->channels[c].n_put;
    list->pending += list->release_bytes[s];
    list->row = list->fixed[s] + list->held + list->reserved_bytes[s] + list->pending;
    list->next_row = list->fixed[s + 1] + list->held - list->launched_bytes[s] +
                     list->reserved_bytes[s + 1] + list->pending + list->release_bytes[s + 1];
}

static struct weft_list_wait *wait_of(struct weft_list *list, enum weft_list_wait_kind kind)
{
    return &list->waits[list->slot * WEFT_WAIT_KINDS + (int)kind];
}

/* Names the block that is at that place on the channel. */
static void note_ahead(struct weft_list_wait *wait, const struct channel *channel, int32_t at)
{
    wait->ahead = channel->item[at];
    wait->straddles = at < channel->n_before;
    wait->nth = 0;
    for (int32_t k = 0; k < at; k++)
        wait->nth += channel->item[k] == wait->ahead;
}

/* Puts what was not launched before the slot that uses it, and waits for it. */
static void put_blocking(struct weft_list *list)
{
    int32_t item, n_before = list->channels[0].n_put;
    int64_t from_ns = list->lanes.now_ns;
    bool any = false;
    while ((item = due_gather(list, list->slot - 1)) >= 0) {
        put(list, item);
        any = true;
    }
    serve(list);
    if (!any) return;
    wait_for(list, 0, n_before);
    if (list->lanes.now_ns > from_ns) {
        wait_of(list, WEFT_WAIT_BLOCKING)->ns = list->lanes.now_ns - from_ns;
        note_ahead(wait_of(list, WEFT_WAIT_BLOCKING), &list->channels[0], n_before - 1);
    }
    wait_for(list, 0, list->channels[0].n_put);
}

static void put_due_reductions(struct weft_list *list)
{
    const struct weft_digest *table = list->table;
    for (int32_t i = list->reduction_at; i < table->n_reductions; i++) {
        int32_t item = table->reductions[i];
        if (item_of(list, item)->item.first > list->slot) return;
        if (item_of(list, item)->item.last != list->slot) continue;
        while (list->left[item] > 0)
            put_reduction(list, item);
    }
}

/* What gathers hold that were launched in the slot, the last of their window, though they might
 * have been before. */
static int64_t launched_late(const struct weft_list *list, const struct channel *channel)
{
    int64_t bytes = 0;
    for (int32_t k = channel->n_before; k < channel->n_put; k++) {
        const struct weft_item *it = &item_of(list, channel->item[k])->item;
        if (it->kind == WEFT_ALL_GATHER && it->last == list->slot && it->first < list->slot)
            bytes += it->stair_bytes;
    }
    return bytes;
}

/* Waits until what is due in the slot is complete. */
static void wait_for_due(struct weft_list *list)
{
    struct weft_list_wait *wait = wait_of(list, WEFT_WAIT_DUE);
    struct weft_list_wait *room = wait_of(list, WEFT_WAIT_ROOM);
    for (int32_t c = 0; c < list->n_channels; c++) {
        const struct channel *channel = &list->channels[c];
        int64_t from_ns = list->lanes.now_ns;
        int32_t at = channel->upto[list->slot];
        wait_for(list, c, at);
        if (list->lanes.now_ns == from_ns) continue;
        wait->ns += list->lanes.now_ns - from_ns;
        room->short_bytes += launched_late(list, channel);
        while (--at >= 0 && item_of(list, channel->item[at])->item.last <= list->slot)
            continue;
        if (at >= 0) note_ahead(wait, channel, at);
    }
    if (room->short_bytes > 0) room->ns = wait->ns;
}

/* Puts what must be complete before the next slot starts and has room, and waits for it. False when
 * the next slot cannot be made to fit. */
static bool end_slot(struct weft_list *list)
{
    int32_t item;
    while ((item = due_gather(list, list->slot)) >= 0 &&
           is_reserved(list, &item_of(list, item)->item))
        put_gather(list, item);
    put_due_reductions(list);
    serve(list);
    wait_for_due(list);
    int64_t from_ns = list->lanes.now_ns;
    wait_of(list, WEFT_WAIT_SHORT)->short_bytes = list->next_row - list->limit;
    while (list->next_row > list->limit) {
        if (list->flight_begin == list->flight_end) {
            item = ready_reduction(list, true);
            if (item < 0) return false;
            put_reduction(list, item);
            serve(list);
        } else {
            pass(list);
        }
    }
    wait_of(list, WEFT_WAIT_SHORT)->ns = list->lanes.now_ns - from_ns;
    list->held -= list->launched_bytes[list->slot];
    return true;
}

int64_t weft_list_place(struct weft_list *list, const enum weft_policy *policies,
                        int64_t limit_bytes, struct weft_list_rule rule, struct weft_move *moves,
                        int32_t *n_moves)
{
    const struct weft_digest *table = list->table;
    list->policies = policies;
    list->moves = moves;
    list->limit = limit_bytes;
    list->delays = rule.delays;
    list->puts_off = rule.delays || rule.clear;
    begin(list, rule.stages);
    begin_clear(list, rule.clear);
    for (int32_t s = 0; s < table->n_slots; s++)
        if (list->least[s] > limit_bytes) return -1;
    for (list->slot = 0; list->slot < table->n_slots; list->slot++) {
        for (int kind = 0; kind < WEFT_WAIT_KINDS; kind++)
            *wait_of(list, (enum weft_list_wait_kind)kind) = (struct weft_list_wait){.ahead = -1};
        begin_slot(list);
        put_blocking(list);
        compute(list, weft_digest_slot_ns(table, policies, list->slot), rule.gather_within);
        if (!end_slot(list)) return -1;
    }
    if (n_moves) *n_moves = list->n_moves;
    return list->lanes.now_ns + weft_problem_agreements_ns(table->problem);
}

int64_t weft_list_best(struct weft_list *list, const enum weft_policy *policies,
                       int64_t limit_bytes, int32_t *rule)
{
    int64_t best_ns = -1;
    for (int32_t i = 0; i < WEFT_LIST_RULES; i++) {
        int64_t ns = weft_list_place(list, policies, limit_bytes, weft_list_rules[i], NULL, NULL);
        if (ns < 0 || (best_ns >= 0 && ns >= best_ns)) continue;
        best_ns = ns;
        if (rule) *rule = i;
    }
    return best_ns;
}

const struct weft_list_wait *weft_list_waits(const struct weft_list *list)
{
    return list->waits;
}
