/* SPDX-License-Identifier: Apache-2.0 */
/* Times of collectives of one level: measured ones for nodes of as many ranks, otherwise the
 * links'. */
#include "problem/item_times.h"

#include <criterion/criterion.h>
#include <string.h>

/* 4 nodes of 2 ranks. 1 and 0.5 bytes a ns, alphas of 10 and 30 ns. */
static struct weft_cluster two_levels(void)
{
    struct weft_cluster cluster = {.ranks = 8, .ranks_per_node = 2};
    cluster.link.intra = (struct weft_link){.alpha_ns = 10, .bytes_per_s = 1e9};
    cluster.link.inter = (struct weft_link){.alpha_ns = 30, .bytes_per_s = 5e8};
    return cluster;
}

static const int64_t sizes[] = {1024, 4096};
static const int64_t gather_ns[] = {100, 400}, reduce_ns[] = {200, 800}, across_ns[] = {700, 2800};

static struct weft_profile_network measured_levels(void)
{
    return (struct weft_profile_network){
        .ranks_per_node = 2,
        .levels = {[WEFT_GROUP_NODE] = {[WEFT_ALL_GATHER] = {2, sizes, gather_ns},
                                        [WEFT_REDUCE_SCATTER] = {2, sizes, reduce_ns}},
                   [WEFT_GROUP_ACROSS] = {[WEFT_ALL_REDUCE] = {2, sizes, across_ns}}}};
}

static int64_t time_of(const struct weft_profile *profile, int kind)
{
    const struct weft_cluster cluster = two_levels();
    const struct weft_item item = {.kind = kind, .block_bytes = 2048};
    const enum weft_rank_group group =
        weft_item_kinds[kind].role == WEFT_ROLE_ACROSS ? WEFT_GROUP_ACROSS : WEFT_GROUP_NODE;
    return weft_item_level_ns(profile, &cluster, group, &item);
}

Test(item_times, levels_without_measurement_have_the_links)
{
    const struct weft_profile profile = {.ranks = 8};
    cr_expect_eq(time_of(&profile, WEFT_ALL_GATHER), 10 + 1024);
    cr_expect_eq(time_of(&profile, WEFT_REDUCE_SCATTER), 10 + 1024);
    /* Both ranks of a node share the link: 4096 bytes x 3/4 at half a byte a ns, twice. */
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_REDUCE), 2 * (30 + 6144));
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_SCATTER), 30 + 6144);
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_GATHER), 30 + 6144);
}

Test(item_times, measured_levels_come_first)
{
    const struct weft_profile profile = {.ranks = 8, .network = measured_levels()};
    cr_expect_eq(time_of(&profile, WEFT_ALL_GATHER), 200);
    cr_expect_eq(time_of(&profile, WEFT_REDUCE_SCATTER), 400);
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_REDUCE), 1400);
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_SCATTER), 700);
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_GATHER), 700);
}

/* Collectives of one pass have times of their own, where the profile has them. */
Test(item_times, a_pass_across_nodes_takes_its_own_time_before_half_of_a_sum)
{
    static const int64_t parts_ns[] = {300, 1200}, parameters_ns[] = {500, 2000};
    struct weft_profile profile = {.ranks = 8, .network = measured_levels()};
    struct weft_curve *across = profile.network.levels[WEFT_GROUP_ACROSS];
    across[WEFT_REDUCE_SCATTER] = (struct weft_curve){2, sizes, parts_ns};
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_GATHER), 700);
    across[WEFT_ALL_GATHER] = (struct weft_curve){2, sizes, parameters_ns};
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_REDUCE), 1400);
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_SCATTER), 600);
    cr_expect_eq(time_of(&profile, WEFT_ACROSS_GATHER), 1000);
}

Test(item_times, levels_of_other_nodes_do_not_count)
{
    struct weft_profile profile = {.ranks = 8, .network = measured_levels()};
    profile.network.ranks_per_node = 4;
    cr_expect_eq(time_of(&profile, WEFT_ALL_GATHER), 10 + 1024);
}

Test(item_times, hsdp_needs_a_source_of_times)
{
    struct weft_profile profile = {.ranks = 8};
    struct weft_config config = {.source = "run.json", .cluster = two_levels()};
    struct weft_error err = {0};
    cr_expect_eq(weft_item_need_levels(&profile, &config, &err), WEFT_OK);
    config.cluster.link.inter.bytes_per_s = 0;
    cr_expect_eq(weft_item_need_levels(&profile, &config, &err), WEFT_E_DATA);
    cr_expect(strstr(err.text, "run.json") && strstr(err.text, "cluster.link.inter") &&
                  strstr(err.text, "weft profile"),
              "%s", err.text);
    profile.network = measured_levels();
    cr_expect_eq(weft_item_need_levels(&profile, &config, &err), WEFT_OK);
    config.cluster.ranks_per_node = 4;
    cr_expect_eq(weft_item_need_levels(&profile, &config, &err), WEFT_E_DATA);
}

/* An average is an AllReduce across nodes, and its gather is one of all ranks. */
Test(item_times, averages_have_the_times_of_sums_over_nodes)
{
    struct weft_profile profile = {.ranks = 8};
    struct weft_config config = {.source = "run.json", .cluster = two_levels()};
    struct weft_error err = {0};
    cr_expect_eq(time_of(&profile, WEFT_AVERAGE), time_of(&profile, WEFT_ACROSS_REDUCE));
    cr_expect_eq(weft_average_need(&profile, &config, &err), WEFT_OK);
    config.cluster.link.inter.bytes_per_s = 0;
    cr_expect_eq(weft_average_need(&profile, &config, &err), WEFT_E_DATA);
    cr_expect(strstr(err.text, "$.train.across.every") && strstr(err.text, "cluster.link.inter"),
              "%s", err.text);
    profile.network = measured_levels();
    cr_expect_eq(weft_average_need(&profile, &config, &err), WEFT_OK);
    cr_expect_eq(time_of(&profile, WEFT_AVERAGE), 1400);
}
