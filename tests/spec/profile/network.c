/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of hosts: their file, and the judgement of slow links and hosts. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "spec/profile/profile.h"

enum { MOST_HOSTS = 24, MOST_PAIRS = MOST_HOSTS * (MOST_HOSTS - 1) / 2 };

/* A network of hosts h0, h1 ... with all pairs. */
struct net {
    char names[MOST_HOSTS][8];
    struct weft_network_host hosts[MOST_HOSTS];
    struct weft_network_pair pairs[MOST_PAIRS];
    struct weft_profile_network network;
};

static void build_net(struct net *net, int32_t n_hosts, int64_t pair_ns, int64_t compute_ns)
{
    int32_t p = 0;
    for (int32_t a = 0; a < n_hosts; a++) {
        snprintf(net->names[a], sizeof net->names[a], "h%d", a);
        net->hosts[a] = (struct weft_network_host){net->names[a], compute_ns};
        for (int32_t b = a + 1; b < n_hosts; b++)
            net->pairs[p++] = (struct weft_network_pair){a, b, pair_ns};
    }
    net->network = (struct weft_profile_network){.n_hosts = n_hosts,
                                                 .n_pairs = p,
                                                 .hosts = net->hosts,
                                                 .pairs = net->pairs,
                                                 .pair_bytes = 1000000};
}

static struct weft_network_pair *pair_of(struct net *net, int32_t a, int32_t b)
{
    for (int32_t p = 0; p < net->network.n_pairs; p++) {
        struct weft_network_pair *pair = &net->pairs[p];
        if ((pair->a == a && pair->b == b) || (pair->a == b && pair->b == a)) return pair;
    }
    cr_assert_fail("no pair %d, %d", a, b);
    return NULL;
}

static void slow_links_of(struct net *net, int32_t host, int64_t times)
{
    for (int32_t p = 0; p < net->network.n_pairs; p++)
        if (net->pairs[p].a == host || net->pairs[p].b == host) net->pairs[p].ns *= times;
}

static struct weft_network_verdict judge_net(const struct net *net, struct weft_pool *pool)
{
    struct weft_network_verdict verdict;
    struct weft_error err = {0};
    cr_assert_eq(weft_network_judge(&net->network, pool, &verdict, &err), WEFT_OK, "%s", err.text);
    return verdict;
}

static void expect_text(const struct net *net, const char *expected)
{
    struct weft_pool pool = {0};
    const struct weft_network_verdict verdict = judge_net(net, &pool);
    struct weft_text text;
    weft_text_init(&text);
    weft_network_show_slow(&net->network, &verdict, &text);
    cr_expect_str_eq(weft_text_chars(&text), expected, "%s", weft_text_chars(&text));
    weft_text_finish(&text);
    weft_pool_finish(&pool);
}

Test(network, equal_hosts_are_not_slow)
{
    struct net net;
    for (int32_t n = 2; n <= 8; n++) {
        build_net(&net, n, 1000000, 5000000);
        expect_text(&net, "");
    }
}

/* Two of the three pairs are slow, and only one host is at fault. */
Test(network, one_slow_link_of_three_hosts_is_named)
{
    struct net net;
    build_net(&net, 3, 1000000, 5000000);
    slow_links_of(&net, 1, 10);
    expect_text(&net, "slow link of host h1: most of its pairs are slow, the best moves 100.0 MB/s "
                      "each way, and 1000.0 are usual: see its port, cable and traffic\n");
}

Test(network, a_pair_without_a_slow_host_is_named)
{
    struct net net;
    build_net(&net, 4, 1000000, 0);
    pair_of(&net, 1, 3)->ns = 4000000;
    expect_text(&net, "slow link between hosts h1 and h3: 250.0 MB/s each way, and 1000.0 are "
                      "usual: see the switches between them\n");
}

Test(network, a_slow_host_is_named_by_its_compute)
{
    struct net net;
    for (int32_t n = 2; n <= 3; n++) {
        build_net(&net, n, 1000000, 5000000);
        net.hosts[0].compute_ns = 50000000;
        expect_text(&net, "slow host h0: compute of a step takes 50.0 ms, and 5.00 ms are usual: "
                          "see its clocks, its share of cores, and other programs on it\n");
    }
}

/* Twice the usual time is not yet slow, and a nanosecond more is. */
Test(network, more_than_twice_the_usual_time_is_slow)
{
    struct weft_pool pool = {0};
    struct net net;
    build_net(&net, 4, 1000000, 5000000);
    pair_of(&net, 0, 1)->ns = 2000000;
    net.hosts[2].compute_ns = 10000000;
    struct weft_network_verdict verdict = judge_net(&net, &pool);
    cr_expect(verdict.n_slow == 0 && verdict.pair_ns == 1000000 && verdict.compute_ns == 5000000);
    cr_expect_eq(verdict.slowest, 2);
    pair_of(&net, 0, 1)->ns++;
    net.hosts[2].compute_ns++;
    verdict = judge_net(&net, &pool);
    cr_expect(verdict.n_slow == 2 && verdict.slow_pairs[0] && verdict.slow_hosts[2]);
    weft_pool_finish(&pool);
}

/* With two hosts nothing says that their pair could be faster. */
Test(network, the_only_pair_is_the_usual_one)
{
    struct weft_pool pool = {0};
    struct net net;
    build_net(&net, 2, 123456789, 0);
    const struct weft_network_verdict verdict = judge_net(&net, &pool);
    cr_expect(verdict.pair_ns == 123456789 && verdict.n_slow == 0 && verdict.slowest == -1);
    weft_pool_finish(&pool);
}

Test(network, an_unmeasured_network_has_no_fault)
{
    struct weft_pool pool = {0};
    const struct net net = {.network = {0}};
    const struct weft_network_verdict verdict = judge_net(&net, &pool);
    cr_expect(verdict.n_slow == 0 && verdict.pair_ns == 0 && verdict.slowest == -1);
    weft_pool_finish(&pool);
}

struct dice {
    uint64_t seed, counter;
};

static int64_t throw_below(struct dice *dice, int64_t below)
{
    return (int64_t)weft_rng_below(dice->seed, 1, dice->counter++, (uint64_t)below);
}

/* Random hosts with slow links, slow compute and slow pairs: exactly these are named. Fewer than
 * half of a host's pairs are slow unless its link is. */
static void check_injected(uint64_t seed)
{
    struct dice dice = {.seed = seed};
    struct weft_pool pool = {0};
    struct net net;
    bool links[MOST_HOSTS] = {0}, hosts[MOST_HOSTS] = {0}, pairs[MOST_PAIRS] = {0};
    int32_t slow_pairs_of[MOST_HOSTS] = {0};
    const int32_t n = 3 + (int32_t)throw_below(&dice, MOST_HOSTS - 2);
    const int32_t few = (n - 1) / 4; /* of n hosts */
    build_net(&net, n, 0, 0);
    for (int32_t i = 0; i < few; i++) {
        links[throw_below(&dice, n)] = throw_below(&dice, 2) == 0;
        hosts[throw_below(&dice, n)] = throw_below(&dice, 2) == 0;
    }
    if (n == 3) links[throw_below(&dice, 3)] = true;
    if (n == 3) hosts[throw_below(&dice, 3)] = true;
    for (int32_t h = 0; h < n; h++) {
        net.hosts[h].compute_ns = 1000 + throw_below(&dice, 600);
        if (hosts[h]) net.hosts[h].compute_ns *= 4 + throw_below(&dice, 100);
    }
    for (int32_t p = 0; p < net.network.n_pairs; p++) {
        struct weft_network_pair *pair = &net.pairs[p];
        const bool fault = links[pair->a] || links[pair->b];
        pair->ns = 1000 + throw_below(&dice, 600);
        pairs[p] = !fault && throw_below(&dice, 8) == 0 && slow_pairs_of[pair->a] < few / 2 &&
                   slow_pairs_of[pair->b] < few / 2;
        if (pairs[p]) slow_pairs_of[pair->a]++, slow_pairs_of[pair->b]++;
        if (fault || pairs[p]) pair->ns *= 4 + throw_below(&dice, 100);
    }
    const struct weft_network_verdict verdict = judge_net(&net, &pool);
    for (int32_t h = 0; h < n; h++) {
        cr_expect_eq(verdict.slow_links[h], links[h], "seed %llu, %d hosts: link of %d",
                     (unsigned long long)seed, n, h);
        cr_expect_eq(verdict.slow_hosts[h], hosts[h], "seed %llu, %d hosts: host %d",
                     (unsigned long long)seed, n, h);
    }
    for (int32_t p = 0; p < net.network.n_pairs; p++)
        cr_expect_eq(verdict.slow_pairs[p], pairs[p], "seed %llu, %d hosts: pair %d",
                     (unsigned long long)seed, n, p);
    weft_pool_finish(&pool);
}

Test(network, exactly_the_injected_faults_are_named)
{
    const char *from = getenv("WEFT_NETWORK_SEED");
    const uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + 2000; seed++)
        check_injected(seed);
}

/* File */

#define HEAD                                                                                       \
    "{\"format\":\"weft-profile\",\"version\":1,\"source\":\"measured\",\"machine\":\"m\","        \
    "\"ranks\":4,\"layers\":[],\"collectives\":{}"
#define CURVE_OF(ns) "{\"bytes\":[1024,2048],\"ns\":[" #ns ",900]}"

static enum weft_status parse_file(const char *text, struct weft_profile **out,
                                   struct weft_error *err)
{
    return weft_profile_parse(text, strlen(text), "p.json", out, err);
}

Test(network, is_written_and_read_back)
{
    static const char text[] = HEAD
        ",\"network\":{\"hosts\":[{\"name\":\"a\",\"compute_ns\":7},{\"name\":\"b\"},"
        "{\"name\":\"c\",\"compute_ns\":9}],\"pair_bytes\":4096,\"pairs\":["
        "{\"a\":0,\"b\":1,\"ns\":11},{\"a\":0,\"b\":2,\"ns\":12},{\"a\":1,\"b\":2,"
        "\"ns\":13}]},"
        "\"levels\":{\"ranks_per_node\":2,\"node\":{\"all_gather\":" CURVE_OF(
            10) ",\"reduce_scatter\":" CURVE_OF(20) "},\"across\":{\"all_"
                                                    "reduce\":" CURVE_OF(
                                                        30) ",\"reduce_scatter\":" CURVE_OF(40) "}}"
                                                                                                "}";
    struct weft_profile *first = NULL, *again = NULL;
    struct weft_error err = {0};
    struct weft_text written;
    cr_assert_eq(parse_file(text, &first, &err), WEFT_OK, "%s", err.text);
    weft_text_init(&written);
    weft_profile_write(first, &written);
    cr_assert_eq(parse_file(weft_text_chars(&written), &again, &err), WEFT_OK, "%s", err.text);
    const struct weft_profile_network *network = &again->network;
    cr_assert(network->n_hosts == 3 && network->n_pairs == 3 && network->pair_bytes == 4096);
    cr_expect_str_eq(network->hosts[2].name, "c");
    cr_expect(network->hosts[0].compute_ns == 7 && network->hosts[1].compute_ns == 0);
    cr_expect(network->pairs[2].a == 1 && network->pairs[2].b == 2 && network->pairs[2].ns == 13);
    cr_assert(weft_profile_has_levels(network) && network->ranks_per_node == 2);
    cr_expect_eq(weft_curve_at(&network->levels[WEFT_GROUP_NODE][WEFT_ALL_GATHER], 1024), 10);
    cr_expect_eq(weft_curve_at(&network->levels[WEFT_GROUP_NODE][WEFT_REDUCE_SCATTER], 1024), 20);
    cr_expect_eq(weft_curve_at(&network->levels[WEFT_GROUP_ACROSS][WEFT_ALL_REDUCE], 1024), 30);
    cr_expect_eq(weft_curve_at(&network->levels[WEFT_GROUP_ACROSS][WEFT_REDUCE_SCATTER], 1024), 40);
    cr_expect_eq(network->levels[WEFT_GROUP_ACROSS][WEFT_ALL_GATHER].n, 0);
    cr_expect(weft_hash_equal(first->hash, again->hash));
    weft_text_finish(&written);
    weft_profile_destroy(again);
    weft_profile_destroy(first);
}

/* A profile of a program that knew no network has the bytes, and so the hash, that it had. */
Test(network, older_profiles_stay_readable)
{
    struct weft_profile *profile = NULL;
    struct weft_error err = {0};
    struct weft_text written;
    cr_assert_eq(parse_file(HEAD "}", &profile, &err), WEFT_OK, "%s", err.text);
    cr_expect(profile->network.n_hosts == 0 && !weft_profile_has_levels(&profile->network));
    weft_text_init(&written);
    weft_profile_write(profile, &written);
    cr_expect_null(strstr(weft_text_chars(&written), "network"));
    cr_expect_null(strstr(weft_text_chars(&written), "levels"));
    weft_text_finish(&written);
    weft_profile_destroy(profile);
}

Test(network, wrong_files_are_refused_with_the_place)
{
    static const struct {
        const char *network, *says;
    } cases[] = {
        {"7", "network"},
        {"{\"hosts\":[{\"name\":\"a\"}],\"pair_bytes\":1,\"pairs\":[]}", "hosts has 1 entries"},
        {"{\"hosts\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"pair_bytes\":0,\"pairs\":[]}",
         "pair_bytes"},
        {"{\"hosts\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"pair_bytes\":1,\"pairs\":[{\"a\":0,"
         "\"b\":2,\"ns\":5}]}",
         "pairs[0]: a is 0 and b 2"},
        {"{\"hosts\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"pair_bytes\":1,\"pairs\":[{\"a\":0,"
         "\"b\":1,\"ns\":5},{\"a\":0,\"b\":1,\"ns\":5}]}",
         "pairs[1]: the pair 0, 1 must come before"},
        {"{\"hosts\":[{\"name\":\"a\"},{}],\"pair_bytes\":1,\"pairs\":[]}", "hosts[1]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_profile *profile = NULL;
        struct weft_error err = {0};
        char text[1024];
        snprintf(text, sizeof text, HEAD ",\"network\":%s}", cases[i].network);
        cr_assert_eq(parse_file(text, &profile, &err), WEFT_E_DATA, "case %zu", i);
        cr_expect(strstr(err.text, cases[i].says) != NULL && strstr(err.text, "p.json") != NULL,
                  "case %zu: %s", i, err.text);
    }
}

Test(network, levels_without_a_curve_are_refused)
{
    struct weft_profile *profile = NULL;
    struct weft_error err = {0};
    cr_assert_eq(parse_file(HEAD
                            ",\"levels\":{\"ranks_per_node\":2,\"node\":{\"all_gather\":" CURVE_OF(
                                10) "},\"across\":{}}}",
                            &profile, &err),
                 WEFT_E_DATA);
    cr_expect(strstr(err.text, "p.json: levels") != NULL, "%s", err.text);
}
