#include "memory_model/layout/packing.h"

#include <string.h>

int32_t weft_packing_length(struct weft_life life, int32_t n_slots)
{
    int32_t length = life.last - life.first + 1;
    return life.first <= life.last ? length : length + n_slots;
}

bool weft_packing_is_resident(const struct weft_layout_buffer *buffer, int32_t n_slots)
{
    for (int32_t i = 0; i < buffer->n_pieces; i++) {
        if (weft_packing_length(buffer->lives[i], n_slots) != n_slots) return false;
    }
    return true;
}

static bool same_life(struct weft_life a, struct weft_life b)
{
    return a.first == b.first && a.last == b.last;
}

/* Cuts a buffer into runs of pieces with the same life; returns how many. With segments NULL it
 * only counts. */
static int32_t cut(const struct weft_layout_buffer *buffer, int32_t n_slots,
                   struct weft_packing_segment *segments)
{
    int64_t piece_bytes = buffer->bytes / buffer->n_pieces;
    int32_t n = 0;
    for (int32_t i = 0; i < buffer->n_pieces; i++) {
        bool more = i > 0 && same_life(buffer->lives[i], buffer->lives[i - 1]);
        n += !more;
        if (segments == NULL) continue;
        if (more) {
            segments[n - 1].bytes += piece_bytes;
            continue;
        }
        segments[n - 1] = (struct weft_packing_segment){
            .at = i * piece_bytes,
            .bytes = piece_bytes,
            .first = buffer->lives[i].first,
            .length = weft_packing_length(buffer->lives[i], n_slots),
        };
    }
    return n;
}

static void measure(struct weft_packing *packing)
{
    int32_t n_slots = packing->n_slots;
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        struct weft_packing_body *body = &packing->bodies[b];
        packing->total_bytes += body->bytes;
        for (int32_t i = 0; i < body->n_segments; i++) {
            const struct weft_packing_segment *segment = &body->segments[i];
            body->area += (double)segment->bytes * segment->length;
            if (segment->length > body->length) {
                body->first = segment->first;
                body->length = segment->length;
            }
            for (int32_t k = 0, s = segment->first; k < segment->length; k++) {
                packing->slot_bytes[s] += segment->bytes;
                s = s + 1 == n_slots ? 0 : s + 1;
            }
        }
    }
    for (int32_t s = 0; s < n_slots; s++) {
        if (packing->slot_bytes[s] > packing->least_bytes)
            packing->least_bytes = packing->slot_bytes[s];
    }
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        struct weft_packing_body *body = &packing->bodies[b];
        for (int32_t i = 0; i < body->n_segments; i++) {
            const struct weft_packing_segment *segment = &body->segments[i];
            for (int32_t k = 0, s = segment->first; k < segment->length; k++) {
                int64_t bytes = packing->slot_bytes[s];
                if (bytes > body->crowd_bytes) body->crowd_bytes = bytes;
                s = s + 1 == n_slots ? 0 : s + 1;
            }
        }
    }
}

enum weft_status weft_packing_fill(struct weft_packing *packing, struct weft_pool *pool,
                                   const struct weft_layout_buffer *buffers, int32_t n_buffers,
                                   int32_t n_slots, struct weft_error *err)
{
    int32_t n_bodies = 0, n_segments = 0, most_segments = 0;
    for (int32_t i = 0; i < n_buffers; i++) {
        if (buffers[i].bytes == 0 || weft_packing_is_resident(&buffers[i], n_slots)) continue;
        int32_t n = cut(&buffers[i], n_slots, NULL);
        n_bodies++;
        n_segments += n;
        if (n > most_segments) most_segments = n;
    }
    struct weft_packing_segment *segments =
        weft_pool_array(pool, (size_t)n_segments, sizeof *segments);
    *packing = (struct weft_packing){
        .n_slots = n_slots,
        .bodies = weft_pool_array(pool, (size_t)n_bodies, sizeof *packing->bodies),
        .slot_bytes = weft_pool_array(pool, (size_t)n_slots, sizeof *packing->slot_bytes),
        .tenants = weft_pool_array(pool, (size_t)n_segments, sizeof *packing->tenants),
        .offsets = weft_pool_array(pool, (size_t)n_bodies, sizeof *packing->offsets),
        .cursors = weft_pool_array(pool, (size_t)most_segments, sizeof *packing->cursors),
        .best_bytes = INT64_MAX,
        .best_offsets = weft_pool_array(pool, (size_t)n_bodies, sizeof *packing->best_offsets),
    };
    if (segments == NULL || packing->bodies == NULL || packing->slot_bytes == NULL ||
        packing->tenants == NULL || packing->offsets == NULL || packing->cursors == NULL ||
        packing->best_offsets == NULL) {
        return weft_fail_memory(err, "the layout");
    }
    for (int32_t i = 0; i < n_buffers; i++) {
        if (buffers[i].bytes == 0 || weft_packing_is_resident(&buffers[i], n_slots)) continue;
        int32_t n = cut(&buffers[i], n_slots, segments);
        packing->bodies[packing->n_bodies++] = (struct weft_packing_body){
            .buffer = i,
            .n_segments = n,
            .segments = segments,
            .bytes = buffers[i].bytes,
        };
        segments += n;
    }
    measure(packing);
    return WEFT_OK;
}

void weft_packing_clear(struct weft_packing *packing, bool mirrored)
{
    packing->mirrored = mirrored;
    packing->n_tenants = 0;
    packing->end_bytes = 0;
    for (int32_t b = 0; b < packing->n_bodies; b++)
        packing->offsets[b] = -1;
}

static int64_t segment_at(const struct weft_packing *packing, const struct weft_packing_body *body,
                          const struct weft_packing_segment *segment)
{
    return packing->mirrored ? body->bytes - segment->at - segment->bytes : segment->at;
}

static int32_t lower_bound(const struct weft_packing *packing, int64_t begin)
{
    int32_t low = 0, high = packing->n_tenants;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (packing->tenants[middle].begin < begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void weft_packing_put(struct weft_packing *packing, int32_t body, int64_t offset)
{
    const struct weft_packing_body *b = &packing->bodies[body];
    for (int32_t i = 0; i < b->n_segments; i++) {
        const struct weft_packing_segment *segment = &b->segments[i];
        int64_t begin = offset + segment_at(packing, b, segment);
        int32_t at = lower_bound(packing, begin);
        memmove(&packing->tenants[at + 1], &packing->tenants[at],
                (size_t)(packing->n_tenants - at) * sizeof *packing->tenants);
        packing->tenants[at] = (struct weft_packing_tenant){
            .begin = begin,
            .end = begin + segment->bytes,
            .first = segment->first,
            .length = segment->length,
            .body = body,
        };
        packing->n_tenants++;
    }
    packing->offsets[body] = offset;
    if (offset + b->bytes > packing->end_bytes) packing->end_bytes = offset + b->bytes;
}

/* The least begin not below `begin` at which the segment meets no tenant. The tenants before the
 * cursor are known to be out of the way, here and further up. */
static int64_t rise(struct weft_packing *packing, const struct weft_packing_segment *segment,
                    int64_t begin, int32_t *cursor)
{
    int32_t i = *cursor;
    for (; i < packing->n_tenants; i++) {
        const struct weft_packing_tenant *tenant = &packing->tenants[i];
        if (tenant->begin >= begin + segment->bytes) break;
        if (tenant->end <= begin) continue;
        if (weft_packing_meet(segment, tenant, packing->n_slots)) begin = tenant->end;
    }
    packing->work += i - *cursor + 1;
    *cursor = i;
    return begin;
}

bool weft_packing_place(struct weft_packing *packing, int32_t body, int64_t limit_bytes)
{
    const struct weft_packing_body *b = &packing->bodies[body];
    int64_t offset = 0;
    for (int32_t i = 0; i < b->n_segments; i++)
        packing->cursors[i] = 0;
    /* Each segment lifts the whole body; done when all agree. */
    for (int32_t agreed = 0, i = 0; agreed < b->n_segments;
         i = i + 1 == b->n_segments ? 0 : i + 1) {
        int64_t at = segment_at(packing, b, &b->segments[i]);
        int64_t begin = rise(packing, &b->segments[i], offset + at, &packing->cursors[i]);
        agreed = begin == offset + at ? agreed + 1 : 1;
        offset = begin - at;
        if (offset > limit_bytes - b->bytes) return false;
    }
    weft_packing_put(packing, body, offset);
    return true;
}

void weft_packing_record(struct weft_packing *packing)
{
    if (packing->mirrored) {
        for (int32_t b = 0; b < packing->n_bodies; b++) {
            packing->offsets[b] =
                packing->end_bytes - packing->offsets[b] - packing->bodies[b].bytes;
        }
        packing->mirrored = false;
    }
    if (packing->end_bytes >= packing->best_bytes) return;
    packing->best_bytes = packing->end_bytes;
    memcpy(packing->best_offsets, packing->offsets,
           (size_t)packing->n_bodies * sizeof *packing->offsets);
}
