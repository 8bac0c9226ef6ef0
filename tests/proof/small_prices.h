/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of the small problem, and a certificate of one leaf with them. */
#ifndef WEFT_TESTS_PROOF_SMALL_PRICES_H
#define WEFT_TESTS_PROOF_SMALL_PRICES_H

#include <string.h>

#include "proof/certificate.h"
#include "tests/problem/small_problem.h"

struct fixture {
    struct weft_problem problem;
    int64_t lambda[N_SMALL_SLOTS], mu[N_SMALL_SLOTS];
    uint8_t reference[2];
    struct weft_whole_price whole[2];
    struct weft_prices prices;
    weft_int128 cost[2 * N_SMALL_STRATEGIES];
    struct weft_priced priced;
    struct weft_certificate_node nodes[8];
    struct weft_certificate certificate;
};

static inline void init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->problem = small_problem();
    f->prices = (struct weft_prices){.lambda = f->lambda, .mu = f->mu, .whole = f->whole};
    f->priced.cost = f->cost;
    f->reference[0] = f->reference[1] = IS_DP; /* which holds nothing here */
    f->whole[0].reference = f->whole[1].reference = f->reference;
    f->nodes[0] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF};
    f->certificate = (struct weft_certificate){.n_prices = 1,
                                               .prices = &f->prices,
                                               .n_nodes = 1,
                                               .nodes = f->nodes,
                                               .problem = weft_problem_hash(&f->problem)};
}

static inline void price_whole(struct fixture *f, int32_t row, int32_t slot, int64_t step_bytes,
                               int64_t nu)
{
    f->whole[row] = (struct weft_whole_price){slot, step_bytes, nu, f->reference, NULL};
}

#endif
