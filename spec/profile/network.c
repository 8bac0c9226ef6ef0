/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/network.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/shown.h"
#include "base/units.h"

enum { MOST_HOSTS = 65536 };

#define CURVE_OF(flags, name, group, kind, text)                                                   \
    WEFT_CURVE_KEY(flags, name, bytes, weft_profile_network, levels[group][kind], text)
#define OF_NODE(name, kind, text)       CURVE_OF(WEFT_KEY_NEEDED, name, WEFT_GROUP_NODE, kind, text)
#define ACROSS(flags, name, kind, text) CURVE_OF(flags, name, WEFT_GROUP_ACROSS, kind, text)

static const struct weft_key_table host_table = WEFT_KEY_TABLE_OPEN(
    "A host.", WEFT_KEY_VALUE(WEFT_KEY_TEXT, weft_network_host, name, "of the host"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL, "compute_ns", weft_network_host, compute_ns, 1,
                      WEFT_JSON_MOST_INTEGER, "forward and backward of a step, slowest rank"));

static const struct weft_key_table pair_table = WEFT_KEY_TABLE_OPEN(
    "A pair of hosts.",
    WEFT_KEY_RANGE(weft_network_pair, a, 0, MOST_HOSTS - 1, "a host, by its place in `hosts`"),
    WEFT_KEY_RANGE(weft_network_pair, b, 1, MOST_HOSTS - 1, "the other one, a higher number"),
    WEFT_KEY_RANGE(weft_network_pair, ns, 1, WEFT_JSON_MOST_INTEGER,
                   "of pair_bytes both ways at once"));

const struct weft_key_table weft_profile_network_keys = WEFT_KEY_TABLE_OPEN(
    "The network by pairs of hosts.",
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT, WEFT_KEY_OBJECT, "hosts", weft_profile_network, hosts, n_hosts,
                   &host_table, "in the order of ranks"),
    WEFT_KEY_RANGE(weft_profile_network, pair_bytes, 1, WEFT_JSON_MOST_INTEGER,
                   "that a host of a pair sends to the other one"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT, WEFT_KEY_OBJECT, "pairs", weft_profile_network, pairs, n_pairs,
                   &pair_table, "measured ones, in order of a, then b"));

static const struct weft_key_table node_table = WEFT_KEY_TABLE_OPEN(
    "Collectives of the ranks of a node.", OF_NODE("all_gather", WEFT_ALL_GATHER, "parameters"),
    OF_NODE("reduce_scatter", WEFT_REDUCE_SCATTER, "gradients, to fp32"));

static const struct weft_key_table across_table = WEFT_KEY_TABLE_OPEN(
    "Collectives of the ranks of one place in their nodes.",
    ACROSS(WEFT_KEY_NEEDED, "all_reduce", WEFT_ALL_REDUCE, "partial sums, in fp32"),
    ACROSS(WEFT_KEY_OPTIONAL, "all_gather", WEFT_ALL_GATHER, "updated parameters"),
    ACROSS(WEFT_KEY_OPTIONAL, "reduce_scatter", WEFT_REDUCE_SCATTER, "partial sums, to fp32"));

const struct weft_key_table weft_profile_levels_keys = WEFT_KEY_TABLE_OPEN(
    "Times of collectives of one level, for hsdp and nodes.",
    WEFT_KEY_RANGE(weft_profile_network, ranks_per_node, 2, MOST_HOSTS, "that were measured"),
    WEFT_KEY_OWN(WEFT_KEY_UNREAD, "node", &node_table, "inside a node"),
    WEFT_KEY_OWN(WEFT_KEY_UNREAD, "across", &across_table, "between nodes"));

const struct weft_link_level weft_link_levels[WEFT_LINK_LEVELS] = {
    {WEFT_GROUP_NODE, WEFT_ALL_GATHER, "all_gather in a node", false},
    {WEFT_GROUP_NODE, WEFT_REDUCE_SCATTER, "reduce_scatter in a node", false},
    {WEFT_GROUP_ACROSS, WEFT_ALL_REDUCE, "all_reduce across nodes", false},
    {WEFT_GROUP_ACROSS, WEFT_ALL_GATHER, "all_gather across nodes", true},
    {WEFT_GROUP_ACROSS, WEFT_REDUCE_SCATTER, "reduce_scatter across nodes", true},
};

static const char *const group_keys[WEFT_GROUP_COUNT] = {
    [WEFT_GROUP_NODE] = "node", [WEFT_GROUP_ACROSS] = "across"};

/* File */

/* Each pair comes once, in order. */
static enum weft_status check_pair(const struct weft_profile_network *network,
                                   const struct weft_network_pair *before,
                                   const struct weft_network_pair *pair, const char *where,
                                   struct weft_error *err)
{
    if (pair->a >= pair->b || pair->b >= network->n_hosts)
        return weft_fail(err, WEFT_E_DATA, "%s: a is %d and b %d; must be a < b < %d", where,
                         pair->a, pair->b, network->n_hosts);
    if (before != NULL && (pair->a < before->a || (pair->a == before->a && pair->b <= before->b)))
        return weft_fail(err, WEFT_E_DATA, "%s: the pair %d, %d must come before %d, %d, and once",
                         where, pair->a, pair->b, before->a, before->b);
    return WEFT_OK;
}

static enum weft_status check_network(const struct weft_profile_network *network, const char *where,
                                      struct weft_error *err)
{
    char place[640];
    if (network->n_hosts < 2 || network->n_hosts > MOST_HOSTS)
        return weft_fail(err, WEFT_E_DATA, "%s: hosts has %d entries; must have 2 to %d", where,
                         network->n_hosts, MOST_HOSTS);
    for (int32_t p = 0; p < network->n_pairs; p++) {
        const struct weft_network_pair *pair = &network->pairs[p];
        snprintf(place, sizeof place, "%s: pairs[%d]", where, p);
        WEFT_TRY(check_pair(network, p > 0 ? pair - 1 : NULL, pair, place, err));
    }
    return WEFT_OK;
}

static enum weft_status read_levels(const struct weft_json_value *root, const char *source,
                                    struct weft_pool *pool, struct weft_profile_network *out,
                                    struct weft_error *err)
{
    const struct weft_json_value *levels, *node;
    char where[512];
    if (weft_json_member(root, "levels") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need(root, source, "levels", WEFT_JSON_OBJECT, &levels, err));
    snprintf(where, sizeof where, "%s: levels", source);
    WEFT_TRY(weft_keys_read(&weft_profile_levels_keys, levels, where, pool, out, err));
    for (int i = 0; i < WEFT_LINK_LEVELS; i++) {
        const struct weft_link_level *level = &weft_link_levels[i];
        const char *group = group_keys[level->group], *name = weft_collective_name(level->kind);
        struct weft_curve *curve = &out->levels[level->group][level->kind];
        snprintf(where, sizeof where, "%s: levels", source);
        WEFT_TRY(weft_json_need(levels, where, group, WEFT_JSON_OBJECT, &node, err));
        snprintf(where, sizeof where, "%s: levels.%s", source, group);
        WEFT_TRY(weft_curve_read(node, where, name, "bytes", pool, curve, err));
        if (curve->n == 0 && !level->later)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: levels: must have node.all_gather, node.reduce_scatter and "
                             "across.all_reduce",
                             source);
    }
    return WEFT_OK;
}

enum weft_status weft_profile_network_read(const struct weft_json_value *root, const char *source,
                                           struct weft_pool *pool, struct weft_profile_network *out,
                                           struct weft_error *err)
{
    const struct weft_json_value *object;
    struct weft_profile_network read = {0};
    if (weft_json_member(root, "network") != NULL) {
        char where[512];
        WEFT_TRY(weft_json_need(root, source, "network", WEFT_JSON_OBJECT, &object, err));
        snprintf(where, sizeof where, "%s: network", source);
        WEFT_TRY(weft_keys_read(&weft_profile_network_keys, object, where, pool, &read, err));
        WEFT_TRY(check_network(&read, where, err));
    }
    WEFT_TRY(read_levels(root, source, pool, &read, err));
    *out = read;
    return WEFT_OK;
}

/* Judgement */

static int compare_ns(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the times; 0 if there are none. */
static int64_t lower_median(int64_t *ns, int32_t n)
{
    if (n == 0) return 0;
    qsort(ns, (size_t)n, sizeof *ns, compare_ns);
    return ns[(n - 1) / 2];
}

static bool is_slow(int64_t ns, int64_t usual_ns)
{
    return usual_ns > 0 && ns / WEFT_SLOW_TIMES >= usual_ns && ns > WEFT_SLOW_TIMES * usual_ns;
}

struct judging {
    const struct weft_profile_network *network;
    int64_t *ns, *of_hosts; /* [n_hosts], scratch */
    bool *links, *hosts, *pairs;
};

/* Writes the times of a host's pairs, and returns their number. */
static int32_t pairs_of(const struct judging *j, int32_t host)
{
    int32_t n = 0;
    for (int32_t p = 0; p < j->network->n_pairs; p++) {
        const struct weft_network_pair *pair = &j->network->pairs[p];
        if (pair->a == host || pair->b == host) j->ns[n++] = pair->ns;
    }
    return n;
}

static void judge_links(struct judging *j, struct weft_network_verdict *out)
{
    const struct weft_profile_network *network = j->network;
    int32_t n_known = 0;
    for (int32_t h = 0; h < network->n_hosts; h++) {
        const int32_t n = pairs_of(j, h);
        if (n > 0) j->of_hosts[n_known++] = lower_median(j->ns, n);
    }
    out->pair_ns = lower_median(j->of_hosts, n_known);
    if (network->n_hosts == 2) return;
    for (int32_t h = 0; h < network->n_hosts; h++) {
        const int32_t n = pairs_of(j, h);
        int32_t n_slow = 0;
        for (int32_t i = 0; i < n; i++)
            n_slow += is_slow(j->ns[i], out->pair_ns);
        j->links[h] = 2 * n_slow > n;
        out->n_slow += j->links[h];
    }
    for (int32_t p = 0; p < network->n_pairs; p++) {
        const struct weft_network_pair *pair = &network->pairs[p];
        j->pairs[p] = !j->links[pair->a] && !j->links[pair->b] && is_slow(pair->ns, out->pair_ns);
        out->n_slow += j->pairs[p];
    }
}

static void judge_compute(struct judging *j, struct weft_network_verdict *out)
{
    const struct weft_network_host *hosts = j->network->hosts;
    int32_t n_known = 0;
    for (int32_t h = 0; h < j->network->n_hosts; h++) {
        if (hosts[h].compute_ns == 0) continue;
        j->of_hosts[n_known++] = hosts[h].compute_ns;
        if (out->slowest < 0 || hosts[h].compute_ns > hosts[out->slowest].compute_ns)
            out->slowest = h;
    }
    out->compute_ns = lower_median(j->of_hosts, n_known);
    for (int32_t h = 0; h < j->network->n_hosts; h++) {
        j->hosts[h] = is_slow(hosts[h].compute_ns, out->compute_ns);
        out->n_slow += j->hosts[h];
    }
}

enum weft_status weft_network_judge(const struct weft_profile_network *network,
                                    struct weft_pool *pool, struct weft_network_verdict *out,
                                    struct weft_error *err)
{
    const size_t n_hosts = (size_t)network->n_hosts, n_pairs = (size_t)network->n_pairs;
    struct weft_network_verdict verdict = {.slowest = -1};
    struct judging j = {.network = network,
                        .ns = weft_pool_array(pool, n_hosts + 1, sizeof *j.ns),
                        .of_hosts = weft_pool_array(pool, n_hosts + 1, sizeof *j.of_hosts),
                        .links = weft_pool_array(pool, n_hosts + 1, sizeof *j.links),
                        .hosts = weft_pool_array(pool, n_hosts + 1, sizeof *j.hosts),
                        .pairs = weft_pool_array(pool, n_pairs + 1, sizeof *j.pairs)};
    if (j.ns == NULL || j.of_hosts == NULL || j.links == NULL || j.hosts == NULL || j.pairs == NULL)
        return weft_fail_memory(err, "the judgement of a network");
    judge_links(&j, &verdict);
    judge_compute(&j, &verdict);
    verdict.slow_links = j.links;
    verdict.slow_hosts = j.hosts;
    verdict.slow_pairs = j.pairs;
    *out = verdict;
    return WEFT_OK;
}

/* Text */

double weft_network_rate(const struct weft_profile_network *network, int64_t ns)
{
    return ns > 0 ? 1e9 * (double)network->pair_bytes / (double)ns : 0;
}

/* The time of a host's fastest pair. */
static int64_t best_ns(const struct weft_profile_network *network, int32_t host)
{
    int64_t best = 0;
    for (int32_t p = 0; p < network->n_pairs; p++) {
        const struct weft_network_pair *pair = &network->pairs[p];
        if ((pair->a == host || pair->b == host) && (best == 0 || pair->ns < best)) best = pair->ns;
    }
    return best;
}

static void show_link(const struct weft_profile_network *network,
                      const struct weft_network_verdict *verdict, int64_t ns, struct weft_text *out)
{
    weft_text_addf(out, "%.1f MB/s each way, and %.1f are usual",
                   1e-6 * weft_network_rate(network, ns),
                   1e-6 * weft_network_rate(network, verdict->pair_ns));
}

void weft_network_show_slow(const struct weft_profile_network *network,
                            const struct weft_network_verdict *verdict, struct weft_text *out)
{
    char shown[WEFT_SHOWN_BYTES], other[WEFT_SHOWN_BYTES];
    char took[WEFT_UNITS_TEXT_BYTES], usual[WEFT_UNITS_TEXT_BYTES];
    for (int32_t h = 0; h < network->n_hosts; h++) {
        const struct weft_network_host *host = &network->hosts[h];
        weft_shown(host->name, shown);
        if (verdict->slow_links[h]) {
            weft_text_addf(out, "slow link of host %s: most of its pairs are slow, the best moves ",
                           shown);
            show_link(network, verdict, best_ns(network, h), out);
            weft_text_add(out, ": see its port, cable and traffic\n");
        }
        if (verdict->slow_hosts[h])
            weft_text_addf(out,
                           "slow host %s: compute of a step takes %s, and %s are usual: see its "
                           "clocks, its share of cores, and other programs on it\n",
                           shown, weft_units_show_ns(host->compute_ns, took),
                           weft_units_show_ns(verdict->compute_ns, usual));
    }
    for (int32_t p = 0; p < network->n_pairs; p++) {
        const struct weft_network_pair *pair = &network->pairs[p];
        if (!verdict->slow_pairs[p]) continue;
        weft_text_addf(out, "slow link between hosts %s and %s: ",
                       weft_shown(network->hosts[pair->a].name, shown),
                       weft_shown(network->hosts[pair->b].name, other));
        show_link(network, verdict, pair->ns, out);
        weft_text_add(out, ": see the switches between them\n");
    }
}
