/* SPDX-License-Identifier: Apache-2.0 */
/* A proof is a certificate under construction: a tree over strategies, counts and milestones. It
 * grows at its weakest leaf, and each leaf has the best prices found for it. Its bounds are the
 * exact ones of proof/prices.h from the start, so the search prunes by the checker's bounds. */
#ifndef WEFT_SCHEDULER_TREE_PROOF_H
#define WEFT_SCHEDULER_TREE_PROOF_H

#include "proof/orders.h"
#include "scheduler/digest/planner.h"
#include "scheduler/relax/dual.h"

struct weft_proof_node {
    int32_t parent;           /* -1: the root */
    enum weft_node_kind kind; /* kind of the parent's division; LEAF at the root */
    int32_t decision;
    uint64_t strategies; /* left to the decision here */
    struct weft_milestone milestone;
    struct weft_count count;
    int32_t children;        /* the first; the second follows it; 0: a leaf */
    int32_t prices, n_known; /* n_known: prices seen by weft_proof_offer_known */
    int64_t bound_ns;
    int64_t searched_ns, steps; /* of a leaf: weft_proof_search; 0: none */
    int64_t priced_ns;          /* its bound before the search */
    bool closed;                /* a leaf that further work cannot improve */
    bool whole;                 /* stands for all plans of its parent, which is divided no more */
};

struct weft_proof {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    struct weft_work *work;             /* borrowed; NULL: nothing is counted */
    int32_t n_prices, most_prices;
    struct weft_prices *prices;
    struct weft_priced *priced; /* by prices: in the box of the node they were made for */
    struct weft_priced *common; /* by prices: in the root's box, valid in every other */
    int32_t *made_for;          /* by prices: that node */
    int32_t n_nodes, most_nodes;
    struct weft_proof_node *nodes;     /* [0] is the root */
    uint64_t *allowed;                 /* [n_decisions], scratch; and: */
    struct weft_milestone *milestones; /* [most_nodes] */
    struct weft_count *counts;         /* [most_nodes] */
    int32_t n_milestones, n_counts;
    int32_t n_groups;
    const struct weft_group *groups; /* borrowed */
    struct weft_box *box;            /* of the node that weft_proof_enter was called with last */
    struct weft_box *all;            /* of the root; NULL if there is no other node */
};

/* Creates a proof with room for `most_nodes` nodes. Its root has no prices, and the bound 0. */
WEFT_MUST_USE enum weft_status weft_proof_create(const struct weft_problem *problem,
                                                 int32_t most_nodes, struct weft_proof **out,
                                                 struct weft_error *err);
void weft_proof_destroy(struct weft_proof *proof); /* accepts NULL */

/* Sets the groups that counts may name. Call it before there are prices. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_proof_set_groups(struct weft_proof *proof,
                                                     const struct weft_group *groups,
                                                     int32_t n_groups, struct weft_error *err);

/* Makes proof->box the box of a node. */
void weft_proof_enter(struct weft_proof *proof, int32_t node);

/* Makes proof->box the box of a descendant that the node would have by the `path`. Each entry has a
 * kind, and a decision with strategies, a milestone or a count. At least one strategy of each
 * decision must be left. */
void weft_proof_enter_below(struct weft_proof *proof, int32_t node,
                            const struct weft_proof_node *path, int32_t n_path);

/* Gives a leaf the dual's point as its prices if they prove more than its present prices. */
WEFT_MUST_USE enum weft_status weft_proof_offer(struct weft_proof *proof, int32_t node,
                                                const struct weft_dual *dual,
                                                struct weft_error *err);

/* Offers a leaf prices of other nodes that it was not offered before. *better: some prove more than
 * its present prices. It costs little compared with making prices. */
WEFT_MUST_USE enum weft_status weft_proof_offer_known(struct weft_proof *proof, int32_t node,
                                                      bool *better, struct weft_error *err);

/* Bounds a leaf by its prices in its own box. They may prove more there than in the box that they
 * were made for. */
WEFT_MUST_USE enum weft_status weft_proof_reprice(struct weft_proof *proof, int32_t node,
                                                  struct weft_error *err);

/* Computes the bound of a node's prices in its own box. */
WEFT_MUST_USE enum weft_status weft_proof_measure(struct weft_proof *proof, int32_t node,
                                                  int64_t *bound_ns, struct weft_error *err);

/* *yes: the node's prices reach the bound in its box and in every smaller one, because all counts
 * that they need are known. Or its search did in the box that it still has. */
WEFT_MUST_USE enum weft_status weft_proof_reaches(struct weft_proof *proof, int32_t node,
                                                  int64_t bound_ns, bool *yes,
                                                  struct weft_error *err);

/* Offers the root prices that need no search. Each lambda of one channel is 1 and all other prices
 * are 0, or all prices are 0. The channel does not overlap with itself, nor compute with compute.
 * *by names the better one ("channel", "compute"). */
WEFT_MUST_USE enum weft_status weft_proof_offer_trivial(struct weft_proof *proof,
                                                        struct weft_dual *dual, const char **by,
                                                        struct weft_error *err);

/* Dual ascent towards the step of a plan, with at most so many units of work. */
struct weft_ascent {
    int64_t target_ns, units;
    struct weft_work *work; /* is spent; may be NULL */
};

/* Fills the outcome's bound, its reason and its certificate (in the pool) without a plan or a
 * search. The reason is compute alone, the channel alone, ascent (NULL: none), or that no plan
 * fits. The bound is WEFT_PROBLEM_MOST if none fits. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_prove(const struct weft_problem *problem,
                                          const struct weft_ascent *ascent, struct weft_pool *pool,
                                          struct weft_outcome *outcome, struct weft_error *err);
/* The same with the problem's digest, without ascent. `quick`: in less time, without strategies
 * ruled out by rows.
 */
WEFT_MUST_USE enum weft_status weft_proof_trivial(const struct weft_digest *table, bool quick,
                                                  struct weft_pool *pool,
                                                  struct weft_outcome *outcome,
                                                  struct weft_error *err);

/* The same, with ascent. */
WEFT_MUST_USE enum weft_status weft_proof_ascended(const struct weft_digest *table,
                                                   const struct weft_ascent *ascent,
                                                   struct weft_pool *pool,
                                                   struct weft_outcome *outcome,
                                                   struct weft_error *err);

/* Searches orders of a leaf's plans for a step below `below_ns`. Takes the steps from *steps, which
 * are at most WEFT_ORDERS_MOST_STEPS, and spends their work and that of a check. Without such an
 * order the leaf has this bound. A tree must not grow any more after a search. */
WEFT_MUST_USE enum weft_status weft_proof_search(struct weft_proof *proof, int32_t node,
                                                 struct weft_orders *orders, int64_t below_ns,
                                                 int64_t *steps, enum weft_orders_end *end,
                                                 struct weft_error *err);

/* Divides a leaf into `strategies` of the decision and its other strategies. The children start
 * with their parent's prices. False if there is no room, or if one of them would have no
 * strategy. */
bool weft_proof_branch(struct weft_proof *proof, int32_t node, int32_t decision,
                       uint64_t strategies);

/* Divides a leaf into plans that reach the milestone or count, and all others. False if there is no
 * room. */
bool weft_proof_branch_at(struct weft_proof *proof, int32_t node,
                          const struct weft_milestone *milestone);
bool weft_proof_branch_count(struct weft_proof *proof, int32_t node,
                             const struct weft_count *count);

/* The open leaf with the least bound; -1 when all are closed. */
int32_t weft_proof_weakest(const struct weft_proof *proof);

/* The leaf with the least bound of all, and that bound, which the proof proves. */
int32_t weft_proof_least(const struct weft_proof *proof);
int64_t weft_proof_bound_ns(const struct weft_proof *proof);

/* The certificate, in the pool. */
WEFT_MUST_USE enum weft_status weft_proof_certificate(const struct weft_proof *proof,
                                                      struct weft_pool *pool,
                                                      struct weft_certificate *out,
                                                      struct weft_error *err);

#endif
