/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate proves a plan's bound without a solver. It is a tree over the decisions'
 * strategies, counts of decisions, and milestones of items. Its leaves cover all plans, and each
 * leaf has prices (proof/prices.h) that bound the plans of its box (proof/box.h). A leaf may also
 * state a search of orders (proof/orders.h), which the check repeats. The least bound of all leaves
 * is proven, for any tree and any prices. */
#ifndef WEFT_PROOF_CERTIFICATE_H
#define WEFT_PROOF_CERTIFICATE_H

#include <stdint.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/pool.h"
#include "base/status.h"
#include "proof/prices.h"

enum weft_node_kind { WEFT_NODE_LEAF, WEFT_NODE_STRATEGIES, WEFT_NODE_MILESTONE, WEFT_NODE_COUNT };

/* A node of a tree in preorder. An inner node is followed by the subtree of plans for which its
 * statement is true: `decision` has one of `strategies`, or the milestone or count is reached. Then
 * comes the subtree of all others. */
struct weft_certificate_node {
    enum weft_node_kind kind;
    int32_t prices;                  /* of a leaf */
    int64_t searched_ns, steps;      /* of a leaf: a search in so many steps proves that no plan
                                        takes less; 0: none */
    int32_t decision;                /* of strategies */
    uint64_t strategies;             /* bit p */
    struct weft_milestone milestone; /* `reached` is ignored in milestone and count */
    struct weft_count count;
};

struct weft_certificate {
    int32_t n_groups;
    const struct weft_group *groups;
    int32_t n_prices;
    struct weft_prices *prices;
    int32_t n_nodes; /* 0: no certificate, and no bound */
    struct weft_certificate_node *nodes;
    struct weft_hash problem; /* the hash of its problem */
};

/* Hashes the JSON form of a problem; {0} without memory. */
struct weft_hash weft_problem_hash(const struct weft_problem *problem);

/* Copies a certificate into the pool. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_certificate_copy(const struct weft_certificate *from,
                                                     const struct weft_problem *problem,
                                                     struct weft_pool *pool,
                                                     struct weft_certificate *to,
                                                     struct weft_error *err);

/* WEFT_OK when the certificate proves that no plan of the problem takes less than `bound_ns`. Its
 * tree is then complete, and the least bound of its leaves, *proven_ns (may be NULL), is not below.
 * A bound of 0 needs no certificate. Otherwise WEFT_E_DATA names the part that fails. Prices and
 * statements are of the problem's early form if it has one (problem/early.h).
 *
 * Each leaf takes time in proportion to slots times (decisions and items), and to slots times
 * decisions times whole rows. A search of orders takes time in proportion to its steps. Memory is
 * that of one box, the nodes and one search. */
WEFT_MUST_USE enum weft_status weft_certificate_check(const struct weft_certificate *certificate,
                                                      const struct weft_problem *problem,
                                                      int64_t bound_ns, int64_t *proven_ns,
                                                      struct weft_error *err);

/* The same for plans in pages of page_bytes: the certificate's prices and statements are of the
 * problem in its least pages (problem/pages.h). It names the problem itself. */
WEFT_MUST_USE enum weft_status weft_certificate_check_in_pages(
    const struct weft_certificate *certificate, const struct weft_problem *problem,
    int64_t page_bytes, int64_t bound_ns, int64_t *proven_ns, struct weft_error *err);

extern const struct weft_key_table weft_certificate_keys;
/* Writes a JSON value, null for none, and reads it back into the pool. Reading checks form and
 * ranges. */
void weft_certificate_write(const struct weft_certificate *certificate,
                            const struct weft_problem *problem, struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_certificate_read(
    const struct weft_json_value *value, const char *where, const struct weft_problem *problem,
    struct weft_pool *pool, struct weft_certificate *out, struct weft_error *err);

#endif
