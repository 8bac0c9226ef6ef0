/* SPDX-License-Identifier: Apache-2.0 */
/* The analytic profile, and a measured one over it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spec/layer.h"
#include "spec/profile/profile.h"
#include "tests/spec/config_text.h"

#define DEVICE "\"device\":{\"flops\":{\"f32\":\"1T\"},\"memory_bandwidth\":\"28GB/s\"}"
#define INTRA  "\"intra\":{\"alpha\":\"10us\",\"bandwidth\":\"1GB/s\"}"
#define INTER  "\"inter\":{\"alpha\":\"30us\",\"bandwidth\":\"0.5GB/s\"}"
#define NODE   "{\"ranks\":4,\"base\":\"3MiB\"," DEVICE ",\"link\":{" INTRA "," INTER "}}"

static struct weft_profile *resolve_profile(struct weft_config *config)
{
    struct weft_profile *profile = NULL;
    struct weft_error error = {0};
    enum weft_status status = weft_profile_resolve(config, &profile, &error);
    cr_assert(status == WEFT_OK, "%s", error.text);
    return profile;
}

static const char *failure_analytic(const struct weft_config *config)
{
    static struct weft_error error;
    struct weft_profile *profile = NULL;
    error = (struct weft_error){0};
    cr_assert_eq(weft_profile_resolve(config, &profile, &error), WEFT_E_DATA);
    cr_assert_null(profile);
    return error.text;
}

Test(profile_analytic, follows_the_formulas)
{
    struct weft_config *config = must_parse(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN));
    struct weft_profile *profile = resolve_profile(config);
    cr_assert_str_eq(profile->source, "analytic");
    cr_assert_eq(profile->ranks, 4);
    cr_assert_eq(profile->base_bytes, 3 << 20);
    const struct weft_curve *gather = &profile->collectives[WEFT_ALL_GATHER];
    /* 1 MiB x 3/4 at 1 byte a ns, and 10 us. */
    cr_assert_eq(weft_curve_at(gather, 1 << 20), 10000 + 786432);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_REDUCE_SCATTER], 1 << 20), 796432);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_ALL_REDUCE], 1 << 20), 2 * 796432);
    cr_assert_eq(weft_curve_at(gather, INT64_C(1) << 34), 10000 + 3 * (INT64_C(1) << 32),
                 "beyond the last point");
    /* 28 bytes an element at 28 bytes a ns; 4 for the norm. */
    cr_assert_eq(weft_curve_at(&profile->update, 1 << 20), 1 << 20);
    cr_assert_eq(weft_curve_at(&profile->norm, 8 << 20), 1198373);
    cr_assert_eq(profile->agree_ns, 2 * (10000 + 6144));
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

/* A CPU's kernels need none. */
Test(profile_analytic, layers_on_a_gpu_have_scratch)
{
    static const char *const overrides[] = {"cluster.device.type=cuda", NULL};
    for (int gpu = 0; gpu < 2; gpu++) {
        struct weft_config *config = NULL;
        struct weft_error err = {0};
        cr_assert_eq(
            parse(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN), gpu ? overrides : NULL, &config, &err),
            WEFT_OK, "%s", err.text);
        struct weft_profile *profile = resolve_profile(config), *again = NULL;
        const struct weft_batch batch = weft_config_batch(config);
        const struct weft_layer *block = &config->model->layers[1];
        struct weft_pool pool = {0};
        struct weft_layer_work work;
        struct weft_text text;
        const char *key = weft_layer_key(&pool, block, &batch);
        cr_assert_eq(weft_layer_work(block, &batch, &work, NULL), WEFT_OK);
        cr_assert_gt(work.backward_scratch_bytes, 0);
        weft_text_init(&text);
        weft_profile_write(profile, &text);
        cr_expect_eq(strstr(weft_text_chars(&text), "scratch") != NULL, gpu);
        cr_assert_eq(weft_profile_parse(weft_text_chars(&text), text.length, "again", &again, &err),
                     WEFT_OK, "%s", err.text);
        cr_expect_eq(weft_profile_layer(profile, key)->backward_scratch_bytes,
                     gpu ? work.backward_scratch_bytes : 0);
        cr_expect_eq(weft_profile_layer(again, key)->backward_scratch_bytes,
                     gpu ? work.backward_scratch_bytes : 0);
        weft_text_finish(&text);
        weft_pool_finish(&pool);
        weft_profile_destroy(again);
        weft_profile_destroy(profile);
        weft_config_destroy(config);
    }
}

Test(profile_analytic, layers_take_the_slower_of_compute_and_memory)
{
    struct weft_config *config = must_parse(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN));
    struct weft_profile *profile = resolve_profile(config);
    struct weft_batch batch = weft_config_batch(config);
    struct weft_pool pool = {0};
    cr_assert_eq(profile->n_layers, 4, "three equal blocks are one entry");
    for (int32_t i = 0; i < config->model->n_layers; i++) {
        const struct weft_layer *layer = &config->model->layers[i];
        struct weft_layer_work work;
        cr_assert_eq(weft_layer_work(layer, &batch, &work, NULL), WEFT_OK);
        const struct weft_layer_times *times =
            weft_profile_layer(profile, weft_layer_key(&pool, layer, &batch));
        cr_assert_not_null(times);
        double compute = work.forward_flops / 0.5e12 * 1e9;
        double memory = work.forward_moved_bytes / 28e9 * 1e9;
        double slower = compute > memory ? compute : memory;
        cr_assert((double)times->forward_ns >= slower * (1 - 1e-9) &&
                  (double)times->forward_ns <= slower + 1.001);
        cr_assert_gt(times->backward_ns, 0);
    }
    weft_pool_finish(&pool);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

Test(profile_analytic, the_slower_link_decides_between_nodes)
{
    struct weft_config *config =
        must_parse_with(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN), SET("cluster.ranks_per_node=2"));
    struct weft_profile *profile = resolve_profile(config);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_ALL_GATHER], 1 << 20),
                 30000 + 2 * 786432);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
    config = must_parse_with(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN),
                             SET("cluster.ranks_per_node=2", "cluster.link.inter.alpha=1us",
                                 "cluster.link.inter.bandwidth=9GB/s"));
    profile = resolve_profile(config);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_ALL_GATHER], 1 << 20), 10000 + 786432);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

/* 8 ranks in nodes of 2 are 4 nodes, two of them after the second. 5 ranks are 3 nodes. */
Test(profile_analytic, latency_grows_with_the_nodes)
{
    static const struct {
        const char *ranks;
        int64_t ns; /* of 4,096 bytes at 4 GB/s */
    } cases[] = {{"cluster.ranks=8", 100000 + 2 * 7000 + 896},
                 {"cluster.ranks=5", 100000 + 7000 + 820},
                 {"cluster.ranks=4", 100000 + 768}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_config *config = must_parse_with(
            CONFIG(GPT_MODEL, NODE, SMALL_TRAIN),
            SET(cases[i].ranks, "cluster.ranks_per_node=2", "cluster.link.inter.alpha=100us",
                "cluster.link.inter.bandwidth=4GB/s", "cluster.link.alpha_per_node=7us"));
        struct weft_profile *profile = resolve_profile(config);
        const int64_t ns = weft_curve_at(&profile->collectives[WEFT_ALL_GATHER], 4096);
        cr_assert(ns >= cases[i].ns && ns <= cases[i].ns + 1, "%s: %lld", cases[i].ranks,
                  (long long)ns); /* rounded up */
        weft_profile_destroy(profile);
        weft_config_destroy(config);
    }
}

/* Small collectives wait for the network between nodes, large ones for the slower links in them. */
Test(profile_analytic, each_level_governs_where_it_is_the_slower)
{
    struct weft_config *config =
        must_parse_with(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN),
                        SET("cluster.ranks_per_node=2", "cluster.link.inter.alpha=100us",
                            "cluster.link.inter.bandwidth=3GB/s"));
    struct weft_profile *profile = resolve_profile(config);
    const struct weft_curve *gather = &profile->collectives[WEFT_ALL_GATHER];
    cr_assert_eq(weft_curve_at(gather, 4096), 100000 + 1024);
    cr_assert_eq(weft_curve_at(gather, 1 << 20), 10000 + 786432);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_ALL_REDUCE], 4096), 2 * 101024);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

/* A partial sum of a node crosses to the other one in fp32, and is gathered in 16 bits. With one
 * rank a node there are no partial sums. */
Test(profile_analytic, partial_sums_of_nodes_are_wide)
{
    static const struct {
        const char *reduce, *per_node;
        int64_t scatter_ns, all_reduce_ns; /* 3/4 of 1 MiB at 1 GB/s, or of 2 MiB */
    } cases[] = {
        {"train.precision.reduce=f32", "cluster.ranks_per_node=2", 786432, 2 * 786432},
        {"train.precision.reduce=bf16", "cluster.ranks_per_node=2", 2 * 786432, 3 * 786432},
        {"train.precision.reduce=f16", "cluster.ranks_per_node=2", 2 * 786432, 3 * 786432},
        {"train.precision.reduce=bf16", "cluster.ranks_per_node=1", 786432, 2 * 786432},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_config *config = must_parse_with(
            CONFIG(GPT_MODEL, NODE, SMALL_TRAIN),
            SET(cases[i].reduce, cases[i].per_node, "cluster.link.inter.alpha=0us",
                "cluster.link.inter.bandwidth=1GB/s", "cluster.link.intra.bandwidth=100GB/s",
                "cluster.link.intra.alpha=0us"));
        struct weft_profile *profile = resolve_profile(config);
        const struct weft_curve *curves = profile->collectives;
        cr_assert_eq(weft_curve_at(&curves[WEFT_ALL_GATHER], 1 << 20), 786432);
        cr_assert_eq(weft_curve_at(&curves[WEFT_REDUCE_SCATTER], 1 << 20), cases[i].scatter_ns);
        cr_assert_eq(weft_curve_at(&curves[WEFT_ALL_REDUCE], 1 << 20), cases[i].all_reduce_ns);
        weft_profile_destroy(profile);
        weft_config_destroy(config);
    }
}

Test(profile_analytic, one_rank_sends_nothing)
{
    struct weft_config *config =
        must_parse(CONFIG(GPT_MODEL, "{\"ranks\":1," DEVICE "}", SMALL_TRAIN));
    struct weft_profile *profile = resolve_profile(config);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_ALL_REDUCE], 1 << 30), 0);
    cr_assert_eq(profile->agree_ns, 0);
    cr_assert_gt(profile->layers[0].forward_ns, 0);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

Test(profile_analytic, names_the_missing_figure)
{
    static const char *const cases[][2] = {
        {"{\"ranks\":2,\"link\":{" INTRA "},\"device\":{\"flops\":{\"bf16\":\"1T\"}}}",
         "run.json: $.cluster.device.flops.f32 is missing: without it there is no time of layer "
         "\"wte\" (embedding vocab=256"},
        {"{\"ranks\":2,\"link\":{" INTRA "},\"device\":{\"flops\":{\"bf16\":\"1T\"}}}",
         "\n"
         "give them, or measure: `weft profile run.json -o profile.json`, then --profile "
         "profile.json (or name it in cluster.profile)"},
        {"{\"ranks\":2,\"link\":{" INTRA "},\"device\":{\"flops\":{\"f32\":\"1T\"}}}",
         "$.cluster.device.memory_bandwidth is missing"},
        {"{\"ranks\":2," DEVICE "}", "$.cluster.link.intra.bandwidth is missing"},
        {"{\"ranks\":4,\"ranks_per_node\":2," DEVICE ",\"link\":{" INTRA "}}",
         "$.cluster.link.inter.bandwidth is missing"},
        {"{\"ranks\":4,\"ranks_per_node\":2," DEVICE ",\"link\":{" INTER "}}",
         "$.cluster.link.intra.bandwidth is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096], cluster[512];
        snprintf(cluster, sizeof cluster, "cluster=%s", cases[i][0]);
        snprintf(text, sizeof text, "%s", SMALL_CONFIG);
        struct weft_config *config = must_parse_with(text, SET(cluster));
        const char *error = failure_analytic(config);
        cr_assert_not_null(strstr(error, cases[i][1]), "%s", error);
        weft_config_destroy(config);
    }
}

Test(profile_analytic, names_all_that_is_missing_at_once)
{
    struct weft_config *config =
        must_parse(CONFIG(GPT_MODEL, "{\"ranks\":4,\"ranks_per_node\":2}", SMALL_TRAIN));
    const char *error = failure_analytic(config);
    static const char *const figures[] = {"device.flops.f32", "device.memory_bandwidth",
                                          "link.inter.bandwidth", "link.intra.bandwidth"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        char line[128];
        snprintf(line, sizeof line, "run.json: $.cluster.%s is missing: without it", figures[i]);
        const char *at = strstr(error, line);
        cr_assert_not_null(at, "%s", error);
        cr_assert_null(strstr(at + 1, line), "told once:\n%s", error);
    }
    weft_config_destroy(config);
}

Test(profile_analytic, who_asks_for_memory_alone_needs_no_times)
{
    struct weft_config *config = must_parse(
        CONFIG(GPT_MODEL, "{\"ranks\":2,\"base\":\"3MiB\",\"link\":{" INTRA "}}", SMALL_TRAIN));
    struct weft_profile *profile = NULL;
    struct weft_error err = {0};
    struct weft_text missing;
    weft_text_init(&missing);
    cr_assert_eq(weft_profile_resolve_for_memory(config, &profile, &missing, &err), WEFT_OK);
    cr_assert_str_eq(weft_text_chars(&missing),
                     "cluster.device.flops.f32, cluster.device.memory_bandwidth");
    cr_assert_eq(profile->base_bytes, 3 << 20);
    cr_assert_eq(profile->layers[0].forward_ns, 0);
    cr_assert_gt(weft_curve_at(&profile->collectives[WEFT_ALL_GATHER], 1 << 20), 0);
    weft_text_finish(&missing);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

Test(profile_analytic, one_rank_a_node_needs_no_link_in_it)
{
    struct weft_config *config = must_parse(
        CONFIG(GPT_MODEL, "{\"ranks\":4,\"ranks_per_node\":1," DEVICE ",\"link\":{" INTER "}}",
               SMALL_TRAIN));
    weft_profile_destroy(resolve_profile(config));
    weft_config_destroy(config);
}

/* A config whose profile is a file with that text. */
static struct weft_config *with_measured(const char *cluster, const char *profile)
{
    static char path[64];
    char set_cluster[512], set_profile[128];
    snprintf(path, sizeof path, "/tmp/weft-profile-XXXXXX");
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, profile, strlen(profile)), (ssize_t)strlen(profile));
    close(file);
    snprintf(set_cluster, sizeof set_cluster, "cluster=%s", cluster);
    snprintf(set_profile, sizeof set_profile, "cluster.profile=%s", path);
    return must_parse_with(SMALL_CONFIG, SET(set_cluster, set_profile));
}

static void drop_config(struct weft_config *config)
{
    unlink(config->cluster.profile);
    weft_config_destroy(config);
}

#define MEASURED(ranks, parts)                                                                     \
    "{\"format\":\"weft-profile\",\"version\":1,\"source\":\"measured\",\"machine\":\"here\","     \
    "\"ranks\":" ranks parts "}"
#define SOME                                                                                       \
    ",\"layers\":[{\"key\":\"layer_norm hidden=48 samples=2 seq=64 f32\",\"forward_ns\":77,"       \
    "\"backward_ns\":88}],\"collectives\":{\"all_gather\":{\"bytes\":[1024],\"ns\":[55]}},"        \
    "\"base_bytes\":99"

Test(profile_resolve, takes_each_part_from_the_first_that_has_it)
{
    struct weft_config *config = with_measured(NODE, MEASURED("4", SOME));
    struct weft_profile *profile = resolve_profile(config);
    const struct weft_layer_times *norm =
        weft_profile_layer(profile, "layer_norm hidden=48 samples=2 seq=64 f32");
    cr_assert_str_eq(profile->source, "measured, with analytic layers, collectives, update, norm");
    cr_assert_str_eq(profile->machine, "here");
    cr_assert_not_null(norm);
    cr_assert_eq(norm->forward_ns, 77);
    cr_assert_eq(norm->backward_ns, 88);
    cr_assert_eq(profile->n_layers, 4);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_ALL_GATHER], 1 << 20), 55);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_REDUCE_SCATTER], 1 << 20), 796432);
    cr_assert_eq(profile->base_bytes, 99);
    weft_profile_destroy(profile);
    drop_config(config);
}

Test(profile_resolve, needs_no_figures_where_all_is_measured)
{
    struct weft_config *whole = must_parse(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN));
    struct weft_profile *analytic = resolve_profile(whole);
    struct weft_text text;
    weft_text_init(&text);
    weft_profile_write(analytic, &text);
    struct weft_config *config = with_measured("{\"ranks\":4}", weft_text_chars(&text));
    struct weft_profile *profile = resolve_profile(config);
    cr_assert_eq(profile->n_layers, analytic->n_layers);
    cr_assert_eq(profile->agree_ns, analytic->agree_ns);
    cr_assert(weft_hash_equal(profile->hash, analytic->hash));
    weft_text_finish(&text);
    weft_profile_destroy(profile);
    weft_profile_destroy(analytic);
    weft_config_destroy(whole);
    drop_config(config);
}

#define UPDATES(name)                                                                              \
    ",\"kernels\":\"avx512\",\"layers\":[],\"collectives\":{},\"updates\":\"" name                 \
    "\",\"update\":{\"elements\":[1024],"                                                          \
    "\"ns\":[5000]}"

/* Times of another optimizer's updates are none of this one's. */
Test(profile_resolve, takes_times_of_its_own_optimizer)
{
    struct weft_config *config = with_measured(NODE, MEASURED("4", UPDATES("adamw")));
    struct weft_profile *profile = resolve_profile(config);
    cr_assert_eq(weft_curve_at(&profile->update, 1024), 5000);
    cr_assert_str_eq(profile->updates, "adamw");
    cr_assert_null(profile->kernels, "who multiplies is said of measured layers alone");
    cr_assert_null(strstr(profile->source, "update"), "%s", profile->source);
    weft_profile_destroy(profile);
    drop_config(config);

    config = with_measured(NODE, MEASURED("4", UPDATES("lamb")));
    profile = resolve_profile(config);
    cr_assert_eq(weft_curve_at(&profile->update, 1 << 20), 1 << 20, "28 bytes at 28 bytes a ns");
    cr_assert_null(profile->updates);
    cr_assert_not_null(strstr(profile->source, "update"), "%s", profile->source);
    weft_profile_destroy(profile);
    drop_config(config);
}

#define CONTENDING                                                                                 \
    "{\"ranks\":4,\"contention\":{\"compute\":0.25}," DEVICE ",\"link\":{" INTRA "," INTER "}}"

/* Measured layers hold what communication costs them, unless the profile has it of its own. */
Test(profile_resolve, counts_contention_once)
{
    struct weft_config *config = with_measured(CONTENDING, MEASURED("4", SOME));
    const char *error = failure_analytic(config);
    cr_assert_not_null(strstr(error, "cluster.contention of run.json would count it twice"), "%s",
                       error);
    cr_assert_not_null(strstr(error, "`weft profile --contention`"), "%s", error);
    drop_config(config);

    config = with_measured(
        CONTENDING,
        MEASURED("4", SOME ",\"contention\":{\"compute_rate\":900,\"channel_rate\":1000}"));
    struct weft_profile *profile = resolve_profile(config);
    cr_assert_eq(profile->rates.compute, 900);
    cr_assert_eq(profile->rates.own, 1000);
    weft_profile_destroy(profile);
    drop_config(config);

    config = with_measured(CONTENDING, MEASURED("4", ",\"layers\":[],\"collectives\":{}"));
    profile = resolve_profile(config);
    cr_assert_eq(profile->rates.compute, 768, "analytic layers need it");
    weft_profile_destroy(profile);
    drop_config(config);
}

Test(profile_resolve, refuses_another_device)
{
    struct weft_config *config = with_measured(NODE, MEASURED("4", SOME ",\"device\":\"strict\""));
    const char *error = failure_analytic(config);
    cr_assert_not_null(strstr(error, ": was measured on device \"strict\", and "
                                     "cluster.device.type of run.json is \"cpu\": run `weft "
                                     "profile` on that"),
                       "%s", error);
    drop_config(config);

    config = with_measured(NODE, MEASURED("4", SOME ",\"device\":\"cpu\""));
    struct weft_profile *profile = resolve_profile(config);
    weft_profile_destroy(profile);
    drop_config(config);
}

Test(profile_resolve, takes_layers_of_other_ranks_and_no_collectives)
{
    struct weft_config *config = with_measured(NODE, MEASURED("2", SOME));
    struct weft_profile *analytic = NULL, *profile = resolve_profile(config);
    struct weft_error err = {0};
    const struct weft_layer_times *norm =
        weft_profile_layer(profile, "layer_norm hidden=48 samples=2 seq=64 f32");
    cr_assert_eq(weft_profile_analytic(config, &analytic, &err), WEFT_OK, "%s", err.text);
    cr_assert_not_null(norm);
    cr_assert_eq(norm->forward_ns, 77);
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        cr_assert_eq(weft_curve_at(&profile->collectives[kind], 1 << 20),
                     weft_curve_at(&analytic->collectives[kind], 1 << 20));
    cr_assert_eq(profile->agree_ns, analytic->agree_ns);
    cr_assert_eq(profile->base_bytes, 99);
    cr_assert_eq(profile->ranks, 4);
    cr_assert_eq(profile->origin.ranks, 2);
    cr_assert_not(weft_profile_lacks_network(config));
    weft_profile_destroy(analytic);
    weft_profile_destroy(profile);
    drop_config(config);
}

Test(profile_resolve, says_which_link_collectives_of_other_ranks_need)
{
    struct weft_config *config = with_measured("{\"ranks\":4," DEVICE "}", MEASURED("2", SOME));
    const char *error = failure_analytic(config);
    cr_assert_not_null(strstr(error, ": made for 2 ranks, and the cluster of run.json has 4\n"),
                       "%s", error);
    cr_assert_not_null(strstr(error, "does not give cluster.link.intra.bandwidth"), "%s", error);
    cr_assert_null(strstr(error, "flops"), "%s", error);
    cr_assert(weft_profile_lacks_network(config));

    static const int64_t bytes[] = {1024}, ns[] = {4444};
    struct weft_profile network = {.ranks = 4, .agree_ns = 5, .base_bytes = 6}, *whole = NULL;
    struct weft_error err = {0};
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        network.collectives[kind] = (struct weft_curve){.n = 1, .x = bytes, .ns = ns};
    cr_assert_eq(weft_profile_with_network(config, &network, &whole, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(whole->ranks, 4);
    cr_assert_eq(whole->layers[0].forward_ns, 77);
    cr_assert_eq(weft_curve_at(&whole->collectives[WEFT_ALL_GATHER], 1024), 4444);
    cr_assert_eq(whole->agree_ns, 5);
    cr_assert_eq(whole->base_bytes, 6);
    weft_profile_destroy(whole);
    drop_config(config);
}

/* A new measurement with times of each layer of the config. */
static struct weft_profile *measure_all(const struct weft_config *config, int64_t busy_millicores)
{
    struct weft_config without = *config;
    struct weft_profile *whole = NULL;
    struct weft_error err = {0};
    without.cluster.profile = NULL;
    without.cluster.link.intra = (struct weft_link){.bytes_per_s = 1e9};
    cr_assert_eq(weft_profile_analytic(&without, &whole, &err), WEFT_OK, "%s", err.text);
    whole->origin.busy_millicores = busy_millicores;
    return whole;
}

/* Two nodes of two ranks step on their own, so collectives are those of two ranks: of the link in a
 * node, or measured on that level of all four ranks. */
Test(profile_resolve, nodes_on_their_own_have_collectives_of_a_node)
{
    static const int64_t bytes[] = {4096, 8192}, gather[] = {40, 80}, reduce[] = {60, 120};
    struct weft_config *config =
        must_parse_with(CONFIG(GPT_MODEL, NODE, SMALL_TRAIN),
                        SET("cluster.ranks_per_node=2", "train.across.every=3"));
    struct weft_profile *profile = resolve_profile(config), *measured = NULL, *levels = NULL;
    struct weft_error err = {0};
    cr_assert_eq(profile->ranks, 2);
    cr_assert_eq(weft_curve_at(&profile->collectives[WEFT_ALL_GATHER], 4096), 10000 + 2048);
    config->train.every = 0;
    cr_assert_eq(weft_profile_analytic(config, &measured, &err), WEFT_OK, "%s", err.text);
    config->train.every = 3;
    measured->network = (struct weft_profile_network){
        .ranks_per_node = 2,
        .levels = {[WEFT_GROUP_NODE] = {[WEFT_ALL_GATHER] = {2, bytes, gather},
                                        [WEFT_REDUCE_SCATTER] = {2, bytes, reduce}},
                   [WEFT_GROUP_ACROSS] = {[WEFT_ALL_REDUCE] = {2, bytes, reduce}}}};
    cr_assert_eq(weft_profile_resolve_measured(config, measured, &levels, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(levels->ranks, 2);
    cr_assert_eq(weft_curve_at(&levels->collectives[WEFT_ALL_GATHER], 4096), 40);
    cr_assert_eq(weft_curve_at(&levels->collectives[WEFT_REDUCE_SCATTER], 4096), 60);
    cr_assert_eq(weft_curve_at(&levels->collectives[WEFT_ALL_REDUCE], 4096), 100);
    cr_assert_eq(weft_curve_at(&levels->network.levels[WEFT_GROUP_ACROSS][WEFT_ALL_REDUCE], 8192),
                 120);
    weft_profile_destroy(levels);
    /* Levels of other nodes do not count. */
    measured->network.ranks_per_node = 4;
    cr_assert_eq(weft_profile_resolve_measured(config, measured, &levels, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(weft_curve_at(&levels->collectives[WEFT_ALL_GATHER], 4096), 10000 + 2048);
    weft_profile_destroy(levels);
    weft_profile_destroy(measured);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

Test(profile_resolve, a_new_measurement_serves_where_the_profile_lacks_layers)
{
    struct weft_config *config = with_measured("{\"ranks\":4," DEVICE "}", MEASURED("2", SOME));
    struct weft_profile *network = measure_all(config, 1300), *whole = NULL, *resolved = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_profile_with_network(config, network, &whole, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(whole->n_layers, network->n_layers);
    for (int32_t i = 0; i < network->n_layers; i++)
        cr_assert_eq(whole->layers[i].forward_ns, network->layers[i].forward_ns);
    cr_assert_eq(weft_profile_resolve_measured(config, whole, &resolved, &err), WEFT_OK, "%s",
                 err.text);
    weft_profile_destroy(resolved);
    weft_profile_destroy(whole);
    weft_profile_destroy(network);
    drop_config(config);
}

Test(profile_resolve, the_load_of_a_new_measurement_is_kept)
{
    struct weft_config *config = with_measured("{\"ranks\":4," DEVICE "}", MEASURED("2", SOME));
    static const int64_t bytes[] = {1024}, ns[] = {4444};
    for (int64_t busy = -1; busy <= 1300; busy += 1301) {
        struct weft_profile network = {.ranks = 4, .origin = {.busy_millicores = busy}};
        struct weft_profile *whole = NULL;
        struct weft_error err = {0};
        for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
            network.collectives[kind] = (struct weft_curve){.n = 1, .x = bytes, .ns = ns};
        cr_assert_eq(weft_profile_with_network(config, &network, &whole, &err), WEFT_OK, "%s",
                     err.text);
        cr_assert_eq(whole->origin.busy_millicores, busy);
        weft_profile_destroy(whole);
    }
    drop_config(config);
}

Test(profile_resolve, says_to_measure_what_is_neither_measured_nor_given)
{
    struct weft_config *config = with_measured("{\"ranks\":4}", MEASURED("4", SOME));
    const char *error = failure_analytic(config);
    cr_assert_not_null(strstr(error, ": no time of layer \"wte\" (embedding vocab=256"), "%s",
                       error);
    cr_assert_not_null(strstr(error, "), and run.json does not give "
                                     "cluster.device.flops.f32"),
                       "%s", error);
    cr_assert_not_null(strstr(error, "or measure: `weft profile run.json -o profile.json`"), "%s",
                       error);
    drop_config(config);
}

Test(profile_resolve, a_profile_of_other_ranks_still_gives_its_base_and_block_sizes)
{
    struct weft_config *config = with_measured(
        "{\"ranks\":4}", "{\"format\":\"weft-profile\",\"version\":1,\"source\":\"measured\","
                         "\"machine\":\"m\",\"ranks\":2,\"layers\":[],\"base_bytes\":777,"
                         "\"collectives\":{\"all_gather\":{\"bytes\":[1024,65536],"
                         "\"ns\":[1000,2000]}}}");
    struct weft_profile *profile = NULL;
    struct weft_error err = {0};
    struct weft_text missing;
    weft_text_init(&missing);
    cr_assert_eq(weft_profile_resolve(config, &profile, &err), WEFT_E_DATA);
    err = (struct weft_error){0};
    cr_assert_eq(weft_profile_resolve_for_memory(config, &profile, &missing, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_not_null(strstr(weft_text_chars(&missing), "a profile of 4 ranks ("));
    cr_assert_eq(profile->ranks, 4);
    cr_assert_eq(profile->base_bytes, 777);
    cr_assert_leq(weft_profile_block_bytes(profile, 0.9), 65536);
    weft_text_finish(&missing);
    weft_profile_destroy(profile);
    drop_config(config);
}

Test(profile_resolve, a_missing_file_is_no_input)
{
    struct weft_config *config =
        must_parse_with(SMALL_CONFIG, SET("cluster.profile=/nowhere/profile.json"));
    struct weft_profile *profile = NULL;
    struct weft_error error = {0};
    cr_assert_eq(weft_profile_resolve(config, &profile, &error), WEFT_E_NO_INPUT);
    cr_assert_not_null(strstr(error.text, "/nowhere/profile.json"), "%s", error.text);
    weft_config_destroy(config);
}
