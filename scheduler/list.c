/* The invariant that makes it robust: `least[r]` is what slot r > s holds if from now on reductions
 * complete at once and gathers take what is reserved for them in the last slot of their window, or
 * block. It is kept within the limit at every choice, so that there is always a way on. What slot s
 * itself holds is `row`. */
#include "scheduler/list.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct weft_list_rule weft_list_rules[WEFT_LIST_RULES] = {
    {1, true}, {0, true}, {2, true}, {4, true}, {INT32_MAX, true}, {1, false}, {INT32_MAX, false},
};

/* A reduction on the channel that may not have completed yet. */
struct flight {
    int32_t move; /* its index; -1 when moves are not wanted */
    int64_t done_ns, bytes;
};

struct weft_list {
    const struct weft_digest *table;
    /* [n_slots + 1], the last of them an empty slot after the period: */
    int64_t *fixed, *least;
    int64_t *reserved_bytes, *launched_bytes; /* of gathers, by the last slot of their window */
    int64_t *release_bytes;                   /* of reductions, by the first */
    int64_t *done_ns;                         /* of blocks on the channel, by the last */
    int32_t *left;                            /* [n_items]: blocks not yet placed */
    int32_t *blocked;                         /* [n_items]: first slot of another try */
    struct flight *flights;                   /* [n_blocks] */
    /* One run: */
    const enum weft_policy *policies;
    struct weft_move *moves; /* or NULL */
    int64_t limit, channel_ns;
    int64_t held;          /* by gathers launched whose window is not over */
    int64_t pending;       /* by reductions not yet complete */
    int64_t row, next_row; /* held in this slot; in the next, if nothing more happens */
    int32_t slot, n_moves;
    int32_t gather_at, reduction_at;  /* positions in the table's orders */
    int32_t flight_begin, flight_end; /* in flights */
    bool has_free_gathers;            /* of no bytes of their own */
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
    if (!list->fixed || !list->left || !list->flights) {
        weft_list_destroy(list);
        return weft_fail_memory(err, "a list scheduler");
    }
    list->least = list->fixed + n_slots;
    list->reserved_bytes = list->least + n_slots;
    list->launched_bytes = list->reserved_bytes + n_slots;
    list->release_bytes = list->launched_bytes + n_slots;
    list->done_ns = list->release_bytes + n_slots;
    list->blocked = list->left + n_items;
    *out = list;
    return WEFT_OK;
}

void weft_list_destroy(struct weft_list *list)
{
    if (!list) return;
    free(list->fixed);
    free(list->left);
    free(list->flights);
    free(list);
}

static const struct weft_problem_item *item_of(const struct weft_list *list, int32_t item)
{
    return &list->table->problem->items[item];
}

static int32_t put(struct weft_list *list, int32_t item, int64_t now_ns)
{
    if (list->channel_ns < now_ns) list->channel_ns = now_ns;
    list->channel_ns += item_of(list, item)->block_ns;
    list->done_ns[item_of(list, item)->item.last] = list->channel_ns;
    list->left[item]--;
    if (!list->moves) return -1;
    list->moves[list->n_moves] = (struct weft_move){.item = item, .slot = list->slot};
    return list->n_moves++;
}

static bool is_reserved(const struct weft_list *list, const struct weft_item *it)
{
    return list->reserved_bytes[it->last] >= it->stair_bytes;
}

/* What it holds in the last slot of its window it takes from what is reserved there, if it can. */
static void put_gather(struct weft_list *list, int32_t item, int64_t now_ns)
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
    put(list, item, now_ns);
}

static void put_reduction(struct weft_list *list, int32_t item, int64_t now_ns)
{
    int32_t move = put(list, item, now_ns);
    list->flights[list->flight_end++] = (struct flight){
        .move = move, .done_ns = list->channel_ns, .bytes = item_of(list, item)->item.stair_bytes};
}

/* Reductions complete by `now_ns` leave: they are held in this slot and not in the next. */
static void land(struct weft_list *list, int64_t now_ns)
{
    while (list->flight_begin < list->flight_end &&
           list->flights[list->flight_begin].done_ns <= now_ns) {
        const struct flight *flight = &list->flights[list->flight_begin++];
        list->next_row -= flight->bytes;
        list->pending -= flight->bytes;
        if (flight->move >= 0) list->moves[flight->move].slot = list->slot;
    }
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

static int32_t ready_reduction(struct weft_list *list)
{
    const struct weft_digest *table = list->table;
    while (list->reduction_at < table->n_reductions &&
           list->left[table->reductions[list->reduction_at]] == 0)
        list->reduction_at++;
    if (list->reduction_at == table->n_reductions) return -1;
    int32_t item = table->reductions[list->reduction_at];
    return item_of(list, item)->item.first <= list->slot ? item : -1;
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
        if (list->left[item] == 0 || it->first > list->slot) continue;
        if (free_only && it->stair_bytes > 0) continue;
        if (gather_fits(list, item)) return item;
        if (it->last == list->slot) continue; /* it will block, and others need not */
        if (!list->has_free_gathers) break;
        free_only = true;
    }
    return -1;
}

/* What goes on the channel at `now_ns` < end of the slot. False when nothing does. */
static bool put_next(struct weft_list *list, int64_t now_ns, int32_t gather_within)
{
    int32_t due = due_gather(list, list->slot);
    if (due >= 0 && gather_fits(list, due)) {
        put_gather(list, due, now_ns);
        return true;
    }
    int32_t reduction = ready_reduction(list);
    bool must_reduce = reduction >= 0 && list->next_row > list->limit;
    int32_t gather = must_reduce ? -1 : early_gather(list);
    if (gather >= 0 && reduction >= 0 &&
        item_of(list, gather)->item.last - list->slot > gather_within)
        gather = -1;
    if (gather >= 0) {
        put_gather(list, gather, now_ns);
    } else if (reduction >= 0) {
        put_reduction(list, reduction, now_ns);
    } else {
        return false;
    }
    return true;
}

/* Reserves room for the blocks of a gather, as many as there is room for. */
static void reserve(struct weft_list *list, int32_t item)
{
    const struct weft_item *it = &item_of(list, item)->item;
    int64_t room = list->limit - list->least[it->last], n = it->n_blocks;
    if (it->stair_bytes == 0) return;
    if (n > room / it->stair_bytes) n = room / it->stair_bytes;
    if (n <= 0) return;
    list->reserved_bytes[it->last] += n * it->stair_bytes;
    list->least[it->last] += n * it->stair_bytes;
}

static void begin(struct weft_list *list, bool stages)
{
    const struct weft_digest *table = list->table;
    size_t n_slots = (size_t)table->n_slots + 1;
    memset(list->fixed, 0, 6 * n_slots * sizeof *list->fixed);
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
    list->channel_ns = list->held = list->pending = 0;
    list->n_moves = 0;
    list->gather_at = list->reduction_at = 0;
    list->flight_begin = list->flight_end = 0;
}

static void begin_slot(struct weft_list *list)
{
    int32_t s = list->slot;
    list->pending += list->release_bytes[s];
    list->row = list->fixed[s] + list->held + list->reserved_bytes[s] + list->pending;
    list->next_row = list->fixed[s + 1] + list->held - list->launched_bytes[s] +
                     list->reserved_bytes[s + 1] + list->pending + list->release_bytes[s + 1];
}

/* Puts what was not launched before the slot that uses it, and returns when that may compute. */
static int64_t put_blocking(struct weft_list *list, int64_t now_ns)
{
    int32_t item;
    bool any = false;
    while ((item = due_gather(list, list->slot - 1)) >= 0) {
        put(list, item, now_ns);
        any = true;
    }
    return any ? list->channel_ns : now_ns;
}

static void put_due_reductions(struct weft_list *list, int64_t begin_ns)
{
    const struct weft_digest *table = list->table;
    for (int32_t i = list->reduction_at; i < table->n_reductions; i++) {
        int32_t item = table->reductions[i];
        if (item_of(list, item)->item.first > list->slot) return;
        if (item_of(list, item)->item.last != list->slot) continue;
        while (list->left[item] > 0)
            put_reduction(list, item, begin_ns);
    }
}

/* Puts what must be complete before the next slot starts and has room, waits for it, and returns
 * the time of that start. */
static int64_t end_slot(struct weft_list *list, int64_t begin_ns, int64_t end_ns)
{
    int32_t item;
    while ((item = due_gather(list, list->slot)) >= 0 &&
           is_reserved(list, &item_of(list, item)->item))
        put_gather(list, item, begin_ns);
    put_due_reductions(list, begin_ns);
    if (list->done_ns[list->slot] > end_ns) end_ns = list->done_ns[list->slot];
    land(list, end_ns);
    while (list->next_row > list->limit) {
        if (list->flight_begin == list->flight_end) {
            item = ready_reduction(list);
            if (item < 0) return -1;
            put_reduction(list, item, begin_ns);
        }
        end_ns = list->flights[list->flight_begin].done_ns;
        land(list, end_ns);
    }
    list->held -= list->launched_bytes[list->slot];
    return end_ns;
}

int64_t weft_list_place(struct weft_list *list, const enum weft_policy *policies,
                        int64_t limit_bytes, struct weft_list_rule rule, struct weft_move *moves,
                        int32_t *n_moves)
{
    const struct weft_digest *table = list->table;
    list->policies = policies;
    list->moves = moves;
    list->limit = limit_bytes;
    begin(list, rule.stages);
    for (int32_t s = 0; s < table->n_slots; s++)
        if (list->least[s] > limit_bytes) return -1;
    int64_t now_ns = 0;
    for (list->slot = 0; list->slot < table->n_slots; list->slot++) {
        begin_slot(list);
        int64_t end_ns = put_blocking(list, now_ns);
        end_ns += weft_digest_slot_ns(table, policies, list->slot);
        while ((list->channel_ns > now_ns ? list->channel_ns : now_ns) < end_ns) {
            if (!put_next(list, now_ns, rule.gather_within)) break;
            land(list, end_ns);
        }
        now_ns = end_slot(list, now_ns, end_ns);
        if (now_ns < 0) return -1;
    }
    if (n_moves) *n_moves = list->n_moves;
    return now_ns + table->problem->agree_ns;
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
