/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/precision.h"
#include "runtime/measure/machine.h"
#include "runtime/measure/parts.h"
#include "runtime/measure/tiers.h"
#include "spec/config_batch.h"

enum {
    EXCHANGE_WORDS = 512, /* 4096 bytes, the most in one exchange */
    MACHINE_BYTES = 512
};

/* Replaces each value by the maximum, or the sum, over ranks. */
static enum weft_status combine_values(struct weft_comm *comm, int64_t *values, int32_t n,
                                       bool adds, struct weft_error *err)
{
    int32_t ranks = weft_comm_ranks(comm);
    int64_t *all = calloc((size_t)ranks * EXCHANGE_WORDS, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' measurements");
    enum weft_status status = WEFT_OK;
    for (int32_t at = 0; at < n && status == WEFT_OK; at += EXCHANGE_WORDS) {
        int32_t count = n - at < EXCHANGE_WORDS ? n - at : EXCHANGE_WORDS;
        status = weft_comm_exchange(comm, values + at, (size_t)count * sizeof *values, all, err);
        if (status != WEFT_OK) break;
        memcpy(values + at, all, (size_t)count * sizeof *values);
        for (int32_t i = count; i < ranks * count; i++) {
            int64_t *value = &values[at + i % count];
            if (adds) {
                *value += all[i];
            } else if (all[i] > *value) {
                *value = all[i];
            }
        }
    }
    free(all);
    return status;
}

enum weft_status weft_measure_most(struct weft_comm *comm, int64_t *values, int32_t n,
                                   struct weft_error *err)
{
    return combine_values(comm, values, n, false, err);
}

enum weft_status weft_measure_sum(struct weft_comm *comm, int64_t *values, int32_t n,
                                  struct weft_error *err)
{
    return combine_values(comm, values, n, true, err);
}

enum weft_status weft_measure_mean(struct weft_comm *comm, int64_t *values, int32_t n,
                                   struct weft_error *err)
{
    WEFT_TRY(weft_measure_sum(comm, values, n, err));
    for (int32_t i = 0; i < n; i++)
        values[i] /= weft_comm_ranks(comm);
    return WEFT_OK;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t weft_measure_median(int64_t *values, int64_t n)
{
    if (n == 0) return 0;
    qsort(values, (size_t)n, sizeof *values, compare_times);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* A profile under construction. It is written and parsed at the end, which checks it and gives it
 * its hash. */
struct weft_measuring {
    struct weft_measure_options options;
    struct weft_config config; /* the caller's, with one lane of the network: collectives that run
                                  at once have no time of their own */
    struct weft_profile profile;
    struct measure_benches benches;
    struct weft_profile *planned; /* from the benches alone; rehearsals are planned with it */
    struct measure_rehearsals *rehearsals;
};

static enum weft_status list_layers(struct weft_measuring *m, struct weft_error *err)
{
    const struct weft_config *config = m->options.config;
    struct weft_profile *profile = &m->profile;
    struct weft_batch batch = weft_config_batch(config);
    size_t n_layers = (size_t)config->model->n_layers;
    profile->layers = weft_pool_array(&profile->pool, n_layers, sizeof *profile->layers);
    if (profile->layers == NULL) return weft_fail_memory(err, "a profile");
    for (int32_t l = 0; l < config->model->n_layers; l++) {
        const char *key = weft_layer_key(&profile->pool, &config->model->layers[l], &batch);
        if (key == NULL) return weft_fail_memory(err, "a profile");
        if (weft_profile_layer(profile, key) != NULL) continue;
        struct weft_layer_times *times = &profile->layers[profile->n_layers++];
        const struct weft_nn_needs needs =
            weft_nn_layer_needs(m->options.nn, &config->model->layers[l], &batch);
        *times = (struct weft_layer_times){.key = key,
                                           .forward_ns = 1,
                                           .backward_ns = 1,
                                           .forward_scratch_bytes = needs.forward_bytes,
                                           .backward_scratch_bytes = needs.backward_bytes};
        struct weft_layer_work work;
        WEFT_TRY(weft_layer_work(&config->model->layers[l], &batch, &work, err));
        for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
            if (!work.splits[level].possible) continue;
            times->levels[level] = (struct weft_level_times){.forward_ns = 1, .backward_ns = 1};
            times->recomputes |= 1 << level;
        }
    }
    return WEFT_OK;
}

static enum weft_status take_curve(struct weft_pool *pool, const struct measure_curve *from,
                                   struct weft_curve *to, struct weft_error *err)
{
    size_t n = (size_t)from->n;
    int64_t *x = weft_pool_array(pool, n, sizeof *x), *ns = weft_pool_array(pool, n, sizeof *ns);
    if (x == NULL || ns == NULL) return weft_fail_memory(err, "a profile");
    memcpy(x, from->x, n * sizeof *x);
    memcpy(ns, from->ns, n * sizeof *ns);
    *to = (struct weft_curve){.n = from->n, .x = x, .ns = ns};
    return WEFT_OK;
}

static enum weft_status take_levels(struct weft_measuring *m, struct weft_error *err)
{
    struct weft_profile_network *network = &m->profile.network;
    struct weft_pool *pool = &m->profile.pool;
    const struct measure_curve *levels = m->benches.levels;
    if (levels[0].n == 0) return WEFT_OK;
    network->ranks_per_node = (int32_t)m->options.config->cluster.ranks_per_node;
    for (int i = 0; i < WEFT_LINK_LEVELS; i++)
        WEFT_TRY(take_curve(pool, &levels[i],
                            &network->levels[weft_link_levels[i].group][weft_link_levels[i].kind],
                            err));
    return WEFT_OK;
}

static enum weft_status take_benches(struct weft_measuring *m, struct weft_error *err)
{
    struct weft_profile *profile = &m->profile;
    const struct measure_benches *benches = &m->benches;
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        WEFT_TRY(take_curve(&profile->pool, &benches->collectives[kind],
                            &profile->collectives[kind], err));
    }
    WEFT_TRY(take_levels(m, err));
    WEFT_TRY(take_curve(&profile->pool, &benches->update, &profile->update, err));
    return take_curve(&profile->pool, &benches->norm, &profile->norm, err);
}

static enum weft_status read_back(const struct weft_measuring *m, struct weft_profile **out,
                                  struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_profile_write(&m->profile, &text);
    enum weft_status status =
        weft_text_ok(&text)
            ? weft_profile_parse(weft_text_chars(&text), text.length, "measured profile", out, err)
            : weft_fail_memory(err, "a profile");
    weft_text_finish(&text);
    return status;
}

/* Scales a curve to the times seen in steps. A bench times one operation alone. In a step an update
 * or norm is many calls on pieces, and a collective starts next to compute. The curve keeps its
 * form. The time that a collective waits for computing ranks is left out, because the next plan
 * waits elsewhere. */
static void scale_curve(struct measure_curve *curve, int64_t seen_ns, int64_t expected_ns)
{
    if (seen_ns <= 0 || expected_ns <= 0) return;
    double factor = (double)seen_ns / (double)expected_ns;
    for (int32_t i = 0; i < curve->n; i++)
        curve->ns[i] = llround((double)curve->ns[i] * factor);
}

/* Scales the curves of collectives. Rehearsals prefer ReduceScatter to AllReduce, so an AllReduce
 * may be unseen. It is a reduction and a gather, and takes the scale of these. */
static void scale_collectives(struct measure_benches *benches,
                              const struct measure_rehearsal *rehearsal)
{
    int64_t seen_ns = 0, expected_ns = 0;
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        scale_curve(&benches->collectives[kind], rehearsal->transfer_ns[kind],
                    rehearsal->transfer_expected_ns[kind]);
        seen_ns += rehearsal->transfer_ns[kind];
        expected_ns += rehearsal->transfer_expected_ns[kind];
    }
    if (rehearsal->transfer_expected_ns[WEFT_ALL_REDUCE] == 0)
        scale_curve(&benches->collectives[WEFT_ALL_REDUCE], seen_ns, expected_ns);
}

/* Predicts the rehearsal's step with the current profile. */
static enum weft_status predict_step(void *context, int64_t *step_ns, struct weft_error *err)
{
    struct weft_measuring *m = context;
    struct weft_profile *profile;
    WEFT_TRY(read_back(m, &profile, err));
    profile->tiers = (struct weft_profile_tiers){0};
    enum weft_status status = weft_measure_rehearsed_step(m->options.config, profile, step_ns, err);
    weft_profile_destroy(profile);
    return status;
}

static enum weft_status take_rehearsal(struct weft_measuring *m, struct weft_error *err)
{
    struct weft_profile *profile = &m->profile;
    struct measure_benches *benches = &m->benches;
    size_t n_rows = (size_t)weft_measure_rows(profile);
    struct measure_layer *rows = weft_pool_array(&profile->pool, 3 * n_rows, sizeof *rows);
    if (rows == NULL) return weft_fail_memory(err, "a profile");
    struct measure_rehearsal rehearsal = {
        .layers = rows, .pass_first = rows + n_rows, .pass_later = rows + 2 * n_rows};
    const bool counts_hosts = profile->network.n_hosts > 0 && m->options.known == NULL;
    if (counts_hosts)
        rehearsal.compute_ns =
            weft_pool_array(&profile->pool, (size_t)profile->ranks, sizeof *rehearsal.compute_ns);
    if (counts_hosts && rehearsal.compute_ns == NULL) return weft_fail_memory(err, "a profile");
    WEFT_TRY(weft_measure_rehearsals_finish(m->rehearsals, &rehearsal, err));
    if (m->options.known == NULL) {
        scale_curve(&benches->update, rehearsal.update_ns, rehearsal.update_expected_ns);
        scale_curve(&benches->norm, rehearsal.norm_ns, rehearsal.norm_expected_ns);
        scale_collectives(benches, &rehearsal);
        WEFT_TRY(take_benches(m, err));
    }
    profile->agree_ns = rehearsal.agree_ns;
    profile->base_bytes = rehearsal.base_bytes;
    profile->staging_bytes = weft_comm_staging_bytes(m->options.comm);
    if (rehearsal.compute_ns != NULL)
        WEFT_TRY(weft_measure_hosts_compute(rehearsal.compute_ns,
                                            (int32_t)m->options.config->cluster.ranks_per_node,
                                            &profile->pool, &profile->network, err));
    return weft_measure_explain(profile, &rehearsal, predict_step, m, err);
}

/* All ranks take rank 0's text, because measured speeds of kernels differ a little between
 * ranks. */
static enum weft_status describe_machine(struct weft_measuring *m, struct weft_error *err)
{
    const struct weft_measure_options *o = &m->options;
    char mine[MACHINE_BYTES] = {0};
    snprintf(mine, sizeof mine, "%s; %s", weft_comm_describe(o->comm), weft_nn_describe(o->nn));
    char *all = calloc((size_t)weft_comm_ranks(o->comm), sizeof mine);
    if (all == NULL) return weft_fail_memory(err, "a profile");
    enum weft_status status = weft_comm_exchange(o->comm, mine, sizeof mine, all, err);
    m->profile.machine = weft_pool_string(&m->profile.pool, all);
    free(all);
    if (status != WEFT_OK) return status;
    return m->profile.machine == NULL ? weft_fail_memory(err, "a profile") : WEFT_OK;
}

static enum weft_status name_origin(struct weft_measuring *m, struct weft_error *err)
{
    const struct weft_measure_options *options = &m->options;
    struct weft_profile_origin *origin = &m->profile.origin;
    const char *gpu = weft_device_hardware(options->device);
    char cpu[WEFT_MACHINE_NAME_BYTES];
    *origin = weft_profile_origin_unsaid;
    origin->threads = options->threads;
    weft_measure_name_cpu(cpu);
    origin->machine = weft_pool_string(&m->profile.pool, gpu != NULL ? gpu : cpu);
    origin->precision = weft_dtype_name((enum weft_dtype)options->config->train.precision.compute);
    struct weft_text link;
    weft_text_init(&link);
    weft_profile_link(options->config, &link);
    origin->link =
        weft_text_ok(&link) ? weft_pool_string(&m->profile.pool, weft_text_chars(&link)) : NULL;
    weft_text_finish(&link);
    return origin->machine != NULL && origin->link != NULL ? WEFT_OK
                                                           : weft_fail_memory(err, "a profile");
}

static enum weft_status check_options(const struct weft_measure_options *options,
                                      struct weft_error *err)
{
    const struct weft_config *config = options->config;
    WEFT_TRY(
        weft_model_trains(config->model, config->train.seq_len, config->cluster.device.type, err));
    if (weft_device_clock(options->device) != WEFT_CLOCK_WALL) {
        return weft_fail(err, WEFT_E_USAGE,
                         "a virtual clock measures nothing: open the device with the wall clock");
    }
    if (config->cluster.ranks != weft_comm_ranks(options->comm)) {
        return weft_fail(err, WEFT_E_DATA,
                         "the config is for %lld ranks and %d were started: start as many, or set "
                         "cluster.ranks",
                         (long long)config->cluster.ranks, weft_comm_ranks(options->comm));
    }
    return WEFT_OK;
}

static enum weft_status measure_curves(struct weft_measuring *m, struct weft_error *err)
{
    WEFT_TRY(weft_measure_run_benches(&m->options, &m->benches, err));
    WEFT_TRY(take_benches(m, err));
    WEFT_TRY(weft_measure_network(&m->options, &m->profile.pool, &m->profile.network, err));
    return weft_measure_tiers(&m->options, &m->profile, err);
}

/* Takes all times that no micro-batch changes. The known profile outlives this one. */
static void take_known(struct weft_measuring *m)
{
    const struct weft_profile *known = m->options.known;
    memcpy(m->profile.collectives, known->collectives, sizeof known->collectives);
    m->profile.update = known->update;
    m->profile.norm = known->norm;
    m->profile.network = known->network;
    m->profile.tiers = known->tiers;
}

static enum weft_status begin_profile(struct weft_measuring *m, struct weft_error *err)
{
    m->profile.source =
        weft_config_emulates(m->options.config) ? "measured, emulated link" : "measured";
    m->profile.ranks = weft_comm_ranks(m->options.comm);
    if (m->options.config->cluster.device.type != WEFT_DEVICE_CPU)
        m->profile.device =
            weft_device_name((enum weft_device_type)m->options.config->cluster.device.type);
    WEFT_TRY(name_origin(m, err));
    m->profile.kernels = weft_nn_gemm_name(m->options.nn);
    m->profile.products = weft_nn_choices(m->options.nn);
    m->profile.updates = weft_config_updates(m->options.config);
    WEFT_TRY(describe_machine(m, err));
    WEFT_TRY(list_layers(m, err));
    if (m->options.known != NULL)
        take_known(m);
    else
        WEFT_TRY(measure_curves(m, err));
    WEFT_TRY(read_back(m, &m->planned, err));
    /* Rehearsals keep all state on the device, and so do their predictions. */
    m->planned->tiers = (struct weft_profile_tiers){0};
    return weft_measure_rehearsals_create(&m->options, m->planned, &m->rehearsals, err);
}

enum weft_status weft_measuring_create(const struct weft_measure_options *options,
                                       struct weft_measuring **out, struct weft_error *err)
{
    WEFT_TRY(check_options(options, err));
    WEFT_TRY(weft_precision_check_update(options->config, err));
    struct weft_measuring *m = calloc(1, sizeof *m);
    if (m == NULL) return weft_fail_memory(err, "a profile");
    m->options = *options;
    m->config = *options->config;
    m->config.cluster.channels = 1;
    m->config.train.every = 0;                            /* collectives of all ranks */
    m->config.plan.micro_step_order = WEFT_ORDER_BY_STEP; /* the other order follows */
    m->options.config = &m->config;
    enum weft_status status = begin_profile(m, err);
    if (status != WEFT_OK) {
        weft_measuring_destroy(m);
        return status;
    }
    *out = m;
    return WEFT_OK;
}

enum weft_status weft_measuring_turn(struct weft_measuring *m, struct weft_error *err)
{
    return weft_measure_rehearsals_turn(m->rehearsals, err);
}

enum weft_status weft_measuring_finish(struct weft_measuring *m, struct weft_profile **out,
                                       struct weft_error *err)
{
    WEFT_TRY(take_rehearsal(m, err));
    return read_back(m, out, err);
}

void weft_measuring_destroy(struct weft_measuring *m)
{
    if (m == NULL) return;
    weft_measure_rehearsals_destroy(m->rehearsals);
    weft_profile_destroy(m->planned);
    weft_pool_finish(&m->profile.pool);
    free(m);
}

static enum weft_status run_turns(struct weft_measuring *m, struct weft_error *err)
{
    int32_t done = 0, rounds;
    WEFT_TRY(weft_measure_rehearsals_rounds(m->rehearsals, &rounds, err));
    while (done < rounds) {
        for (; done < rounds; done++) {
            weft_watch_count(m->options.watch, "step", done, rounds);
            WEFT_TRY(weft_measuring_turn(m, err));
        }
        WEFT_TRY(weft_measure_rehearsals_rounds(m->rehearsals, &rounds, err));
    }
    return WEFT_OK;
}

enum weft_status weft_measure(const struct weft_measure_options *options, struct weft_profile **out,
                              struct weft_error *err)
{
    struct weft_measuring *m = NULL;
    weft_watch_begin(options->watch, "profile");
    enum weft_status status = weft_measuring_create(options, &m, err);
    weft_watch_begin(options->watch, "profile"); /* the time of steps predicts the rest */
    if (status == WEFT_OK) status = run_turns(m, err);
    if (status == WEFT_OK) status = weft_measuring_finish(m, out, err);
    weft_measuring_destroy(m);
    weft_watch_end(options->watch);
    return status;
}
