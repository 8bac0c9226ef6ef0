/* SPDX-License-Identifier: Apache-2.0 */
/* Dead memory is poisoned. At the start of every slot, bytes that died with the slot before get the
 * pattern, and pages without a live buffer are closed. A buffer's margins are the unused bytes of
 * its pages before and after it. A write to a margin shows that a kernel left its buffer. */
#include <stdlib.h>
#include <string.h>

#include "program/lifetime.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/poison.h"

/* Whether a piece lives in a slot of a period of this parity; *table is its table. */
static bool lives_in(const struct exec_places *places, int32_t b, int32_t p, int parity,
                     int32_t slot, int *table)
{
    const struct weft_life life = places->program->buffers[b].lives[p];
    const bool began_before = life.first > life.last && slot <= life.last;
    *table = places->n_tables == 1 ? 0 : parity ^ (int)began_before;
    if (!weft_buffer_persists(places->program, &places->program->buffers[b]))
        return weft_life_has(life, slot);
    *table = 0;
    return true;
}

static struct weft_range piece_range(const struct exec_places *places, int32_t b, int32_t p,
                                     int table)
{
    const struct weft_buffer *buffer = &places->program->buffers[b];
    const int64_t bytes = buffer->bytes / buffer->n_pieces;
    const int64_t begin = places->offsets[table][b] + p * bytes;
    return (struct weft_range){begin, begin + bytes};
}

/* Widens ranges to whole pages and joins them. Returns the number left. */
static int32_t widen_to_pages(struct weft_range *ranges, int32_t n, int64_t page_bytes)
{
    for (int32_t i = 0; i < n; i++) {
        ranges[i].begin = ranges[i].begin / page_bytes * page_bytes;
        ranges[i].end = (ranges[i].end + page_bytes - 1) / page_bytes * page_bytes;
    }
    return weft_exec_join_ranges(ranges, n);
}

/* Writes `from` without `taken` to `out`, which has room for n_from + n_taken. Both are sorted and
 * joined. Returns the number of ranges. */
static int32_t subtract_ranges(const struct weft_range *from, int32_t n_from,
                               const struct weft_range *taken, int32_t n_taken,
                               struct weft_range *out)
{
    int32_t n = 0, t = 0;
    for (int32_t i = 0; i < n_from; i++) {
        int64_t at = from[i].begin;
        while (t < n_taken && taken[t].end <= at)
            t++;
        for (int32_t k = t; k < n_taken && taken[k].begin < from[i].end; k++) {
            if (taken[k].begin > at) out[n++] = (struct weft_range){at, taken[k].begin};
            if (taken[k].end > at) at = taken[k].end;
        }
        if (at < from[i].end) out[n++] = (struct weft_range){at, from[i].end};
    }
    return n;
}

/* Ranges of pieces while a turn is made. Each list has room for all pieces in all tables, twice
 * because of subtraction. */
struct scratch {
    struct weft_exec *exec;
    struct weft_range *dead, *born, *live, *left, *margins;
    int32_t *owners; /* by margin: its buffer */
    int32_t n_dead, n_born, n_live, n_margins;
};

/* Adds the bytes before a buffer's first piece and after its last that no other buffer uses. */
static void add_margins(struct scratch *scratch, int32_t b, int32_t p, int table)
{
    const struct exec_places *places = &scratch->exec->places;
    const struct weft_buffer *buffer = &places->program->buffers[b];
    const int64_t at = places->offsets[table][b];
    struct weft_range before = {at, at}, behind = {at + buffer->used_bytes, at + buffer->bytes};
    if (places->sole[b]) {
        const struct weft_page_range *range =
            &places->paging->ranges[places->paging->places[b].range];
        before.begin = range->offsets[table];
        behind.end = range->offsets[table] + range->n_pages * places->paging->page_bytes;
    }
    if (p == 0 && before.begin < before.end) {
        scratch->owners[scratch->n_margins] = b;
        scratch->margins[scratch->n_margins++] = before;
    }
    if (p + 1 == buffer->n_pieces && behind.begin < behind.end) {
        scratch->owners[scratch->n_margins] = b;
        scratch->margins[scratch->n_margins++] = behind;
    }
}

static void add_dead(struct scratch *scratch, int32_t b, int32_t p, int table, bool looks)
{
    scratch->dead[scratch->n_dead++] = piece_range(&scratch->exec->places, b, p, table);
    if (looks) add_margins(scratch, b, p, table);
}

static void add_live(struct scratch *scratch, int32_t b, int32_t p, int table, bool born)
{
    const struct weft_range range = piece_range(&scratch->exec->places, b, p, table);
    scratch->live[scratch->n_live++] = range;
    if (born) scratch->born[scratch->n_born++] = range;
}

/* Sorts a piece at the start of a slot. It is dead if it lived in the slot before and does not live
 * now. It is born if it lives now and did not live before. */
static void place_piece(struct scratch *scratch, int32_t b, int32_t p, int parity, int32_t slot)
{
    const struct exec_places *places = &scratch->exec->places;
    const int32_t before = slot == 0 ? places->program->n_slots - 1 : slot - 1;
    int now_table, before_table;
    const bool lived =
        lives_in(places, b, p, slot == 0 ? 1 - parity : parity, before, &before_table);
    const bool lives = lives_in(places, b, p, parity, slot, &now_table);
    const bool same = lived && lives && before_table == now_table;
    if (lived && !same) add_dead(scratch, b, p, before_table, true);
    if (lives) add_live(scratch, b, p, now_table, !same);
}

/* Sorts a piece before a period that follows no other. Pieces that do not persist are dead in all
 * tables, unless they would live at the last period's end. */
static void bury_piece(struct scratch *scratch, int32_t b, int32_t p, int parity)
{
    const struct exec_places *places = &scratch->exec->places;
    const bool persists = weft_buffer_persists(places->program, &places->program->buffers[b]);
    int table;
    for (int t = 0; t < places->n_tables && !persists; t++)
        add_dead(scratch, b, p, t, false);
    if (lives_in(places, b, p, 1 - parity, places->program->n_slots - 1, &table))
        add_live(scratch, b, p, table, true);
}

static enum weft_status keep_ranges(struct weft_exec *exec, const struct weft_range *ranges,
                                    int32_t n, struct weft_ranges *out, struct weft_error *err)
{
    struct weft_range *kept = weft_pool_array(&exec->pool, (size_t)n, sizeof *kept);
    if (kept == NULL) return weft_fail_memory(err, "ranges to poison");
    if (n > 0) memcpy(kept, ranges, (size_t)n * sizeof *ranges);
    *out = (struct weft_ranges){kept, n};
    return WEFT_OK;
}

static enum weft_status keep_turn(struct scratch *scratch, struct exec_deaths *out,
                                  struct weft_error *err)
{
    struct weft_exec *exec = scratch->exec;
    struct weft_arena_turn *turn = &out->turn;
    struct weft_ranges margins = {0};
    const int64_t page_bytes = exec->places.paging->page_bytes;
    out->margin = -1;
    out->owners = weft_pool_array(&exec->pool, (size_t)scratch->n_margins, sizeof *out->owners);
    if (out->owners == NULL) return weft_fail_memory(err, "ranges to poison");
    if (scratch->n_margins > 0)
        memcpy(out->owners, scratch->owners, (size_t)scratch->n_margins * sizeof *out->owners);
    WEFT_TRY(keep_ranges(exec, scratch->margins, scratch->n_margins, &margins, err));
    turn->margins = margins.ranges;
    turn->n_margins = margins.n;
    int32_t n = weft_exec_join_ranges(scratch->born, scratch->n_born);
    WEFT_TRY(keep_ranges(exec, scratch->born, n, &turn->born, err));
    n = widen_to_pages(scratch->born, n, page_bytes);
    WEFT_TRY(keep_ranges(exec, scratch->born, n, &turn->born_pages, err));
    n = weft_exec_join_ranges(scratch->dead, scratch->n_dead);
    WEFT_TRY(keep_ranges(exec, scratch->dead, n, &turn->dead, err));
    const int32_t n_pages = widen_to_pages(scratch->dead, n, page_bytes);
    WEFT_TRY(keep_ranges(exec, scratch->dead, n_pages, &turn->dead_pages, err));
    n = widen_to_pages(scratch->live, scratch->n_live, page_bytes);
    n = subtract_ranges(scratch->dead, n_pages, scratch->live, n, scratch->left);
    return keep_ranges(exec, scratch->left, n, &turn->closed_pages, err);
}

/* Makes the turn of a slot, or with slot -1 the turn before the first slot. */
static enum weft_status make_turn(struct scratch *scratch, int parity, int32_t slot,
                                  struct exec_deaths *out, struct weft_error *err)
{
    const struct weft_program *program = scratch->exec->options.program;
    scratch->n_dead = scratch->n_born = scratch->n_live = scratch->n_margins = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        for (int32_t p = 0; p < program->buffers[b].n_pieces; p++) {
            if (slot < 0) bury_piece(scratch, b, p, parity);
            if (slot >= 0) place_piece(scratch, b, p, parity, slot);
        }
    }
    return keep_turn(scratch, out, err);
}

static enum weft_status make_turns(struct scratch *scratch, struct weft_error *err)
{
    struct weft_exec *exec = scratch->exec;
    const int32_t n_slots = exec->options.program->n_slots;
    for (int t = 0; t < exec->places.n_tables; t++) {
        exec->deaths[t] =
            weft_pool_array(&exec->pool, (size_t)n_slots + 1, sizeof *exec->deaths[t]);
        if (exec->deaths[t] == NULL) return weft_fail_memory(err, "ranges to poison");
        for (int32_t s = 0; s <= n_slots; s++)
            WEFT_TRY(make_turn(scratch, t, s - 1, &exec->deaths[t][s], err));
    }
    if (exec->places.n_tables == 1) exec->deaths[1] = exec->deaths[0];
    return WEFT_OK;
}

/* Lists persistent buffers, which are searched for touched pages. */
static enum weft_status list_residents(struct scratch *scratch, struct weft_error *err)
{
    const struct weft_program *program = scratch->exec->options.program;
    scratch->n_live = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const bool persists = weft_buffer_persists(program, &program->buffers[b]);
        for (int32_t p = 0; persists && p < program->buffers[b].n_pieces; p++)
            add_live(scratch, b, p, 0, false);
    }
    return keep_ranges(scratch->exec, scratch->live,
                       weft_exec_join_ranges(scratch->live, scratch->n_live),
                       &scratch->exec->residents, err);
}

enum weft_status weft_exec_poison_create(struct weft_exec *exec, struct weft_error *err)
{
    enum { LISTS = 5 };
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    const size_t n = EXEC_TABLES * (size_t)weft_program_pieces(exec->options.program);
    struct weft_range *ranges = calloc(2 * LISTS * n + 1, sizeof *ranges);
    struct scratch scratch = {.exec = exec, .owners = calloc(2 * n + 1, sizeof(int32_t))};
    enum weft_status status = WEFT_OK;
    if (ranges == NULL || scratch.owners == NULL) {
        status = weft_fail_memory(err, "ranges to poison");
    } else {
        struct weft_range **lists[LISTS] = {&scratch.dead, &scratch.born, &scratch.live,
                                            &scratch.left, &scratch.margins};
        for (size_t i = 0; i < LISTS; i++)
            *lists[i] = ranges + 2 * i * n;
        status = make_turns(&scratch, err);
        if (status == WEFT_OK) status = list_residents(&scratch, err);
    }
    free(ranges);
    free(scratch.owners);
    if (status == WEFT_OK) status = weft_arena_watch(exec->arena, stream, err);
    exec->follows = false;
    return status == WEFT_OK ? weft_stream_synchronise(stream, err) : status;
}

static void push_turn(struct weft_exec *exec, int32_t place)
{
    struct exec_deaths *deaths = &exec->deaths[exec->parity][place];
    weft_arena_renew(exec->arena, exec->streams[WEFT_LANE_COMPUTE], &deaths->turn, &deaths->margin);
}

void weft_exec_poison_push(struct weft_exec *exec, int32_t slot)
{
    if (exec->deaths[0] != NULL) push_turn(exec, slot + 1);
}

void weft_exec_poison_begin(struct weft_exec *exec)
{
    if (exec->deaths[0] != NULL && !exec->follows) push_turn(exec, 0);
    exec->follows = false;
}

void weft_exec_poison_destroy(struct weft_exec *exec)
{
    if (exec->deaths[0] == NULL) return;
    weft_arena_open_all(exec->arena, exec->streams[WEFT_LANE_COMPUTE]);
}

static void describe_buffer(const struct weft_exec *exec, int32_t b, struct weft_text *out)
{
    const struct weft_buffer_name name = weft_exec_name_buffer(exec, b);
    weft_text_add(out, name.kind);
    if (name.owner != NULL) weft_text_addf(out, "%s%s", name.of, name.owner);
}

enum weft_status weft_exec_poison_check(struct weft_exec *exec, struct weft_error *err)
{
    const int32_t n_slots = exec->options.program->n_slots;
    for (int32_t place = 0; exec->deaths[0] != NULL && place <= n_slots; place++) {
        struct exec_deaths *deaths = &exec->deaths[exec->parity][place];
        if (deaths->margin < 0) continue;
        struct weft_text what;
        weft_text_init(&what);
        describe_buffer(exec, deaths->owners[deaths->margin], &what);
        deaths->margin = -1;
        enum weft_status status =
            weft_fail(err, WEFT_E_INTERNAL,
                      "step %lld: bytes next to the %s were written: the kernel of a layer that "
                      "works on it leaves its buffer",
                      (long long)exec->last_step, weft_text_chars(&what));
        weft_text_finish(&what);
        return status;
    }
    return WEFT_OK;
}
