/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/measure/matchings.h"
#include "runtime/measure/measure.h"
#include "runtime/measure/parts.h"

enum {
    SWAPS = 3, /* timed, after one that is not */
    LEAST_BYTES = 256 << 10,
    MOST_BYTES = 8 << 20
};
#define SWAP_NS (INT64_C(20) * 1000000)

struct pairing {
    const struct weft_measure_options *options;
    int32_t nodes, per_node, node, place; /* this rank is number `place` of its node */
    int64_t bytes;                        /* of a rank, each way */
    unsigned char *mine, *theirs;
    int64_t *all_ns; /* [ranks] */
    struct weft_network_pair *pairs;
    int32_t n_pairs;
};

/* Writes the median time of a swap with the rank of this place on the partner. */
static enum weft_status time_swaps(const struct pairing *p, int32_t partner, int64_t *ns,
                                   struct weft_error *err)
{
    const int32_t peer = partner * p->per_node + p->place;
    int64_t times[SWAPS];
    for (int i = -1; i < SWAPS; i++) {
        const int64_t begin_ns = weft_clock_now_ns();
        WEFT_TRY(weft_comm_swap(p->options->comm, peer, p->mine, p->bytes, p->theirs, err));
        if (i >= 0) times[i] = weft_clock_now_ns() - begin_ns;
    }
    *ns = weft_measure_median(times, SWAPS);
    return WEFT_OK;
}

/* The slowest rank of both nodes. */
static int64_t pair_ns(const struct pairing *p, int32_t a, int32_t b)
{
    int64_t longest_ns = 1;
    for (int32_t place = 0; place < p->per_node; place++) {
        const int64_t of_a = p->all_ns[a * p->per_node + place];
        const int64_t of_b = p->all_ns[b * p->per_node + place];
        if (of_a > longest_ns) longest_ns = of_a;
        if (of_b > longest_ns) longest_ns = of_b;
    }
    return longest_ns;
}

/* The exchange is the barrier between rounds. */
static enum weft_status play_round(struct pairing *p, int32_t round, struct weft_error *err)
{
    const int32_t partner = weft_matching_partner(p->nodes, round, p->node);
    int64_t ns = 0;
    if (partner >= 0) WEFT_TRY(time_swaps(p, partner, &ns, err));
    WEFT_TRY(weft_comm_exchange(p->options->comm, &ns, sizeof ns, p->all_ns, err));
    for (int32_t a = 0; a < p->nodes; a++) {
        const int32_t b = weft_matching_partner(p->nodes, round, a);
        if (b > a) p->pairs[p->n_pairs++] = (struct weft_network_pair){a, b, pair_ns(p, a, b)};
    }
    return WEFT_OK;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct weft_network_pair *x = a, *y = b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* The median of all ranks that had a partner. */
static int64_t usual_ns(struct pairing *p)
{
    int32_t n = 0;
    for (int32_t r = 0; r < p->nodes * p->per_node; r++)
        if (p->all_ns[r] > 0) p->all_ns[n++] = p->all_ns[r];
    return weft_measure_median(p->all_ns, n);
}

/* Doubles the bytes until a swap usually takes SWAP_NS. A few slow links do not decide it. */
static enum weft_status choose_bytes(struct pairing *p, struct weft_error *err)
{
    const int32_t partner = weft_matching_partner(p->nodes, 0, p->node);
    for (p->bytes = LEAST_BYTES; p->bytes < MOST_BYTES; p->bytes *= 2) {
        int64_t ns = 0;
        if (partner >= 0) WEFT_TRY(time_swaps(p, partner, &ns, err));
        WEFT_TRY(weft_comm_exchange(p->options->comm, &ns, sizeof ns, p->all_ns, err));
        if (usual_ns(p) >= SWAP_NS) break;
    }
    return WEFT_OK;
}

/* A host without a name has its number. */
static enum weft_status name_hosts(const struct pairing *p, struct weft_pool *pool,
                                   struct weft_network_host *hosts, struct weft_error *err)
{
    for (int32_t h = 0; h < p->nodes; h++) {
        const char *name = weft_comm_host(p->options->comm, h * p->per_node);
        hosts[h].name =
            name[0] != '\0' ? weft_pool_string(pool, name) : weft_pool_format(pool, "node %d", h);
        if (hosts[h].name == NULL) return weft_fail_memory(err, "a profile");
    }
    return WEFT_OK;
}

static enum weft_status play_tournament(struct pairing *p, struct weft_pool *pool,
                                        struct weft_profile_network *out, struct weft_error *err)
{
    const int32_t rounds = weft_matching_measured(p->nodes);
    struct weft_network_host *hosts = weft_pool_array(pool, (size_t)p->nodes, sizeof *hosts);
    p->pairs = weft_pool_array(pool, (size_t)rounds * (size_t)p->nodes / 2 + 1, sizeof *p->pairs);
    p->all_ns = calloc((size_t)p->nodes * (size_t)p->per_node, sizeof *p->all_ns);
    p->mine = calloc(1, MOST_BYTES);
    p->theirs = calloc(1, MOST_BYTES);
    if (hosts == NULL || p->pairs == NULL || p->all_ns == NULL || p->mine == NULL ||
        p->theirs == NULL)
        return weft_fail_memory(err, "the measurement of the network");
    WEFT_TRY(name_hosts(p, pool, hosts, err));
    WEFT_TRY(choose_bytes(p, err));
    for (int32_t i = 0; i < rounds; i++) {
        weft_watch_count(p->options->watch, "round of pairs", i, rounds);
        WEFT_TRY(play_round(p, weft_matching_round(p->nodes, i), err));
    }
    qsort(p->pairs, (size_t)p->n_pairs, sizeof *p->pairs, compare_pairs);
    out->n_hosts = p->nodes;
    out->hosts = hosts;
    out->n_pairs = p->n_pairs;
    out->pairs = p->pairs;
    out->pair_bytes = p->bytes * p->per_node;
    return WEFT_OK;
}

enum weft_status weft_measure_network(const struct weft_measure_options *options,
                                      struct weft_pool *pool, struct weft_profile_network *out,
                                      struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(options->comm), rank = weft_comm_rank(options->comm);
    const int32_t per_node = (int32_t)options->config->cluster.ranks_per_node;
    if (!weft_comm_swaps(options->comm) || ranks <= per_node) return WEFT_OK;
    struct pairing p = {.options = options,
                        .nodes = ranks / per_node,
                        .per_node = per_node,
                        .node = rank / per_node,
                        .place = rank % per_node};
    const enum weft_status status = play_tournament(&p, pool, out, err);
    free(p.theirs);
    free(p.mine);
    free(p.all_ns);
    return status;
}

enum weft_status weft_measure_hosts_compute(const int64_t *compute_ns, int32_t ranks_per_node,
                                            struct weft_pool *pool,
                                            struct weft_profile_network *network,
                                            struct weft_error *err)
{
    const size_t n = (size_t)network->n_hosts;
    struct weft_network_host *hosts = weft_pool_array(pool, n, sizeof *hosts);
    if (hosts == NULL) return weft_fail_memory(err, "a profile");
    for (int32_t h = 0; h < network->n_hosts; h++) {
        hosts[h] = network->hosts[h];
        for (int32_t r = h * ranks_per_node; r < (h + 1) * ranks_per_node; r++)
            if (compute_ns[r] > hosts[h].compute_ns) hosts[h].compute_ns = compute_ns[r];
    }
    network->hosts = hosts;
    return WEFT_OK;
}
