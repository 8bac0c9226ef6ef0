/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/place.h"

#include <stddef.h>

#include "base/checked.h"

enum order { BY_FIRST, BY_SIZE };
enum { UNPLACED = -1 };

static bool is_before(const struct weft_part *a, const struct weft_part *b, enum order order)
{
    if (order == BY_SIZE && a->bytes != b->bytes) return a->bytes > b->bytes;
    return a->first < b->first;
}

/* The next part without an offset, or NULL. */
static struct weft_part *next_part(struct weft_part *parts, int32_t n, enum order order)
{
    struct weft_part *next = NULL;
    for (int32_t i = 0; i < n; i++)
        if (parts[i].offset == UNPLACED && (next == NULL || is_before(&parts[i], next, order)))
            next = &parts[i];
    return next;
}

/* A placed part that is live together with `part` and has bytes in common with [from, to). */
static const struct weft_part *find_conflict(const struct weft_part *parts, int32_t n,
                                             const struct weft_part *part, int64_t from, int64_t to)
{
    for (int32_t i = 0; i < n; i++) {
        const struct weft_part *other = &parts[i];
        if (other->offset != UNPLACED && other->first <= part->last && part->first <= other->last &&
            other->offset < to && from < other->offset + other->bytes)
            return other;
    }
    return NULL;
}

/* Places all parts in an order. The sum of their bytes fits into 63 bits. */
static int64_t place_in_order(struct weft_part *parts, int32_t n, enum order order)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < n; i++)
        parts[i].offset = UNPLACED;
    for (struct weft_part *part; (part = next_part(parts, n, order)) != NULL;) {
        int64_t at = 0;
        for (const struct weft_part *other;
             (other = find_conflict(parts, n, part, at, at + part->bytes)) != NULL;)
            at = other->offset + other->bytes;
        part->offset = at;
        if (at + part->bytes > bytes) bytes = at + part->bytes;
    }
    return bytes;
}

int64_t weft_place_parts(struct weft_part *parts, int32_t n)
{
    int64_t sum = 0;
    bool fits = true;
    for (int32_t i = 0; i < n; i++) {
        parts[i].offset = -1;
        fits = fits &&
               weft_checked_round_up(parts[i].bytes, WEFT_LAYOUT_ALIGN_BYTES, &parts[i].bytes) &&
               weft_checked_add(sum, parts[i].bytes, &sum);
    }
    if (!fits) return -1;
    const int64_t by_first = place_in_order(parts, n, BY_FIRST),
                  by_size = place_in_order(parts, n, BY_SIZE);
    return by_size <= by_first ? by_size : place_in_order(parts, n, BY_FIRST);
}
