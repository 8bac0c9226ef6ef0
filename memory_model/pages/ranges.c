/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/pages/ranges.h"

#include "base/checked.h"

/* The same code walks ranges twice: first to count runs, then to fill them in. */
struct filler {
    const struct weft_paging_inputs *inputs;
    struct weft_page_ranges *ranges;
    int32_t circle_slots;
    struct weft_page_run *runs; /* NULL while counting */
    int32_t n_runs;
    /* Pages of the current range: */
    int32_t range;
    int32_t page;              /* the page that is not complete yet */
    bool lives;                /* the page has a piece already */
    struct weft_page_arc open; /* its life so far */
    struct weft_page_arc last; /* earlier pages of one life, not yet in `runs` */
};

static struct weft_page_arc arc_of_life(struct weft_life life, int32_t n_slots)
{
    int32_t last = life.first <= life.last ? life.last : life.last + n_slots;
    return (struct weft_page_arc){life.first, last - life.first + 1, 1};
}

/* The life from the first birth to the last death of pieces that began in one period. */
static struct weft_page_arc cover_arcs(struct weft_page_arc a, struct weft_page_arc b,
                                       int32_t circle_slots)
{
    int32_t first = a.first < b.first ? a.first : b.first;
    int32_t end_a = a.first + a.length, end_b = b.first + b.length;
    int32_t length = (end_a > end_b ? end_a : end_b) - first;
    return (struct weft_page_arc){first, length < circle_slots ? length : circle_slots, 1};
}

static void put_run(struct filler *filler)
{
    if (filler->last.n_pages == 0) return;
    if (filler->runs != NULL)
        filler->runs[filler->n_runs] = (struct weft_page_run){filler->range, filler->last};
    filler->n_runs++;
    filler->last.n_pages = 0;
}

/* Adds n_pages whole pages of one life. */
static void add_pages(struct filler *filler, struct weft_page_arc arc, int32_t n_pages)
{
    struct weft_page_arc *last = &filler->last;
    if (last->n_pages == 0 || last->first != arc.first || last->length != arc.length) {
        put_run(filler);
        *last = arc;
        last->n_pages = 0;
    }
    last->n_pages += n_pages;
    filler->page += n_pages;
}

static void close_page(struct filler *filler)
{
    if (filler->lives) add_pages(filler, filler->open, 1);
    filler->lives = false;
}

/* Adds a piece from byte `begin`, the end of the last piece, to `end`. */
static void add_piece(struct filler *filler, int64_t begin, int64_t end, struct weft_page_arc arc)
{
    int64_t page_bytes = filler->inputs->page_bytes;
    if (begin == end) return;
    if (begin / page_bytes > filler->page) close_page(filler);
    if (filler->lives) {
        filler->open = cover_arcs(filler->open, arc, filler->circle_slots);
        if (end <= (begin / page_bytes + 1) * page_bytes) return;
        close_page(filler);
    }
    add_pages(filler, arc, (int32_t)(end / page_bytes) - filler->page);
    if (end % page_bytes == 0) return;
    filler->open = arc;
    filler->lives = true;
}

static void begin_range(struct filler *filler, int32_t range)
{
    filler->range = range;
    filler->page = 0;
}

static void end_range(struct filler *filler)
{
    close_page(filler);
    put_run(filler);
}

static void add_buffer(struct filler *filler, int32_t b)
{
    const struct weft_paged_buffer *buffer = &filler->inputs->buffers[b];
    int64_t piece_bytes = buffer->bytes / buffer->n_pieces, at = filler->ranges->at[b];
    for (int32_t p = 0; p < buffer->n_pieces; p++, at += piece_bytes) {
        add_piece(filler, at, at + piece_bytes,
                  arc_of_life(buffer->lives[p], filler->inputs->n_slots));
    }
}

/* The next buffer in the same range; n_buffers if there is none. */
static int32_t next_sharer(const struct weft_paging_inputs *inputs, int32_t b)
{
    int32_t shares = inputs->buffers[b].shares;
    if (shares < 0) return inputs->n_buffers;
    while (++b < inputs->n_buffers) {
        if (!inputs->buffers[b].is_resident && inputs->buffers[b].shares == shares) break;
    }
    return b;
}

static void walk_ranges(struct filler *filler)
{
    const struct weft_paging_inputs *inputs = filler->inputs;
    int32_t next = filler->ranges->n_resident_pages > 0 ? 1 : 0;
    for (int32_t b = 0; b < inputs->n_buffers; b++) {
        if (inputs->buffers[b].is_resident || filler->ranges->range[b] != next) continue;
        begin_range(filler, next++);
        for (int32_t c = b; c < inputs->n_buffers; c = next_sharer(inputs, c))
            add_buffer(filler, c);
        end_range(filler);
    }
}

/* Counts the pages of `bytes`; false if they cannot be numbered. */
static bool count_pages(int64_t bytes, int64_t page_bytes, int32_t *n_pages)
{
    int64_t rounded;
    if (!weft_checked_round_up(bytes, page_bytes, &rounded)) return false;
    if (rounded / page_bytes > INT32_MAX / 4) return false;
    *n_pages = (int32_t)(rounded / page_bytes);
    return true;
}

/* Appends a buffer to its range. */
static bool append_buffer(struct weft_page_ranges *ranges, const struct weft_paging_inputs *inputs,
                          int32_t b, int32_t range, int64_t *end_bytes)
{
    ranges->range[b] = range;
    ranges->at[b] = *end_bytes;
    return weft_checked_add(*end_bytes, inputs->buffers[b].bytes, end_bytes) &&
           count_pages(*end_bytes, inputs->page_bytes, &ranges->n_pages[range]);
}

static bool place_residents(struct weft_page_ranges *ranges,
                            const struct weft_paging_inputs *inputs)
{
    int64_t end_bytes = 0;
    for (int32_t b = 0; b < inputs->n_buffers; b++) {
        if (!inputs->buffers[b].is_resident) continue;
        if (!append_buffer(ranges, inputs, b, 0, &end_bytes)) return false;
    }
    ranges->n_resident_pages = ranges->n_pages[0];
    if (end_bytes > 0) ranges->n_ranges = 1;
    return true;
}

/* Fills `range`, `at`, `n_pages`. False if pages cannot be numbered. */
static bool place_buffers(struct weft_page_ranges *ranges, const struct weft_paging_inputs *inputs)
{
    if (!place_residents(ranges, inputs)) return false;
    for (int32_t b = 0; b < inputs->n_buffers; b++) {
        if (inputs->buffers[b].is_resident || ranges->range[b] >= 0) continue;
        int64_t end_bytes = 0;
        for (int32_t c = b; c < inputs->n_buffers; c = next_sharer(inputs, c)) {
            if (!append_buffer(ranges, inputs, c, ranges->n_ranges, &end_bytes)) return false;
        }
        ranges->n_ranges++;
    }
    return true;
}

enum weft_status weft_page_ranges_fill(struct weft_page_ranges *ranges, struct weft_pool *pool,
                                       const struct weft_paging_inputs *inputs, int32_t n_periods,
                                       struct weft_error *err)
{
    size_t n = (size_t)inputs->n_buffers;
    *ranges = (struct weft_page_ranges){
        .n_pages = weft_pool_array(pool, n + 1, sizeof *ranges->n_pages),
        .range = weft_pool_array(pool, n, sizeof *ranges->range),
        .at = weft_pool_array(pool, n, sizeof *ranges->at),
    };
    if (ranges->n_pages == NULL || ranges->range == NULL || ranges->at == NULL)
        return weft_fail_memory(err, "paging");
    for (size_t b = 0; b < n; b++)
        ranges->range[b] = -1;
    if (!place_buffers(ranges, inputs)) {
        return weft_fail(err, WEFT_E_DATA,
                         "the buffers of a program have more pages of %lld bytes than can be "
                         "numbered: ask for larger pages",
                         (long long)inputs->page_bytes);
    }
    struct filler counter = {
        .inputs = inputs, .ranges = ranges, .circle_slots = n_periods * inputs->n_slots};
    struct filler filler = counter;
    walk_ranges(&counter);
    filler.runs = weft_pool_array(pool, (size_t)counter.n_runs, sizeof *filler.runs);
    if (filler.runs == NULL) return weft_fail_memory(err, "paging");
    walk_ranges(&filler);
    ranges->runs = filler.runs;
    ranges->n_runs = filler.n_runs;
    return WEFT_OK;
}
