/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/host.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "offload/tier.h"
#include "runtime/comm/claims.h"
#include "runtime/exec/parts.h"

struct exec_host {
    const struct weft_exec *exec;
    struct weft_tier *tier;
    struct weft_copier *copier; /* NULL: the device copies by itself */
    bool pinned;                /* the tier is */
    int64_t pages;
    unsigned char *saved; /* layers' activations and inputs, by the program's places; NULL: none */
    struct weft_memory_span (*units)[EXEC_HOST_PARTS]; /* [n_units] */
    int64_t copied_bytes[WEFT_COPY_DIRECTIONS];
    bool warned;
};

static int64_t pages_of(int64_t bytes)
{
    return (bytes + WEFT_HOST_PAGE_BYTES - 1) / WEFT_HOST_PAGE_BYTES;
}

/* Bytes of a unit's part on the host; 0: none. */
static int64_t bytes_there(const struct exec_unit *unit, int part)
{
    const int64_t elements = unit->state_bytes.end / (int64_t)sizeof(float);
    if (part == EXEC_HOST_PARAMETERS && unit->fetches) return unit->parameter_bytes.end;
    if (unit->location != WEFT_LOCATION_HOST) return 0;
    if (part < WEFT_STATE_COUNT) return unit->states[part] ? unit->state_bytes.end : 0;
    if (!unit->on_host) return 0;
    if (part == EXEC_HOST_GRADIENT) return elements * weft_dtype_bytes(unit->nn.gradient_dtype);
    return unit->nn.dtype == WEFT_F32 ? 0 : elements * weft_dtype_bytes(unit->nn.dtype);
}

static enum weft_status take_pages(struct exec_host *host, const struct exec_unit *unit, int part,
                                   struct weft_error *err)
{
    const int64_t bytes = bytes_there(unit, part);
    if (bytes == 0) return WEFT_OK;
    return weft_tier_take(host->tier, bytes, &host->units[unit->index][part], err);
}

static enum weft_status take_saved(struct exec_host *host, struct weft_error *err)
{
    const int64_t bytes = host->exec->options.program->host_bytes;
    struct weft_memory_span span;
    if (bytes == 0) return WEFT_OK;
    WEFT_TRY(weft_tier_take(host->tier, bytes, &span, err));
    host->saved = span.at;
    return WEFT_OK;
}

/* An emulated link paces copies by the wall clock. With a virtual clock the stream advances. */
static struct weft_copy_link link_of(const struct weft_exec *exec, const struct weft_link *link)
{
    const bool wall = weft_device_clock(exec->options.device) == WEFT_CLOCK_WALL;
    return (struct weft_copy_link){wall && exec->options.config->cluster.emulate_link,
                                   link->alpha_ns, link->bytes_per_s > 0 ? link->bytes_per_s : 1};
}

static enum weft_status create_copier(struct exec_host *host, struct weft_error *err)
{
    const struct weft_exec *exec = host->exec;
    const struct weft_cluster *cluster = &exec->options.config->cluster;
    const struct weft_copier_options copies = {
        .links = {[WEFT_COPY_DOWN] = link_of(exec, &cluster->host.down),
                  [WEFT_COPY_UP] = link_of(exec, &cluster->host.up)},
        .requests = 1, /* a stream waits for its own copy */
        .spans = WEFT_STATE_COUNT,
        .timeout_ns = weft_cluster_timeout_ns(cluster),
    };
    return weft_copier_create(&copies, &host->copier, err);
}

/* Pins the tier once and whole. Pinning is slow, and a copy cannot cross pinned parts. */
static enum weft_status pin_tier(struct exec_host *host, struct weft_error *err)
{
    const struct weft_exec *exec = host->exec;
    const struct weft_memory_span memory = weft_tier_memory(host->tier);
    const int64_t begin_ns = weft_clock_now_ns();
    char bytes[WEFT_UNITS_TEXT_BYTES];
    WEFT_TRY(weft_arena_pin(exec->arena, memory, err));
    host->pinned = true;
    if (exec->rank == 0) /* rank 0 logs for all */
        weft_log(WEFT_LOG_INFO, "the host's tier: %s a rank, pinned in %.2f s",
                 weft_units_show_bytes(memory.bytes, bytes),
                 (double)(weft_clock_now_ns() - begin_ns) / 1e9);
    return WEFT_OK;
}

/* Ranks check before any touches a page: one page too many would end a rank by a signal. Nodes on
 * their own may share a machine, so ranks of all nodes are asked. */
static enum weft_status check_ranks(const struct exec_host *host, struct weft_error *err)
{
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    struct weft_excess excess;
    WEFT_TRY(
        weft_comm_claim_memory(host->exec->options.comm, weft_exec_host_bytes(host), &excess, err));
    if (excess.ranks == 0) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_SYSTEM,
        "%d rank%s%s%s take%s %s of the host's memory together, and %s can be had (%s): lower "
        "cluster.host.memory_limit, start fewer ranks, or give this job more memory",
        excess.ranks, excess.ranks > 1 ? "s" : "", excess.host[0] != '\0' ? " of host " : "",
        excess.host, excess.ranks > 1 ? "" : "s", weft_units_show_bytes(excess.amount, want),
        weft_units_show_bytes(excess.left, most), excess.name);
}

static enum weft_status open_host(struct exec_host *host, struct weft_error *err)
{
    const struct weft_exec *exec = host->exec;
    const int32_t n_units = exec->options.program->n_units;
    host->units = calloc((size_t)n_units, sizeof *host->units);
    if (host->units == NULL) return weft_fail_memory(err, "state in the host's memory");
    host->pages = pages_of(exec->options.program->host_bytes);
    for (int32_t u = 0; u < n_units; u++)
        for (int part = 0; part < EXEC_HOST_PARTS; part++)
            host->pages += pages_of(bytes_there(&exec->units[u], part));
    const struct weft_tier_options options = {
        .name = "host", .page_bytes = WEFT_HOST_PAGE_BYTES, .pages = host->pages};
    WEFT_TRY(check_ranks(host, err));
    WEFT_TRY(weft_tier_create(&options, &host->tier, err));
    WEFT_TRY(take_saved(host, err));
    for (int32_t u = 0; u < n_units; u++)
        for (int part = 0; part < EXEC_HOST_PARTS; part++)
            WEFT_TRY(take_pages(host, &exec->units[u], part, err));
    return weft_arena_copies_by_itself(exec->arena) ? pin_tier(host, err)
                                                    : create_copier(host, err);
}

enum weft_status weft_exec_host_create(const struct weft_exec *exec, struct exec_host **out,
                                       struct weft_error *err)
{
    const struct weft_cluster *cluster = &exec->options.config->cluster;
    if (!weft_exec_has_location(exec, WEFT_LOCATION_HOST) &&
        exec->options.program->host_bytes == 0 && !weft_exec_fetches(exec))
        return WEFT_OK;
    if (!cluster->host.given)
        return weft_fail(err, WEFT_E_DATA,
                         "the program keeps bytes in the host's memory: give cluster.host");
    struct exec_host *host = calloc(1, sizeof *host);
    if (host == NULL) return weft_fail_memory(err, "state in the host's memory");
    host->exec = exec;
    const enum weft_status status = open_host(host, err);
    if (status != WEFT_OK) {
        weft_exec_host_destroy(host);
        return status;
    }
    *out = host;
    return WEFT_OK;
}

void weft_exec_host_destroy(struct exec_host *host)
{
    if (host == NULL) return;
    weft_copier_destroy(host->copier);
    if (host->pinned) weft_arena_unpin(host->exec->arena, weft_tier_memory(host->tier));
    weft_tier_destroy(host->tier);
    free(host->units);
    free(host);
}

void weft_exec_push_copy(struct weft_exec *exec, struct weft_stream *stream,
                         enum weft_copy_direction direction, const struct exec_unit *unit,
                         int64_t from, int64_t bytes)
{
    struct exec_host *host = exec->host;
    struct weft_arena_copy copy = {.copier = host->copier, .direction = direction};
    for (int state = 0; state < WEFT_STATE_COUNT; state++) {
        const struct weft_memory_span whole = host->units[unit->index][state];
        if (whole.bytes == 0) continue;
        const struct weft_memory_span span = {(unsigned char *)whole.at + from, bytes};
        copy.at[copy.n] = weft_exec_state_at(&unit->nn, (enum weft_state)state) + from;
        copy.outside[copy.n++] = span;
        host->copied_bytes[direction] += span.bytes;
    }
    weft_arena_copy(exec->arena, stream, &copy);
}

void weft_exec_push_saved(struct weft_exec *exec, struct weft_stream *stream,
                          enum weft_copy_direction direction, const struct exec_saved *saved)
{
    unsigned char *there = exec->host->saved + saved->on_host;
    weft_exec_push_host_copy(exec, stream, direction, saved->at,
                             (struct weft_memory_span){there, saved->bytes});
}

void weft_exec_push_slice(struct weft_exec *exec, struct weft_stream *stream,
                          enum weft_copy_direction direction, const struct exec_slice *slice)
{
    unsigned char *there = exec->host->units[slice->unit][EXEC_HOST_PARAMETERS].at;
    weft_exec_push_host_copy(exec, stream, direction, slice->at,
                             (struct weft_memory_span){there + slice->from, slice->bytes});
}

struct weft_memory_span weft_exec_host_part(const struct exec_host *host, int32_t unit,
                                            enum exec_host_part part)
{
    return host->units[unit][part];
}

void weft_exec_push_host_copy(struct weft_exec *exec, struct weft_stream *stream,
                              enum weft_copy_direction direction, void *at,
                              struct weft_memory_span there)
{
    struct exec_host *host = exec->host;
    const struct weft_arena_copy copy = {
        .copier = host->copier, .direction = direction, .n = 1, .at = {at}, .outside = {there}};
    host->copied_bytes[direction] += there.bytes;
    weft_arena_copy(exec->arena, stream, &copy);
}

static float *elements_at(const struct exec_host *host, const struct exec_elements *elements)
{
    unsigned char *at = host->units[elements->unit][elements->state].at;
    return (float *)(void *)at + elements->from;
}

void weft_exec_host_read(const struct exec_host *host, const struct exec_elements *elements,
                         float *out)
{
    memcpy(out, elements_at(host, elements), (size_t)elements->n * sizeof *out);
}

void weft_exec_host_write(struct exec_host *host, const struct exec_elements *elements,
                          const float *values)
{
    memcpy(elements_at(host, elements), values, (size_t)elements->n * sizeof *values);
}

void weft_exec_host_clear(struct exec_host *host)
{
    for (int32_t u = 0; host != NULL && u < host->exec->options.program->n_units; u++)
        for (int part = 0; part < EXEC_HOST_PARTS; part++)
            if (host->units[u][part].bytes > 0)
                memset(host->units[u][part].at, 0, (size_t)host->units[u][part].bytes);
}

int64_t weft_exec_host_bytes(const struct exec_host *host)
{
    return host == NULL ? 0 : host->pages * WEFT_HOST_PAGE_BYTES;
}

int64_t weft_exec_host_resident_bytes(const struct exec_host *host)
{
    return host == NULL ? 0 : weft_tier_resident_bytes(host->tier);
}

int64_t weft_exec_host_copied(const struct exec_host *host, enum weft_copy_direction direction)
{
    return host == NULL ? 0 : host->copied_bytes[direction];
}

void weft_exec_host_warn(struct exec_host *host)
{
    if (host == NULL || host->warned) return;
    host->warned = true;
    weft_tier_warn(host->tier);
}
