/* A proof is a certificate under construction: a tree over strategies, counts and milestones that
 * grows at its weakest leaf, each leaf with the best prices found for it. Bounds are the exact ones
 * of proof/prices.h from the start, so what a search prunes by is what a checker finds. */
#ifndef WEFT_SCHEDULER_TREE_PROOF_H
#define WEFT_SCHEDULER_TREE_PROOF_H

#include "scheduler/digest/planner.h"
#include "scheduler/relax/dual.h"

struct weft_proof_node {
    int32_t parent;           /* -1: the root */
    enum weft_node_kind kind; /* by what the parent was divided; LEAF at the root */
    int32_t decision;
    uint64_t strategies; /* that are left to the decision here */
    struct weft_milestone milestone;
    struct weft_count count;
    int32_t children;        /* the first; the second is behind it; 0: a leaf */
    int32_t prices, n_known; /* n_known: prices that were looked at by weft_proof_offer_known */
    int64_t bound_ns;
    bool closed; /* a leaf that nothing is to be gained from */
    bool whole;  /* stands for all of its parent's plans, which is divided no more */
};

struct weft_proof {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    struct weft_work *work;             /* borrowed; NULL: nothing is counted */
    int32_t n_prices, most_prices;
    struct weft_prices *prices;
    struct weft_priced *priced; /* by prices: in the box of the node that they were made for */
    struct weft_priced *common; /* by prices: in the box of all, which holds in every other */
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
    struct weft_box *all;            /* of the root */
};

/* With room for `most_nodes` nodes, and a root without prices, whose bound is 0. */
WEFT_MUST_USE enum weft_status weft_proof_create(const struct weft_problem *problem,
                                                 int32_t most_nodes, struct weft_proof **out,
                                                 struct weft_error *err);
void weft_proof_destroy(struct weft_proof *proof); /* accepts NULL */

/* Groups that counts may name, before there are prices. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_proof_set_groups(struct weft_proof *proof,
                                                     const struct weft_group *groups,
                                                     int32_t n_groups, struct weft_error *err);

/* Makes proof->box that of a node. */
void weft_proof_enter(struct weft_proof *proof, int32_t node);

/* Makes it that of a descendant which the node would have by way of the `path`: of each, kind, and
 * decision and strategies, milestone or count. Of decisions' strategies one must be left. */
void weft_proof_enter_below(struct weft_proof *proof, int32_t node,
                            const struct weft_proof_node *path, int32_t n_path);

/* Gives a leaf the dual's point as its prices when they prove more than those that it has. */
WEFT_MUST_USE enum weft_status weft_proof_offer(struct weft_proof *proof, int32_t node,
                                                const struct weft_dual *dual,
                                                struct weft_error *err);

/* Offers a leaf the prices that were made for other nodes and that it was not offered before; true
 * when some prove more than those that it has. Costs little beside making prices for it. */
WEFT_MUST_USE enum weft_status weft_proof_offer_known(struct weft_proof *proof, int32_t node,
                                                      bool *better, struct weft_error *err);

/* Bounds a leaf that has prices by them in its own box, where they may prove more than in that of
 * the node that it has them from. */
WEFT_MUST_USE enum weft_status weft_proof_reprice(struct weft_proof *proof, int32_t node,
                                                  struct weft_error *err);

/* What a node's prices prove in its own box. */
WEFT_MUST_USE enum weft_status weft_proof_measure(struct weft_proof *proof, int32_t node,
                                                  int64_t *bound_ns, struct weft_error *err);

/* Whether they prove so much there and in every smaller box: all counts that they need are known.
 */
WEFT_MUST_USE enum weft_status weft_proof_reaches(struct weft_proof *proof, int32_t node,
                                                  int64_t bound_ns, bool *yes,
                                                  struct weft_error *err);

/* Offers the root what needs no search: every lambda of one channel 1 and all else 0, or all prices
 * 0. The channel does not overlap with itself, nor compute with compute. *by names the better one
 * ("channel", "compute"). */
WEFT_MUST_USE enum weft_status weft_proof_offer_trivial(struct weft_proof *proof,
                                                        struct weft_dual *dual, const char **by,
                                                        struct weft_error *err);

/* Fills the outcome's bound, what it is by, and its certificate (in the pool) with what needs
 * neither a plan nor a search: compute alone, the channel alone, or that no plan fits, when the
 * bound is WEFT_PROBLEM_MOST. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_prove(const struct weft_problem *problem,
                                          struct weft_pool *pool, struct weft_outcome *outcome,
                                          struct weft_error *err);
/* The same with the problem's digest. */
WEFT_MUST_USE enum weft_status weft_proof_trivial(const struct weft_digest *table,
                                                  struct weft_pool *pool,
                                                  struct weft_outcome *outcome,
                                                  struct weft_error *err);

/* Divides a leaf: `strategies` of the decision, and the others that it has. The children start with
 * their parent's prices. False when there is no room for them, or one of them would have nothing.
 */
bool weft_proof_branch(struct weft_proof *proof, int32_t node, int32_t decision,
                       uint64_t strategies);

/* Divides a leaf: plans that reach the milestone, or the count, and those that do not. False when
 * there is no room for them. */
bool weft_proof_branch_at(struct weft_proof *proof, int32_t node,
                          const struct weft_milestone *milestone);
bool weft_proof_branch_count(struct weft_proof *proof, int32_t node,
                             const struct weft_count *count);

/* The open leaf with the least bound; -1 when all are closed. */
int32_t weft_proof_weakest(const struct weft_proof *proof);

/* The leaf with the least bound of all, and that bound: what the proof proves. */
int32_t weft_proof_least(const struct weft_proof *proof);
int64_t weft_proof_bound_ns(const struct weft_proof *proof);

/* The certificate, in the pool. */
WEFT_MUST_USE enum weft_status weft_proof_certificate(const struct weft_proof *proof,
                                                      struct weft_pool *pool,
                                                      struct weft_certificate *out,
                                                      struct weft_error *err);

#endif
