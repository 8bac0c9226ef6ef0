/* A tier is a region of memory that state, gradients or activations are kept in while they are away
 * from the device: private memory of this process, reserved once between pages that nobody may
 * touch, and every page is there before the first step. It is given out in pages. Nothing in it
 * needs addresses in one piece: a buffer is a list of stretches, and a page is at one address.
 *
 * One thread at a time takes and gives. */
#ifndef WEFT_OFFLOAD_TIER_H
#define WEFT_OFFLOAD_TIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/span.h"

struct weft_tier;

struct weft_tier_options {
    const char *name;     /* in errors, "host"; outlives the tier */
    int64_t page_bytes;   /* a power of two, the system's page at least */
    int64_t pages;        /* above 0 */
    const int32_t *cores; /* whose memory node it is on, where there are several; or NULL */
    int32_t n_cores;
};

/* Zeroed memory, with large pages where there are any. WEFT_E_SYSTEM, before a page is touched,
 * when the machine, a cgroup above this process or a limit of address space has not got as much,
 * with the figure. */
WEFT_MUST_USE enum weft_status weft_tier_create(const struct weft_tier_options *options,
                                                struct weft_tier **out, struct weft_error *err);
void weft_tier_destroy(struct weft_tier *tier); /* accepts NULL */

/* All of it, for whoever pins it. */
struct weft_memory_span weft_tier_memory(const struct weft_tier *tier);
int64_t weft_tier_page_bytes(const struct weft_tier *tier);
int64_t weft_tier_free_pages(const struct weft_tier *tier);

/* Takes the lowest free pages, and writes which in at most `most` stretches, by first page, of
 * which no two follow each other. WEFT_E_INTERNAL, and nothing is taken, when fewer are free or
 * they are in more stretches. */
WEFT_MUST_USE enum weft_status weft_tier_take(struct weft_tier *tier, int64_t pages,
                                              struct weft_stretch *out, int32_t most, int32_t *n,
                                              struct weft_error *err);
/* Gives them back, whose bytes may be any from then on. WEFT_E_INTERNAL, and nothing is given, when
 * one of the pages is not taken. */
WEFT_MUST_USE enum weft_status weft_tier_give(struct weft_tier *tier,
                                              const struct weft_stretch *stretches, int32_t n,
                                              struct weft_error *err);

/* Where bytes [from, from + bytes) of the buffer that the stretches make lie, as at most `most`
 * spans. WEFT_E_INTERNAL when it is shorter, its pages are none of the tier's, or they are in more
 * spans. */
WEFT_MUST_USE enum weft_status weft_tier_spans(const struct weft_tier *tier,
                                               const struct weft_stretch *stretches,
                                               int32_t n_stretches, int64_t from, int64_t bytes,
                                               struct weft_memory_span *out, int32_t most,
                                               int32_t *n, struct weft_error *err);

/* Bytes of the tier that are in memory now. Takes no memory. */
int64_t weft_tier_resident_bytes(const struct weft_tier *tier);

/* Bytes of the tier that the system has swapped out. False where it does not say. */
bool weft_tier_swapped_bytes(const struct weft_tier *tier, int64_t *swapped_bytes);

/* Warns through the log of bytes that the system has swapped out. */
void weft_tier_warn(const struct weft_tier *tier);

#endif
