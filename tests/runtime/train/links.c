/* SPDX-License-Identifier: Apache-2.0 */
/* Slow links of a run are named from what each rank saw: by hand, and with random faults. */
#include "runtime/train/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/runtime/comm/ranks.h"

enum {
    MOST_NODES = 12,
    MOST_PER_NODE = 3,
    MOST_OF_RANKS = MOST_NODES * MOST_PER_NODE,
    MB = 1000000
};
#define WINDOW_NS INT64_C(1000000000)

/* times[a][b]: of bytes from node a to node b; 1 is usual, and takes 2 ms for each MB of a rank. */
struct net {
    int32_t nodes, per_node;
    double times[MOST_NODES][MOST_NODES];
};

static struct net make_net(int32_t nodes, int32_t per_node)
{
    struct net net = {.nodes = nodes, .per_node = per_node};
    for (int32_t a = 0; a < nodes; a++)
        for (int32_t b = 0; b < nodes; b++)
            net.times[a][b] = 1;
    return net;
}

/* Each rank gets `bytes` from each other one, and all collectives take `moving_ns`. */
static struct weft_link_finding judge_net(const struct net *net, int64_t bytes, int64_t moving_ns,
                                          int64_t planned_ns)
{
    const int32_t ranks = net->nodes * net->per_node;
    struct weft_comm_traffic traffic[MOST_OF_RANKS];
    struct weft_link_sums all[MOST_OF_RANKS];
    int64_t scratch[MOST_OF_RANKS];
    for (int32_t r = 0; r < ranks; r++) {
        memset(traffic, 0, sizeof traffic);
        for (int32_t p = 0; p < ranks; p++) {
            const double times = net->times[p / net->per_node][r / net->per_node];
            if (p == r) continue;
            traffic[p].bytes = bytes;
            /* Within a node bytes are fast, and do not count. */
            traffic[p].ns = p / net->per_node == r / net->per_node
                                ? bytes / 100
                                : (int64_t)(2 * (double)bytes * times);
        }
        weft_links_sum(traffic, moving_ns, r, ranks, net->per_node, scratch, &all[r]);
    }
    return weft_links_judge(all, ranks, net->per_node, WINDOW_NS, planned_ns, scratch);
}

static void expect_fault(const struct net *net, enum weft_link_fault fault, int32_t from,
                         int32_t to)
{
    const struct weft_link_finding got = judge_net(net, 100 * MB, 0, 0);
    CHECK(got.fault == fault && got.from == from && got.to == to,
          "%d nodes of %d: fault %d of %d and %d, not %d of %d and %d", net->nodes, net->per_node,
          got.fault, got.from, got.to, fault, from, to);
}

static void check_hosts(void)
{
    for (int32_t per_node = 1; per_node <= MOST_PER_NODE; per_node++) {
        struct net net = make_net(3, per_node);
        expect_fault(&net, WEFT_LINK_FINE, -1, -1);
        net.times[1][0] = net.times[1][2] = 10; /* a port that sends slowly */
        expect_fault(&net, WEFT_LINK_OF_HOST, -1, 1);
        net = make_net(3, per_node);
        net.times[0][2] = net.times[1][2] = 10; /* and one that receives slowly */
        expect_fault(&net, WEFT_LINK_OF_HOST, -1, 2);
        net = make_net(4, per_node);
        net.times[3][1] = 10;
        expect_fault(&net, WEFT_LINK_OF_PAIR, 1, 3);
        net = make_net(2, per_node);
        net.times[1][0] = 10;
        expect_fault(&net, WEFT_LINK_OF_PAIR, 0, 1);
        net.times[0][1] = 10; /* both ways alike: only the plan tells */
        expect_fault(&net, WEFT_LINK_FINE, -1, -1);
        net = make_net(1, per_node);
        expect_fault(&net, WEFT_LINK_FINE, -1, -1);
    }
}

/* 100 MB take 200 ms at the usual rate. Slow bytes must cost an eighth of the second. */
static void check_thresholds(void)
{
    struct net net = make_net(4, 1);
    net.times[3][1] = 4;
    expect_fault(&net, WEFT_LINK_FINE, -1, -1);
    net.times[3][1] = 4.01;
    expect_fault(&net, WEFT_LINK_OF_PAIR, 1, 3);
    net.times[3][1] = 10;
    CHECK(judge_net(&net, 6 * MB, 0, 0).fault == WEFT_LINK_FINE, "it costs 108 ms");
    CHECK(judge_net(&net, 7 * MB, 0, 0).fault == WEFT_LINK_OF_PAIR, "it costs 126 ms");
    CHECK(judge_net(&net, WEFT_LINK_LEAST_BYTES - 1, 0, 0).fault == WEFT_LINK_FINE, "few bytes");
    const struct weft_link_finding found = judge_net(&net, 20 * MB, 0, 0);
    CHECK(found.share > 0.359 && found.share < 0.361, "400 - 40 of 1000 ms: %g", found.share);
}

static void check_plan(void)
{
    const struct net net = make_net(2, 2);
    CHECK(judge_net(&net, MB, 500 * MB, 0).fault == WEFT_LINK_FINE, "no plan");
    CHECK(judge_net(&net, MB, 500 * MB, 125 * MB).fault == WEFT_LINK_FINE, "four times");
    CHECK(judge_net(&net, MB, 120 * MB, MB).fault == WEFT_LINK_FINE,
          "less than an eighth of the time");
    const struct weft_link_finding found = judge_net(&net, MB, 500 * MB, 50 * MB);
    CHECK(found.fault == WEFT_LINK_OF_ALL && found.times == 10 && found.share == 0.45,
          "fault %d, %g times, %g", found.fault, found.times, found.share);
}

/* One rank of each other node sees node 1 slow, and it is not the first. Ranks without links see no
 * usual rate. */
static void check_single_ranks(void)
{
    enum { PER_NODE = 2, RANKS = 6 };
    struct weft_link_sums all[RANKS];
    int64_t scratch[RANKS];
    for (int32_t r = 0; r < RANKS; r++)
        all[r] = (struct weft_link_sums){.peer = -1};
    for (int32_t r = 1; r < RANKS; r += 4) /* ranks 1 and 5 */
        all[r] = (struct weft_link_sums){
            .peer = 3, .ns = 2000 * INT64_C(1000000), .bytes = 100 * MB, .usual_ps = 2000};
    const struct weft_link_finding found =
        weft_links_judge(all, RANKS, PER_NODE, WINDOW_NS, 0, scratch);
    CHECK(found.fault == WEFT_LINK_OF_HOST && found.to == 1, "fault %d of %d", found.fault,
          found.to);
}

static void check_agreement(void)
{
    const struct weft_link_finding a = {WEFT_LINK_OF_PAIR, 0, 1, 0, 0};
    struct weft_link_finding b = a;
    b.share = 1;
    CHECK(weft_links_agree(&a, &b), "one link");
    b.to = 2;
    CHECK(!weft_links_agree(&a, &b), "another end");
    b = a;
    b.from = 2;
    CHECK(!weft_links_agree(&a, &b), "another beginning");
    b = a;
    b.fault = WEFT_LINK_OF_HOST;
    CHECK(!weft_links_agree(&a, &b), "another fault");
}

struct dice {
    uint64_t seed, counter;
};

static int32_t throw_below(struct dice *dice, int32_t below)
{
    return (int32_t)weft_rng_below(dice->seed, 2, dice->counter++, (uint64_t)below);
}

/* One fault in a network with noise, or none. */
static void check_random(uint64_t seed)
{
    struct dice dice = {.seed = seed};
    struct net net =
        make_net(3 + throw_below(&dice, MOST_NODES - 2), 1 + throw_below(&dice, MOST_PER_NODE));
    const int32_t kind = throw_below(&dice, 4), slow = throw_below(&dice, net.nodes);
    const int32_t other = (slow + 1 + throw_below(&dice, net.nodes - 1)) % net.nodes;
    const double times = 7 + throw_below(&dice, 50);
    for (int32_t a = 0; a < net.nodes; a++)
        for (int32_t b = 0; b < net.nodes; b++)
            net.times[a][b] = 1 + 0.01 * throw_below(&dice, 50);
    for (int32_t n = 0; n < net.nodes; n++) {
        if (kind == 1 || kind == 3) net.times[slow][n] *= times;
        if (kind == 1) net.times[n][slow] *= times;
    }
    if (kind == 2) net.times[slow][other] *= times;
    if (kind == 0)
        expect_fault(&net, WEFT_LINK_FINE, -1, -1);
    else if (kind == 2)
        expect_fault(&net, WEFT_LINK_OF_PAIR, slow < other ? slow : other,
                     slow < other ? other : slow);
    else
        expect_fault(&net, WEFT_LINK_OF_HOST, -1, slow);
}

RANKS_TEST(links)
{
    const char *from = getenv("WEFT_LINKS_SEED");
    const uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    check_hosts();
    check_thresholds();
    check_plan();
    check_single_ranks();
    check_agreement();
    for (uint64_t seed = first; seed < first + 2000; seed++)
        check_random(seed);
    return 0;
}
