/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/offloaded.h"

#include <stdlib.h>
#include <string.h>

#include "offload/store.h"
#include "offload/tier.h"
#include "runtime/arena/copy.h"
#include "runtime/exec/parts.h"

enum {
    WINDOWS = WEFT_RING_WINDOWS, /* open at once; each has a seat after the lanes' seats */
    ITEMS_A_BLOCK = 4,           /* stream items: submit, wait, copy, and one for the ends */
    STATES = WEFT_STATE_COUNT
};

/* Blocks of one state of a unit: n_blocks from first_block on. The last one may be short. */
struct offloaded_state {
    int64_t first_block, n_blocks;
};

/* A lane's seats in the ring. Its stream waits for all of them before its work ends. */
struct offloaded_ring {
    unsigned char *memory;
    int64_t *tickets; /* by seat */
};

struct exec_offloaded {
    const struct weft_exec *exec;
    struct weft_store *store;
    struct weft_tier *tier;
    struct weft_ring ring;
    struct offloaded_ring rings[2]; /* by lane of the ring */
    struct exec_disk_window *windows[WINDOWS];
    int64_t n_blocks, most_blocks;           /* of all units; of the largest unit */
    struct offloaded_state (*units)[STATES]; /* [n_units] */
    struct weft_store_block *blocks;
    bool pinned; /* the ring is */
    bool warned;
};

struct exec_disk_window {
    struct exec_offloaded *offloaded;
    unsigned char *memory; /* of its seat */
    int64_t block;         /* in memory now; -1: none */
    bool changed;          /* written since it was read */
};

static int64_t block_bytes(const struct exec_offloaded *offloaded)
{
    return offloaded->ring.block_bytes;
}

static void list_unit(struct exec_offloaded *offloaded, int32_t u)
{
    const struct exec_unit *unit = &offloaded->exec->units[u];
    int64_t blocks = 0;
    for (int state = 0; state < STATES; state++) {
        if (!unit->states[state]) continue;
        const int64_t n =
            (unit->state_bytes.end + block_bytes(offloaded) - 1) / block_bytes(offloaded);
        offloaded->units[u][state] = (struct offloaded_state){offloaded->n_blocks + blocks, n};
        blocks += n;
    }
    offloaded->n_blocks += blocks;
    if (blocks > offloaded->most_blocks) offloaded->most_blocks = blocks;
}

/* Bytes used in a block of unit u's state; only the last block can be short. */
static int64_t bytes_of(const struct exec_offloaded *offloaded, int32_t u, int64_t block)
{
    const int64_t left = offloaded->exec->units[u].state_bytes.end - block * block_bytes(offloaded);
    return left < block_bytes(offloaded) ? left : block_bytes(offloaded);
}

static int64_t align_up(int64_t bytes)
{
    enum { TO = WEFT_DISK_ALIGN_BYTES };
    return (bytes + TO - 1) / TO * TO;
}

static void fill_blocks(struct exec_offloaded *offloaded)
{
    for (int32_t u = 0; u < offloaded->exec->options.program->n_units; u++) {
        for (int state = 0; state < STATES; state++) {
            const struct offloaded_state *at = &offloaded->units[u][state];
            for (int64_t b = 0; b < at->n_blocks; b++)
                offloaded->blocks[at->first_block + b] =
                    (struct weft_store_block){.bytes = align_up(bytes_of(offloaded, u, b)),
                                              .unit = u,
                                              .index = (int32_t)(state * at->n_blocks + b)};
        }
    }
}

static enum weft_status open_rings(struct exec_offloaded *offloaded, struct weft_error *err)
{
    const struct weft_ring *ring = &offloaded->ring;
    const int64_t bytes = weft_ring_bytes(ring), page_bytes = weft_ring_page_bytes(ring);
    const struct weft_tier_options options = {
        .name = "ring of the disk", .page_bytes = page_bytes, .pages = bytes / page_bytes};
    WEFT_TRY(weft_tier_create(&options, &offloaded->tier, err));
    unsigned char *memory = weft_tier_memory(offloaded->tier).at;
    WEFT_TRY(weft_arena_pin(offloaded->exec->arena, weft_tier_memory(offloaded->tier), err));
    offloaded->pinned = true;
    for (int r = 0; r < ring->lanes; r++) {
        offloaded->rings[r].memory = memory + r * ring->seats * ring->block_bytes;
        offloaded->rings[r].tickets =
            calloc((size_t)ring->seats, sizeof *offloaded->rings[r].tickets);
        if (offloaded->rings[r].tickets == NULL) return weft_fail_memory(err, "the ring of a disk");
    }
    return WEFT_OK;
}

static enum weft_status open_offloaded(struct exec_offloaded *offloaded, struct weft_error *err)
{
    const struct weft_exec *exec = offloaded->exec;
    const struct weft_cluster *cluster = &exec->options.config->cluster;
    const struct weft_store_options options = {
        .directory = cluster->disk.path,
        .threads = offloaded->ring.threads,
        .requests = offloaded->ring.seats + WINDOWS,
        .spans = 1,
        .timeout_ns = weft_cluster_timeout_ns(cluster),
        .unverified = !cluster->disk.verify,
        .quiet = exec->rank != 0, /* rank 0 logs for all */
    };
    if (!cluster->disk.given)
        return weft_fail(err, WEFT_E_DATA, "the program keeps state on a disk: give cluster.disk");
    const int32_t n_units = exec->options.program->n_units;
    offloaded->units = calloc((size_t)n_units, sizeof *offloaded->units);
    if (offloaded->units == NULL) return weft_fail_memory(err, "offloaded state");
    for (int32_t u = 0; u < n_units; u++)
        if (exec->units[u].location == WEFT_LOCATION_DISK) list_unit(offloaded, u);
    offloaded->blocks = calloc((size_t)offloaded->n_blocks, sizeof *offloaded->blocks);
    if (offloaded->blocks == NULL) return weft_fail_memory(err, "offloaded state");
    fill_blocks(offloaded);
    WEFT_TRY(weft_store_open(&options, &offloaded->store, err));
    WEFT_TRY(weft_store_reserve(offloaded->store, offloaded->blocks, offloaded->n_blocks, err));
    return open_rings(offloaded, err);
}

enum weft_status weft_exec_offloaded_create(const struct weft_exec *exec,
                                            struct exec_offloaded **out, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    if (!weft_exec_has_location(exec, WEFT_LOCATION_DISK)) return WEFT_OK;
    struct exec_offloaded *offloaded = calloc(1, sizeof *offloaded);
    if (offloaded == NULL) return weft_fail_memory(err, "offloaded state");
    offloaded->exec = exec;
    offloaded->ring = program->ring;
    const enum weft_status status = open_offloaded(offloaded, err);
    if (status != WEFT_OK) {
        weft_exec_offloaded_destroy(offloaded);
        return status;
    }
    *out = offloaded;
    return WEFT_OK;
}

void weft_exec_offloaded_destroy(struct exec_offloaded *offloaded)
{
    if (offloaded == NULL) return;
    weft_store_destroy(offloaded->store);
    if (offloaded->pinned)
        weft_arena_unpin(offloaded->exec->arena, weft_tier_memory(offloaded->tier));
    weft_tier_destroy(offloaded->tier);
    for (int r = 0; r < offloaded->ring.lanes; r++)
        free(offloaded->rings[r].tickets);
    free(offloaded->blocks);
    free(offloaded->units);
    free(offloaded);
}

/* A block on its way through a seat. */
struct passing {
    struct exec_offloaded *offloaded;
    struct offloaded_ring *ring;
    enum weft_store_direction direction;
    int32_t seat;
    int64_t block, step;
};

static struct weft_memory_span seat_of(const struct passing *passing)
{
    const struct exec_offloaded *offloaded = passing->offloaded;
    return (struct weft_memory_span){passing->ring->memory + passing->seat * block_bytes(offloaded),
                                     offloaded->blocks[passing->block].bytes};
}

static enum weft_status submit_block(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    const struct passing *p = argument;
    const struct weft_memory_span span = seat_of(p);
    int64_t *ticket = &p->ring->tickets[p->seat];
    (void)stream;
    return p->direction == WEFT_STORE_READ
               ? weft_store_submit_read(p->offloaded->store, p->block, &span, 1, ticket, err)
               : weft_store_submit_write(p->offloaded->store, p->block, p->step, &span, 1, ticket,
                                         err);
}

static enum weft_status wait_for_seat(struct weft_stream *stream, const void *argument,
                                      struct weft_error *err)
{
    const struct passing *p = argument;
    (void)stream;
    return weft_store_wait(p->offloaded->store, p->direction, p->ring->tickets[p->seat], err);
}

/* The blocks of all states of one unit, in order of state. */
struct passage {
    struct weft_exec *exec;
    struct weft_stream *stream;
    const struct exec_unit *unit;
    int32_t u;
    int64_t n;
};

static struct passage passage_of(struct weft_exec *exec, struct weft_stream *stream,
                                 const struct exec_unit *unit)
{
    struct passage passage = {exec, stream, unit, unit->index, 0};
    for (int state = 0; state < STATES; state++)
        passage.n += exec->offloaded->units[unit->index][state].n_blocks;
    return passage;
}

/* Block k of a passage. *at is its address in the arena, *bytes the bytes used. */
static struct passing block_of(const struct passage *passage, enum weft_store_direction direction,
                               int64_t k, unsigned char **at, int64_t *bytes)
{
    struct exec_offloaded *offloaded = passage->exec->offloaded;
    int state = 0;
    int64_t left = k;
    while (left >= offloaded->units[passage->u][state].n_blocks)
        left -= offloaded->units[passage->u][state++].n_blocks;
    *at = weft_exec_state_at(&passage->unit->nn, (enum weft_state)state) +
          left * block_bytes(offloaded);
    *bytes = bytes_of(offloaded, passage->u, left);
    struct offloaded_ring *ring =
        &offloaded->rings[direction == WEFT_STORE_READ ? 0 : offloaded->ring.lanes - 1];
    return (struct passing){offloaded,
                            ring,
                            direction,
                            (int32_t)(k % offloaded->ring.seats),
                            offloaded->units[passage->u][state].first_block + left,
                            passage->exec->periods};
}

static unsigned char *memory_of(const struct passing *passing)
{
    return seat_of(passing).at;
}

/* Copies a block's used bytes between the arena and its seat. */
static void push_copy(const struct passage *passage, const struct passing *passing, void *at,
                      int64_t bytes)
{
    struct weft_arena *arena = passage->exec->arena;
    const bool down = passing->direction == WEFT_STORE_WRITE;
    unsigned char *seat = memory_of(passing);
    if (weft_arena_copies_by_itself(arena)) {
        const struct weft_arena_copy copy = {.direction = down ? WEFT_COPY_DOWN : WEFT_COPY_UP,
                                             .n = 1,
                                             .at = {at},
                                             .outside = {{seat, bytes}}};
        weft_arena_copy(arena, passage->stream, &copy);
    } else if (down) {
        weft_arena_read(arena, passage->stream, at, bytes, seat);
    } else {
        weft_arena_write(arena, passage->stream, at, seat, bytes);
    }
}

void weft_exec_push_read(struct weft_exec *exec, struct weft_stream *stream,
                         const struct exec_unit *unit)
{
    const struct passage passage = passage_of(exec, stream, unit);
    const int32_t seats = exec->offloaded->ring.seats;
    for (int64_t k = 0; k < passage.n + seats; k++) {
        unsigned char *at;
        int64_t bytes;
        if (k >= seats) {
            const struct passing there =
                block_of(&passage, WEFT_STORE_READ, k - seats, &at, &bytes);
            weft_stream_push(passage.stream, wait_for_seat, &there, sizeof there);
            push_copy(&passage, &there, at, bytes);
        }
        if (k >= passage.n) continue;
        const struct passing next = block_of(&passage, WEFT_STORE_READ, k, &at, &bytes);
        weft_stream_push(passage.stream, submit_block, &next, sizeof next);
    }
}

void weft_exec_push_write(struct weft_exec *exec, struct weft_stream *stream,
                          const struct exec_unit *unit)
{
    const struct passage passage = passage_of(exec, stream, unit);
    const int32_t seats = exec->offloaded->ring.seats;
    for (int64_t k = 0; k < passage.n + seats; k++) {
        unsigned char *at;
        int64_t bytes;
        if (k >= seats) {
            const struct passing gone =
                block_of(&passage, WEFT_STORE_WRITE, k - seats, &at, &bytes);
            weft_stream_push(passage.stream, wait_for_seat, &gone, sizeof gone);
        }
        if (k >= passage.n) continue;
        const struct passing next = block_of(&passage, WEFT_STORE_WRITE, k, &at, &bytes);
        push_copy(&passage, &next, at, bytes);
        weft_stream_push(passage.stream, submit_block, &next, sizeof next);
    }
}

int32_t weft_exec_offloaded_items(const struct weft_exec *exec)
{
    const int64_t items =
        exec->offloaded == NULL ? 0 : exec->offloaded->most_blocks * ITEMS_A_BLOCK;
    return items < WEFT_STREAM_MOST_QUEUE ? (int32_t)items : WEFT_STREAM_MOST_QUEUE;
}

static unsigned char *window_memory(const struct exec_offloaded *offloaded, int window)
{
    const struct weft_ring *ring = &offloaded->ring;
    return offloaded->rings[0].memory +
           (ring->lanes * ring->seats + window) * block_bytes(offloaded);
}

enum weft_status weft_exec_disk_window_open(struct exec_offloaded *offloaded,
                                            struct exec_disk_window **out, struct weft_error *err)
{
    int w = 0;
    while (w < WINDOWS && offloaded->windows[w] != NULL)
        w++;
    if (w == WINDOWS)
        return weft_fail(err, WEFT_E_INTERNAL, "there are %d windows already on offloaded state",
                         w);
    struct exec_disk_window *window = calloc(1, sizeof *window);
    if (window == NULL) return weft_fail_memory(err, "a window on offloaded state");
    window->offloaded = offloaded;
    window->block = -1;
    window->memory = window_memory(offloaded, w);
    offloaded->windows[w] = window;
    *out = window;
    return WEFT_OK;
}

void weft_exec_disk_window_close(struct exec_disk_window *window)
{
    if (window == NULL) return;
    for (int w = 0; w < WINDOWS; w++)
        if (window->offloaded->windows[w] == window) window->offloaded->windows[w] = NULL;
    free(window);
}

static enum weft_status write_block(struct exec_disk_window *window, int64_t block,
                                    struct weft_error *err)
{
    const struct weft_memory_span span = {window->memory, window->offloaded->blocks[block].bytes};
    const int64_t step = window->offloaded->exec->periods;
    int64_t ticket;
    WEFT_TRY(
        weft_store_submit_write(window->offloaded->store, block, step, &span, 1, &ticket, err));
    return weft_store_wait(window->offloaded->store, WEFT_STORE_WRITE, ticket, err);
}

enum weft_status weft_exec_disk_window_leave(struct exec_disk_window *window,
                                             struct weft_error *err)
{
    const int64_t block = window->block;
    const bool changed = window->changed;
    window->block = -1;
    window->changed = false;
    return changed ? write_block(window, block, err) : WEFT_OK;
}

static enum weft_status go_to_block(struct exec_disk_window *window, int64_t block,
                                    struct weft_error *err)
{
    const struct weft_memory_span span = {window->memory, window->offloaded->blocks[block].bytes};
    int64_t ticket;
    if (window->block == block) return WEFT_OK;
    WEFT_TRY(weft_exec_disk_window_leave(window, err));
    WEFT_TRY(weft_store_submit_read(window->offloaded->store, block, &span, 1, &ticket, err));
    WEFT_TRY(weft_store_wait(window->offloaded->store, WEFT_STORE_READ, ticket, err));
    window->block = block;
    return WEFT_OK;
}

enum weft_status weft_exec_disk_window_move(struct exec_disk_window *window,
                                            const struct exec_elements *elements, float *out,
                                            const float *values, struct weft_error *err)
{
    const struct offloaded_state *state =
        &window->offloaded->units[elements->unit][elements->state];
    const int64_t from = elements->from, n = elements->n;
    const int64_t size = sizeof(float), in_block = block_bytes(window->offloaded) / size;
    for (int64_t done = 0; done < n;) {
        const int64_t block = (from + done) / in_block, first = (from + done) % in_block;
        const int64_t count = n - done < in_block - first ? n - done : in_block - first;
        unsigned char *at = window->memory + first * size;
        WEFT_TRY(go_to_block(window, state->first_block + block, err));
        if (out != NULL) {
            memcpy(out + done, at, (size_t)(count * size));
        } else {
            memcpy(at, values + done, (size_t)(count * size));
            window->changed = true;
        }
        done += count;
    }
    return WEFT_OK;
}

enum weft_status weft_exec_offloaded_clear(struct exec_offloaded *offloaded, struct weft_error *err)
{
    struct exec_disk_window *window = NULL;
    WEFT_TRY(weft_exec_disk_window_open(offloaded, &window, err));
    memset(window->memory, 0, (size_t)block_bytes(offloaded));
    enum weft_status status = WEFT_OK;
    for (int64_t block = 0; block < offloaded->n_blocks && status == WEFT_OK; block++)
        status = write_block(window, block, err);
    weft_exec_disk_window_close(window);
    return status;
}

int64_t weft_exec_offloaded_ring_bytes(const struct exec_offloaded *offloaded)
{
    return offloaded == NULL ? 0 : weft_tier_resident_bytes(offloaded->tier);
}

int64_t weft_exec_offloaded_file_bytes(const struct exec_offloaded *offloaded)
{
    return offloaded == NULL ? 0 : weft_store_bytes(offloaded->store);
}

void weft_exec_offloaded_warn(struct exec_offloaded *offloaded)
{
    if (offloaded == NULL || offloaded->warned) return;
    offloaded->warned = true;
    weft_store_warn(offloaded->store);
    weft_tier_warn(offloaded->tier);
}
