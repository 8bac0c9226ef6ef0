/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's record of a planned period that it does not use: its terms, its bound, and a certificate
 * of the bound. The config and its profile make the problem again, so the record has no more of
 * it. */
#ifndef WEFT_PLAN_VARIANT_H
#define WEFT_PLAN_VARIANT_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/status.h"
#include "problem/problem.h"
#include "proof/certificate.h"

/* No plan of the period is faster than bound_ns. WEFT_PROBLEM_MOST: no plan fits. */
struct weft_plan_variant {
    struct weft_problem *problem; /* owned; only micro_batch, blocks and period are set */
    int64_t bound_ns;             /* 0: not computed */
    int64_t ring_bytes;           /* of its ring for state on a disk; 0: none */
    /* Owned: a certificate's JSON, with the hash of the problem (proof/certificate.h). Its form
     * depends on the problem, so it is read with that. */
    struct weft_json *certificate;
    /* No plan of the period in pages of page_bytes or more is faster than paged_bound_ns, which is
     * above bound_ns; 0: not computed, or no higher. */
    int64_t paged_bound_ns, page_bytes;
    struct weft_json *paged_certificate; /* owned; NULL without that bound */
};

/* Makes a record of the problem and its bound. *out is untouched on failure. */
WEFT_MUST_USE enum weft_status weft_plan_variant_create(const struct weft_problem *problem,
                                                        int64_t bound_ns,
                                                        const struct weft_certificate *certificate,
                                                        struct weft_plan_variant *out,
                                                        struct weft_error *err);
/* Adds a bound in pages. Does nothing if it is no higher than bound_ns. */
WEFT_MUST_USE enum weft_status weft_plan_variant_add_pages(
    struct weft_plan_variant *variant, const struct weft_problem *problem, int64_t paged_bound_ns,
    int64_t page_bytes, const struct weft_certificate *certificate, struct weft_error *err);
/* Moves higher bounds from another record of the period into `variant`. */
void weft_plan_variant_merge(struct weft_plan_variant *variant, struct weft_plan_variant *from);
/* The bound of plans in pages of this size; 0: of any size. */
int64_t weft_plan_variant_bound_ns(const struct weft_plan_variant *variant, int64_t page_bytes);
void weft_plan_variant_finish(struct weft_plan_variant *variant); /* accepts {0} */

/* WEFT_OK when the certificates prove the bounds for this problem. Otherwise WEFT_E_DATA tells the
 * reason, which may be that it was made for another problem. */
WEFT_MUST_USE enum weft_status weft_plan_variant_check(const struct weft_plan_variant *variant,
                                                       const struct weft_problem *problem,
                                                       struct weft_error *err);

extern const struct weft_key_table weft_plan_variant_keys;
/* Reads a JSON object; *out is untouched on failure. */
WEFT_MUST_USE enum weft_status weft_plan_variant_read(const struct weft_json_value *value,
                                                      const char *where, struct weft_pool *pool,
                                                      struct weft_plan_variant *out,
                                                      struct weft_error *err);

#endif
