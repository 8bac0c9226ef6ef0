/* SPDX-License-Identifier: Apache-2.0 */
/* A tier is memory for offloaded state, gradients and saved activations: private memory of this
 * process. It is reserved once, between guard pages, and every page is resident before the first
 * step. It is given out in pages, in order. The address of a page never changes.
 *
 * One thread at a time takes pages. */
#ifndef WEFT_OFFLOAD_TIER_H
#define WEFT_OFFLOAD_TIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/span.h"

struct weft_tier;

struct weft_tier_options {
    const char *name;     /* in errors, for example "host"; outlives the tier */
    int64_t page_bytes;   /* a power of two, at least the system's page */
    int64_t pages;        /* above 0 */
    const int32_t *cores; /* prefer their memory node, if there are several; or NULL */
    int32_t n_cores;
};

/* Allocates zeroed memory, in large pages if possible. WEFT_E_SYSTEM if the machine, a cgroup or a
 * limit of address space has less, with the figure. That happens before any page is touched. */
WEFT_MUST_USE enum weft_status weft_tier_create(const struct weft_tier_options *options,
                                                struct weft_tier **out, struct weft_error *err);
void weft_tier_destroy(struct weft_tier *tier); /* accepts NULL */

/* The whole tier, for pinning. */
struct weft_memory_span weft_tier_memory(const struct weft_tier *tier);

/* Takes the next pages for that many bytes, until the tier is destroyed. WEFT_E_INTERNAL if fewer
 * are left. */
WEFT_MUST_USE enum weft_status weft_tier_take(struct weft_tier *tier, int64_t bytes,
                                              struct weft_memory_span *out, struct weft_error *err);

/* Bytes of the tier that are in memory now. Takes no memory. */
int64_t weft_tier_resident_bytes(const struct weft_tier *tier);

/* Bytes of the tier that are swapped out. Returns false if the system does not say. */
bool weft_tier_swapped_bytes(const struct weft_tier *tier, int64_t *swapped_bytes);

/* Warns through the log if some bytes are swapped out. */
void weft_tier_warn(const struct weft_tier *tier);

#endif
