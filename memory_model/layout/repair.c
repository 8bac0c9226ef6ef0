#include "memory_model/layout/repair.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

/* Offsets between `begin` and `end`, both exclusive, put the body onto some tenant. */
struct edge {
    int64_t at;
    int64_t weight; /* of that tenant's body */
};

/* Edges in runs that increase. */
struct edges {
    int32_t n, n_runs;
    struct edge *edges, *scratch;
    int32_t *ends; /* by run: one past its last edge */
};

struct repair {
    struct weft_packing *packing;
    int64_t ceiling_bytes;
    int64_t
        parts; /* the ceiling is lowered by one of so many parts of what is above the live sum */
    int32_t n_tenants;
    struct weft_packing_tenant *by_begin, *by_end;
    int64_t *base_weights, *weights; /* by body */
    int32_t n_out;
    int32_t *out; /* bodies without a place */
    struct edges begins, ends;
    int64_t *equal; /* offsets that cost the same */
    uint64_t draws;
    int64_t work;
};

static int32_t bound(const struct weft_packing_tenant *tenants, int32_t n, bool by_end, int64_t key)
{
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int64_t at = by_end ? tenants[middle].end : tenants[middle].begin;
        if (at < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert(struct weft_packing_tenant *tenants, int32_t n, int32_t at,
                   const struct weft_packing_tenant *tenant)
{
    memmove(&tenants[at + 1], &tenants[at], (size_t)(n - at) * sizeof *tenants);
    tenants[at] = *tenant;
}

static void put(struct repair *repair, int32_t body, int64_t offset)
{
    const struct weft_packing_body *b = &repair->packing->bodies[body];
    for (int32_t i = 0; i < b->n_segments; i++) {
        const struct weft_packing_segment *segment = &b->segments[i];
        int64_t begin = offset + segment->at;
        struct weft_packing_tenant tenant = {.begin = begin,
                                             .end = begin + segment->bytes,
                                             .first = segment->first,
                                             .length = segment->length,
                                             .body = body};
        int32_t n = repair->n_tenants++;
        insert(repair->by_begin, n, bound(repair->by_begin, n, false, tenant.begin), &tenant);
        insert(repair->by_end, n, bound(repair->by_end, n, true, tenant.end), &tenant);
    }
    repair->packing->offsets[body] = offset;
}

static int32_t leave_out(struct weft_packing_tenant *tenants, int32_t n, int32_t body)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (tenants[i].body != body) tenants[kept++] = tenants[i];
    }
    return kept;
}

static void take_out(struct repair *repair, int32_t body)
{
    (void)leave_out(repair->by_begin, repair->n_tenants, body);
    repair->n_tenants = leave_out(repair->by_end, repair->n_tenants, body);
    repair->packing->offsets[body] = -1;
    repair->out[repair->n_out++] = body;
}

/* Appends the run of one segment: where the body's offset would begin or cease to put the segment
 * onto each tenant. */
static void add_run(struct repair *repair, const struct weft_packing_segment *segment, bool ends)
{
    struct edges *edges = ends ? &repair->ends : &repair->begins;
    const struct weft_packing_tenant *tenants = ends ? repair->by_end : repair->by_begin;
    int32_t n = edges->n, n_slots = repair->packing->n_slots;
    for (int32_t i = 0; i < repair->n_tenants; i++) {
        const struct weft_packing_tenant *tenant = &tenants[i];
        if (!weft_packing_meet(segment, tenant, n_slots)) continue;
        edges->edges[n++] = (struct edge){
            .at = ends ? tenant->end - segment->at : tenant->begin - segment->at - segment->bytes,
            .weight = repair->weights[tenant->body],
        };
    }
    edges->n = n;
    edges->ends[edges->n_runs++] = n;
    repair->work += repair->n_tenants;
}

static void merge_pair(const struct edge *edges, int32_t begin, int32_t middle, int32_t end,
                       struct edge *out)
{
    int32_t a = begin, b = middle;
    for (int32_t i = begin; i < end; i++)
        out[i] = b == end || (a < middle && edges[a].at <= edges[b].at) ? edges[a++] : edges[b++];
}

static void merge_runs(struct edges *edges)
{
    while (edges->n_runs > 1) {
        int32_t n_runs = 0, begin = 0;
        for (int32_t r = 0; r < edges->n_runs; r += 2) {
            int32_t middle = edges->ends[r];
            int32_t end = r + 1 < edges->n_runs ? edges->ends[r + 1] : middle;
            merge_pair(edges->edges, begin, middle, end, edges->scratch);
            edges->ends[n_runs++] = begin = end;
        }
        edges->n_runs = n_runs;
        struct edge *swap = edges->edges;
        edges->edges = edges->scratch;
        edges->scratch = swap;
    }
}

/* The offset below the ceiling at which the least weight is in the way, by chance among equals. */
static int64_t find_place(struct repair *repair, int32_t body, int64_t *least_weight)
{
    const struct weft_packing_body *b = &repair->packing->bodies[body];
    struct edges *begins = &repair->begins, *ends = &repair->ends;
    begins->n = begins->n_runs = ends->n = ends->n_runs = 0;
    for (int32_t i = 0; i < b->n_segments; i++) {
        add_run(repair, &b->segments[i], false);
        add_run(repair, &b->segments[i], true);
    }
    merge_runs(begins);
    merge_runs(ends);
    repair->work += begins->n + 64; /* the draws */
    int64_t highest = repair->ceiling_bytes - b->bytes, offset = 0, weight = 0;
    size_t n_equal = 0;
    *least_weight = INT64_MAX;
    for (int32_t i = 0, k = 0;;) {
        while (i < begins->n && begins->edges[i].at < offset)
            weight += begins->edges[i++].weight;
        while (k < ends->n && ends->edges[k].at <= offset)
            weight -= ends->edges[k++].weight;
        if (weight < *least_weight) n_equal = 0;
        if (weight <= *least_weight) {
            *least_weight = weight;
            repair->equal[n_equal++] = offset;
        }
        if (offset >= highest) break;
        /* On to where it would next touch a tenant from below or from above. */
        while (i < begins->n && begins->edges[i].at == offset)
            weight += begins->edges[i++].weight;
        offset = highest;
        if (i < begins->n && begins->edges[i].at < offset) offset = begins->edges[i].at;
        if (k < ends->n && ends->edges[k].at < offset) offset = ends->edges[k].at;
    }
    return repair->equal[weft_rng_below(1, 0, repair->draws++, n_equal)];
}

/* Takes out whatever the body at the offset would lie on. */
static void clear_place(struct repair *repair, int32_t body, int64_t offset)
{
    const struct weft_packing_body *b = &repair->packing->bodies[body];
    for (int32_t s = 0; s < b->n_segments; s++) {
        const struct weft_packing_segment *segment = &b->segments[s];
        int64_t begin = offset + segment->at, end = begin + segment->bytes;
        for (int32_t i = bound(repair->by_end, repair->n_tenants, true, begin + 1);
             i < repair->n_tenants;) {
            const struct weft_packing_tenant *tenant = &repair->by_end[i];
            if (tenant->begin >= end ||
                !weft_packing_meet(segment, tenant, repair->packing->n_slots)) {
                i++;
                continue;
            }
            take_out(repair, tenant->body);
            i = bound(repair->by_end, repair->n_tenants, true, begin + 1);
        }
    }
    repair->work += b->n_segments * repair->n_tenants;
}

/* Everything has its place: records it, and takes out what a lower ceiling would cut. */
static void lower_ceiling(struct repair *repair)
{
    struct weft_packing *packing = repair->packing;
    packing->end_bytes = repair->by_end[repair->n_tenants - 1].end;
    weft_packing_record(packing);
    int64_t above_bytes = packing->best_bytes - packing->least_bytes;
    int64_t step_bytes = (above_bytes / repair->parts + 255) / 256 * 256;
    repair->ceiling_bytes = packing->best_bytes - step_bytes;
    if (repair->ceiling_bytes < packing->least_bytes) repair->ceiling_bytes = packing->least_bytes;
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        if (packing->offsets[b] + packing->bodies[b].bytes > repair->ceiling_bytes)
            take_out(repair, b);
    }
}

static void step(struct repair *repair)
{
    int32_t pick = (int32_t)weft_rng_below(2, 0, repair->draws++, (uint64_t)repair->n_out);
    int32_t body = repair->out[pick];
    repair->out[pick] = repair->out[--repair->n_out];
    int64_t weight;
    int64_t offset = find_place(repair, body, &weight);
    if (weight > 0) {
        repair->weights[body] += repair->base_weights[body];
        clear_place(repair, body, offset);
    }
    put(repair, body, offset);
}

/* The smaller and shorter of two bodies in the way goes: it finds another place sooner. */
static void set_weights(struct repair *repair)
{
    const struct weft_packing *packing = repair->packing;
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        const struct weft_packing_body *body = &packing->bodies[b];
        double part = (double)body->bytes / (double)packing->least_bytes;
        double size = sqrt(part) * sqrt(sqrt(part)) * body->length / packing->n_slots;
        repair->base_weights[b] = 1 + (int64_t)(size * (1 << 24));
        repair->weights[b] = repair->base_weights[b];
    }
}

static enum weft_status start_edges(struct edges *edges, struct weft_pool *pool, size_t most,
                                    size_t most_runs, struct weft_error *err)
{
    edges->edges = weft_pool_array(pool, most, sizeof *edges->edges);
    edges->scratch = weft_pool_array(pool, most, sizeof *edges->scratch);
    edges->ends = weft_pool_array(pool, most_runs, sizeof *edges->ends);
    if (edges->edges == NULL || edges->scratch == NULL || edges->ends == NULL)
        return weft_fail_memory(err, "the layout");
    return WEFT_OK;
}

/* All segments, and of one body the most. */
static void count_segments(const struct weft_packing *packing, size_t *all, size_t *most)
{
    *all = 0;
    *most = 1;
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        size_t n = (size_t)packing->bodies[b].n_segments;
        *all += n;
        if (n > *most) *most = n;
    }
}

static enum weft_status start(struct repair *repair, struct weft_pool *pool, size_t n_segments,
                              size_t most_segments, struct weft_error *err)
{
    size_t n_bodies = (size_t)repair->packing->n_bodies, n_edges = n_segments * most_segments;
    WEFT_TRY(start_edges(&repair->begins, pool, n_edges, most_segments, err));
    WEFT_TRY(start_edges(&repair->ends, pool, n_edges, most_segments, err));
    repair->by_begin = weft_pool_array(pool, n_segments, sizeof *repair->by_begin);
    repair->by_end = weft_pool_array(pool, n_segments, sizeof *repair->by_end);
    repair->base_weights = weft_pool_array(pool, n_bodies, sizeof *repair->base_weights);
    repair->weights = weft_pool_array(pool, n_bodies, sizeof *repair->weights);
    repair->equal = weft_pool_array(pool, 2 * n_edges + 2, sizeof *repair->equal);
    repair->out = weft_pool_array(pool, n_bodies, sizeof *repair->out);
    if (repair->by_begin == NULL || repair->by_end == NULL || repair->base_weights == NULL ||
        repair->weights == NULL || repair->equal == NULL || repair->out == NULL) {
        return weft_fail_memory(err, "the layout");
    }
    return WEFT_OK;
}

/* From the best packing so far, with nothing learnt. */
static void start_again(struct repair *repair, int64_t parts)
{
    repair->parts = parts;
    repair->n_tenants = repair->n_out = 0;
    set_weights(repair);
    for (int32_t b = 0; b < repair->packing->n_bodies; b++)
        put(repair, b, repair->packing->best_offsets[b]);
}

enum weft_status weft_packing_repair(struct weft_packing *packing, struct weft_pool *pool,
                                     int64_t work_limit, struct weft_error *err)
{
    /* After so much work in vain, with steps of another size. */
    static const int64_t patience = 50000000, parts[] = {10, 40, 20};
    /* Beyond, a single step would take milliseconds. */
    static const size_t most_edges = (size_t)1 << 22;
    size_t n_segments, most_segments;
    count_segments(packing, &n_segments, &most_segments);
    if (weft_packing_is_dense(packing) || n_segments > most_edges / most_segments) return WEFT_OK;
    struct repair repair = {.packing = packing};
    WEFT_TRY(start(&repair, pool, n_segments, most_segments, err));
    start_again(&repair, parts[0]);
    int64_t since = 0, counted = 0;
    for (size_t tries = 1; !weft_packing_is_dense(packing) && repair.work < work_limit &&
                           !weft_packing_is_over(packing);) {
        if (repair.n_out == 0) {
            lower_ceiling(&repair);
            since = repair.work;
        } else if (repair.work - since > patience) {
            start_again(&repair, parts[tries++ % (sizeof parts / sizeof *parts)]);
            since = repair.work;
        } else {
            step(&repair);
        }
        weft_packing_spend(packing, repair.work - counted);
        counted = repair.work;
    }
    return WEFT_OK;
}
