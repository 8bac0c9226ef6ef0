/* A certificate proves a plan's bound to whoever holds the plan, without a solver. It is a tree
 * over the decisions' strategies, over how many decisions of a group have some (counts), and over
 * how far items have got by a slot (milestones), whose leaves cover all plans there are, and prices
 * for each leaf (proof/prices.h), which bound the plans of its box (proof/box.h). The least bound
 * of all leaves is proven, whoever found the tree and the prices. */
#ifndef WEFT_PROOF_CERTIFICATE_H
#define WEFT_PROOF_CERTIFICATE_H

#include <stdint.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"
#include "proof/prices.h"

enum weft_node_kind { WEFT_NODE_LEAF, WEFT_NODE_STRATEGIES, WEFT_NODE_MILESTONE, WEFT_NODE_COUNT };

/* A node of a tree in preorder: an inner node is followed by the subtree of plans in which
 * `decision` has one of `strategies`, or which reach the milestone or the count, then by that of
 * all others. */
struct weft_certificate_node {
    enum weft_node_kind kind;
    int32_t prices;                  /* of a leaf */
    int32_t decision;                /* of strategies */
    uint64_t strategies;             /* bit p */
    struct weft_milestone milestone; /* whose `reached` is not looked at; nor is that of: */
    struct weft_count count;
};

struct weft_certificate {
    int32_t n_groups;
    const struct weft_group *groups;
    int32_t n_prices;
    struct weft_prices *prices;
    int32_t n_nodes; /* 0: there is no certificate, and no bound */
    struct weft_certificate_node *nodes;
    struct weft_hash problem; /* that it was made for */
};

/* Hashes all that a plan's problem is, in its JSON form; {0} when memory runs out. */
struct weft_hash weft_problem_hash(const struct weft_problem *problem);

/* A copy in the pool. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_certificate_copy(const struct weft_certificate *from,
                                                     const struct weft_problem *problem,
                                                     struct weft_pool *pool,
                                                     struct weft_certificate *to,
                                                     struct weft_error *err);

/* WEFT_OK when the certificate proves that no plan of the problem takes less than `bound_ns`: its
 * tree is whole and the least bound of its leaves is not below. A bound of 0 needs no certificate.
 * WEFT_E_DATA says which part does not hold. `proven_ns` (may be NULL) is that least bound. Takes a
 * box and its prices a leaf: time in proportion to slots times decisions and items, and to slots
 * times decisions times whole rows; memory for one box and the nodes, whatever the tree. */
WEFT_MUST_USE enum weft_status weft_certificate_check(const struct weft_certificate *certificate,
                                                      const struct weft_problem *problem,
                                                      int64_t bound_ns, int64_t *proven_ns,
                                                      struct weft_error *err);

/* A JSON value, null for none, and back, into the pool. Reading checks form and ranges. */
void weft_certificate_write(const struct weft_certificate *certificate,
                            const struct weft_problem *problem, struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_certificate_read(
    const struct weft_json_value *value, const char *where, const struct weft_problem *problem,
    struct weft_pool *pool, struct weft_certificate *out, struct weft_error *err);

#endif
