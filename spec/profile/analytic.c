/* SPDX-License-Identifier: Apache-2.0 */
/* Computes times from the config's figures, part by part, so that a measured profile may supply
 * some parts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "base/units.h"
#include "spec/config_batch.h"
#include "spec/layer.h"
#include "spec/profile/flops.h"
#include "spec/profile/profile.h"

enum {
    FIRST_POINT = 10, /* 2^10 = 1 KiB (or elements) */
    LAST_POINT = 33,  /* 2^33 = 8 GiB */
    POINTS = LAST_POINT - FIRST_POINT + 1,
    /* An update in f32 reads parameter, gradient and moments and writes all but the gradient. */
    UPDATE_BYTES = 12,
    MOMENT_BYTES = 8,
    /* lamb reads parameter and moments twice more: for its norms, and to apply the scaled step. */
    LAMB_BYTES = 24,
    NORM_BYTES = 4 /* reads the gradient once, in f32 */
};

/* A figure that the config lacks, and the first part of the profile that needs it. */
struct missing {
    const char *figure;
    char part[512];
};

/* The sources of figures, and the missing ones; one error lists them all. */
struct figures {
    const struct weft_config *config;
    const char *measured; /* source of the measured profile, or NULL */
    int64_t other_ranks;  /* ranks of the measured profile if the config has others; otherwise 0 */
    struct missing missing[16];
    int32_t n_missing;
};

static void note_missing(struct figures *figures, const char *figure, const char *part)
{
    for (int32_t i = 0; i < figures->n_missing; i++)
        if (strcmp(figures->missing[i].figure, figure) == 0) return;
    struct missing *missing = &figures->missing[figures->n_missing++];
    missing->figure = figure;
    snprintf(missing->part, sizeof missing->part, "%s", part);
}

/* Fails with a line for each missing figure, and a cure. */
static enum weft_status refuse_missing(const struct figures *figures, struct weft_error *err)
{
    const char *config = figures->config->source;
    struct weft_text text;
    weft_text_init(&text);
    if (figures->other_ranks > 0)
        weft_text_addf(&text, "%s: made for %lld ranks, and the cluster of %s has %lld\n",
                       figures->measured, (long long)figures->other_ranks, config,
                       (long long)weft_config_together(figures->config));
    for (int32_t i = 0; i < figures->n_missing; i++) {
        const struct missing *missing = &figures->missing[i];
        if (figures->measured != NULL)
            weft_text_addf(&text, "%s: no %s, and %s does not give cluster.%s to compute it from\n",
                           figures->measured, missing->part, config, missing->figure);
        else
            weft_text_addf(&text, "%s: $.cluster.%s is missing: without it there is no %s\n",
                           config, missing->figure, missing->part);
    }
    weft_text_addf(&text,
                   "give %s, or measure: `weft profile %s -o profile.json`, then --profile "
                   "profile.json (or name it in cluster.profile)",
                   figures->n_missing == 1 ? "it" : "them", config);
    enum weft_status status = weft_text_ok(&text)
                                  ? weft_fail(err, WEFT_E_DATA, "%s", weft_text_chars(&text))
                                  : weft_fail_memory(err, "a profile");
    weft_text_finish(&text);
    return status;
}

/* Rounds up, to at most the largest integer of a profile's file. */
static int64_t to_ns(double seconds)
{
    const double most = 9007199254740991.0; /* 2^53 - 1 */
    double ns = ceil(seconds * 1e9);
    return ns < most ? (int64_t)ns : (int64_t)most;
}

/* Times of a layer: flops / (peak x efficiency), and at least moved bytes / memory bandwidth.
 * Restoring has times of its own, which backward adds. */
static enum weft_status layer_times(struct figures *figures, const struct weft_layer *layer,
                                    const struct weft_batch *batch, struct weft_layer_times *out,
                                    struct weft_error *err)
{
    const struct weft_device_spec *device = &figures->config->cluster.device;
    struct weft_layer_work work;
    const char *figure;
    char part[512];
    WEFT_TRY(weft_layer_work(layer, batch, &work, err));
    snprintf(part, sizeof part, "time of layer \"%s\" (%s)", layer->name, out->key);
    double peak = weft_flops_peak(figures->config, &figure);
    if (peak <= 0) note_missing(figures, figure, part);
    if (device->memory_bytes_per_s <= 0) note_missing(figures, "device.memory_bandwidth", part);
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++)
        if (figures->config->recomputes != NULL && work.splits[level].possible)
            out->recomputes |= 1 << level;
    if (peak <= 0 || device->memory_bytes_per_s <= 0) return WEFT_OK;
    double rate = peak * device->efficiency, bandwidth = device->memory_bytes_per_s;
    out->forward_ns = to_ns(fmax(work.forward_flops / rate, work.forward_moved_bytes / bandwidth));
    out->backward_ns =
        to_ns(fmax(work.backward_flops / rate, work.backward_moved_bytes / bandwidth));
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        if ((out->recomputes & 1 << level) == 0) continue;
        const int64_t restore_ns = to_ns(
            fmax(work.splits[level].flops / rate, work.restore_moved_bytes[level] / bandwidth));
        out->levels[level].forward_ns = out->forward_ns;
        if (restore_ns > WEFT_JSON_MOST_INTEGER - out->backward_ns)
            out->levels[level].backward_ns = WEFT_JSON_MOST_INTEGER;
        else
            out->levels[level].backward_ns = out->backward_ns + restore_ns;
    }
    if (device->type != WEFT_DEVICE_CUDA) return WEFT_OK;
    out->forward_scratch_bytes = work.forward_scratch_bytes;
    out->backward_scratch_bytes = work.backward_scratch_bytes;
    return WEFT_OK;
}

/* Fills one entry for each distinct layer and micro-batch, measured if possible. */
static enum weft_status fill_layers(struct figures *figures, const struct weft_profile *measured,
                                    struct weft_profile *profile, bool *analytic,
                                    struct weft_error *err)
{
    const struct weft_model *model = figures->config->model;
    struct weft_batch batch = weft_config_batch(figures->config);
    int64_t splits[WEFT_MOST_SPLITS];
    const int32_t n = model->n_layers * weft_config_splits(figures->config, splits);
    profile->layers = weft_pool_array(&profile->pool, (size_t)n, sizeof *profile->layers);
    if (profile->layers == NULL) return weft_fail_memory(err, "a profile");
    for (int32_t i = 0; i < n; i++) {
        const struct weft_layer *layer = &model->layers[i % model->n_layers];
        batch.samples = splits[i / model->n_layers];
        struct weft_layer_times times = {.key = weft_layer_key(&profile->pool, layer, &batch)};
        if (times.key == NULL) return weft_fail_memory(err, "a profile");
        const struct weft_layer_times *found =
            measured == NULL ? NULL : weft_profile_times(measured, layer->name, times.key);
        const bool is_named = found != NULL && found->is_name;
        if (!is_named && weft_profile_layer(profile, times.key) != NULL) continue;
        if (is_named && n > model->n_layers)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: has times of layer %s by its name, which are of one micro-batch, "
                             "and %s leaves several open: give a number as "
                             "train.micro_batch",
                             figures->measured, layer->name, figures->config->source);
        if (found != NULL) {
            const char *key = is_named ? weft_pool_string(&profile->pool, layer->name) : times.key;
            if (key == NULL) return weft_fail_memory(err, "a profile");
            times = *found;
            times.key = key;
        } else {
            WEFT_TRY(layer_times(figures, layer, &batch, &times, err));
            *analytic = true;
        }
        profile->layers[profile->n_layers++] = times;
    }
    return WEFT_OK;
}

/* Makes a curve through the powers of two, with seconds(x, context) at each. */
static enum weft_status make_curve(struct weft_pool *pool,
                                   double (*seconds)(double x, const void *context),
                                   const void *context, struct weft_curve *out,
                                   struct weft_error *err)
{
    int64_t *x = weft_pool_array(pool, POINTS, sizeof *x);
    int64_t *ns = weft_pool_array(pool, POINTS, sizeof *ns);
    if (x == NULL || ns == NULL) return weft_fail_memory(err, "a profile");
    for (int i = 0; i < POINTS; i++) {
        x[i] = INT64_C(1) << (FIRST_POINT + i);
        ns[i] = to_ns(seconds((double)x[i], context));
    }
    *out = (struct weft_curve){POINTS, x, ns};
    return WEFT_OK;
}

struct network {
    struct weft_link links[2]; /* links of the collective; the slower one gives its time */
    int n;
    double ranks;
    int gathers, reduces; /* passes; AllReduce has both */
    /* With two levels: bytes of a partial sum, which crosses nodes in fp32, by those of an operand.
     * Otherwise 1. */
    double widens;
};

/* A pass over the slowest link; `widens` is of the first link. */
static double pass_s(const struct network *network, double bytes, double widens)
{
    double longest = 0;
    for (int i = 0; i < network->n; i++) {
        const struct weft_link *link = &network->links[i];
        double share = bytes * (i == 0 ? widens : 1) * (network->ranks - 1) / network->ranks;
        longest = fmax(longest, (double)link->alpha_ns * 1e-9 + share / link->bytes_per_s);
    }
    return longest;
}

static double collective_s(double bytes, const void *context)
{
    const struct network *network = context;
    return network->gathers * pass_s(network, bytes, 1) +
           network->reduces * pass_s(network, bytes, network->widens);
}

struct weft_link weft_cluster_inter(const struct weft_cluster *cluster)
{
    const int64_t nodes = (cluster->ranks + cluster->ranks_per_node - 1) / cluster->ranks_per_node;
    struct weft_link link = cluster->link.inter;
    if (nodes > 2) link.alpha_ns += (nodes - 2) * cluster->link.alpha_per_node_ns;
    return link;
}

/* True if the config gives all links of a collective. */
static bool knows_links(const struct weft_config *config)
{
    const struct weft_cluster *cluster = &config->cluster;
    const int64_t ranks = weft_config_together(config);
    const bool nodes = ranks > cluster->ranks_per_node;
    const bool within = cluster->ranks_per_node > 1;
    return ranks == 1 || ((!nodes || cluster->link.inter.bytes_per_s > 0) &&
                          (!within || cluster->link.intra.bytes_per_s > 0));
}

/* Finds the links of a collective; false if one is not known. */
static bool find_network(struct figures *figures, struct network *out)
{
    const struct weft_cluster *cluster = &figures->config->cluster;
    const int64_t ranks = weft_config_together(figures->config);
    bool nodes = ranks > cluster->ranks_per_node;
    bool within = cluster->ranks_per_node > 1;
    bool knows_inter = cluster->link.inter.bytes_per_s > 0;
    bool knows_intra = cluster->link.intra.bytes_per_s > 0;
    *out = (struct network){.ranks = (double)ranks, .widens = 1};
    if (ranks == 1) return true; /* nothing is sent */
    if (nodes && !knows_inter)
        note_missing(figures, "link.inter.bandwidth", "time of collectives between nodes");
    if (within && !knows_intra)
        note_missing(figures, "link.intra.bandwidth", "time of collectives in a node");
    if (nodes) out->links[out->n++] = weft_cluster_inter(cluster);
    if (within) out->links[out->n++] = cluster->link.intra;
    if (nodes && within)
        out->widens =
            (double)weft_dtype_bytes(WEFT_F32) /
            (double)weft_dtype_bytes((enum weft_dtype)figures->config->train.precision.reduce);
    return knows_links(figures->config);
}

/* Times of levels of a profile of all nodes, if nodes step on their own; otherwise NULL. */
static const struct weft_profile_network *measured_levels(const struct weft_config *config,
                                                          const struct weft_profile *measured)
{
    if (measured == NULL || config->train.every == 0 || measured->ranks != config->cluster.ranks ||
        measured->network.ranks_per_node != config->cluster.ranks_per_node)
        return NULL;
    return weft_profile_has_levels(&measured->network) ? &measured->network : NULL;
}

/* Whether a profile has collectives of the ranks that step together. */
static bool has_network(const struct weft_config *config, const struct weft_profile *measured)
{
    return measured->ranks == weft_config_together(config) ||
           measured_levels(config, measured) != NULL;
}

/* Measured collectives apply to equal ranks. For memory alone, those of other ranks serve if no
 * link is known, because block sizes follow from them. */
static const struct weft_profile *measured_network(const struct weft_config *config,
                                                   const struct weft_profile *measured,
                                                   bool for_memory)
{
    if (measured == NULL || has_network(config, measured)) return measured;
    return for_memory && !knows_links(config) ? measured : NULL;
}

/* Collectives of a node are those of its level. An AllReduce is a reduction and a gather. */
static enum weft_status fill_levels(const struct weft_profile_network *levels,
                                    struct weft_profile *profile, struct weft_error *err)
{
    const struct weft_curve *gather = &levels->levels[WEFT_GROUP_NODE][WEFT_ALL_GATHER];
    const struct weft_curve *reduce = &levels->levels[WEFT_GROUP_NODE][WEFT_REDUCE_SCATTER];
    int64_t *ns = weft_pool_array(&profile->pool, (size_t)gather->n, sizeof *ns);
    if (ns == NULL) return weft_fail_memory(err, "a profile");
    for (int32_t i = 0; i < gather->n; i++)
        ns[i] = gather->ns[i] + weft_curve_at(reduce, gather->x[i]);
    profile->network = *levels;
    profile->collectives[WEFT_ALL_GATHER] = *gather;
    profile->collectives[WEFT_REDUCE_SCATTER] = *reduce;
    profile->collectives[WEFT_ALL_REDUCE] = (struct weft_curve){gather->n, gather->x, ns};
    profile->agree_ns = weft_curve_at(&profile->collectives[WEFT_ALL_REDUCE], WEFT_AGREE_BYTES);
    return WEFT_OK;
}

static enum weft_status fill_collectives(struct figures *figures,
                                         const struct weft_profile *measured,
                                         struct weft_profile *profile, bool *analytic,
                                         struct weft_error *err)
{
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        struct network network;
        if (measured != NULL && measured->collectives[kind].n > 0) {
            profile->collectives[kind] = measured->collectives[kind];
            continue;
        }
        if (!find_network(figures, &network)) continue;
        network.gathers = kind != WEFT_REDUCE_SCATTER;
        network.reduces = kind != WEFT_ALL_GATHER;
        WEFT_TRY(
            make_curve(&profile->pool, collective_s, &network, &profile->collectives[kind], err));
        *analytic = true;
    }
    if (measured != NULL && measured->ranks == weft_config_together(figures->config))
        profile->network = measured->network;
    if (measured != NULL && measured->agree_ns >= 0) {
        profile->agree_ns = measured->agree_ns;
        return WEFT_OK;
    }
    struct network network;
    if (!find_network(figures, &network)) return WEFT_OK;
    network.gathers = 2;
    const int64_t record_bytes =
        weft_record_bytes(figures->config->model->n_tensors, weft_config_means(figures->config));
    profile->agree_ns = to_ns(collective_s((double)record_bytes, &network));
    *analytic = true;
    return WEFT_OK;
}

static double moved_s(double elements, const void *context)
{
    return elements * *(const double *)context;
}

/* Fills the curve of a pass over memory that moves `bytes` an element. */
static enum weft_status fill_pass(struct figures *figures, const struct weft_curve *measured,
                                  int bytes, const char *part, struct weft_pool *pool,
                                  struct weft_curve *out, bool *analytic, struct weft_error *err)
{
    double bandwidth = figures->config->cluster.device.memory_bytes_per_s;
    if (measured != NULL && measured->n > 0) {
        *out = *measured;
        return WEFT_OK;
    }
    if (bandwidth <= 0) {
        note_missing(figures, "device.memory_bandwidth", part);
        return WEFT_OK;
    }
    double seconds_an_element = bytes / bandwidth;
    *analytic = true;
    return make_curve(pool, moved_s, &seconds_an_element, out, err);
}

/* The computed parts, for `source` and `machine`. */
struct origins {
    bool layers, collectives, update, norm, base;
};

static enum weft_status describe_origins(struct figures *figures,
                                         const struct weft_profile *measured,
                                         const struct origins *origins,
                                         struct weft_profile *profile, struct weft_error *err)
{
    const struct weft_cluster *cluster = &figures->config->cluster;
    struct weft_text parts;
    weft_text_init(&parts);
    const struct {
        bool is;
        const char *name;
    } all[] = {{origins->layers, "layers"},
               {origins->collectives, "collectives"},
               {origins->update, "update"},
               {origins->norm, "norm"},
               {origins->base, "base"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].is) weft_text_addf(&parts, "%s%s", parts.length > 0 ? ", " : "", all[i].name);
    }
    if (measured == NULL) {
        profile->source =
            weft_pool_format(&profile->pool, "analytic%s",
                             weft_config_emulates(figures->config) ? ", emulated link" : "");
        profile->machine =
            weft_pool_format(&profile->pool, "%lld ranks, %lld a node, from the config's figures",
                             (long long)cluster->ranks, (long long)cluster->ranks_per_node);
    } else {
        profile->source =
            weft_pool_format(&profile->pool, parts.length > 0 ? "%s, with analytic %s" : "%s",
                             measured->source, weft_text_chars(&parts));
        profile->machine = weft_pool_string(&profile->pool, measured->machine);
    }
    bool ok = weft_text_ok(&parts);
    weft_text_finish(&parts);
    if (!ok || profile->source == NULL || profile->machine == NULL) {
        return weft_fail_memory(err, "a profile");
    }
    return WEFT_OK;
}

/* Measured times of updates; NULL if they are another optimizer's. lamb passes over memory three
 * times, adamw once. */
static const struct weft_curve *measured_updates(const struct weft_config *config,
                                                 const struct weft_profile *measured)
{
    if (measured == NULL) return NULL;
    bool other =
        measured->updates != NULL && strcmp(measured->updates, weft_config_updates(config)) != 0;
    return other ? NULL : &measured->update;
}

static enum weft_status fill_profile(struct figures *figures, const struct weft_profile *measured,
                                     bool for_memory, struct weft_profile *profile,
                                     struct weft_error *err)
{
    const struct weft_cluster *cluster = &figures->config->cluster;
    struct origins origins = {0};
    profile->ranks = weft_config_together(figures->config);
    profile->origin = weft_profile_origin_unsaid;
    if (cluster->device.type != WEFT_DEVICE_CPU)
        profile->device = weft_device_name((enum weft_device_type)cluster->device.type);
    WEFT_TRY(fill_layers(figures, measured, profile, &origins.layers, err));
    const struct weft_profile_network *levels = measured_levels(figures->config, measured);
    WEFT_TRY(levels != NULL ? fill_levels(levels, profile, err)
                            : fill_collectives(
                                  figures, measured_network(figures->config, measured, for_memory),
                                  profile, &origins.collectives, err));
    int update_bytes = UPDATE_BYTES + MOMENT_BYTES * weft_config_moments(figures->config);
    if (weft_optimizer_row(figures->config->train.optimizer.type)->agrees)
        update_bytes += LAMB_BYTES;
    WEFT_TRY(fill_pass(figures, measured_updates(figures->config, measured), update_bytes,
                       "time of updates by this train.optimizer", &profile->pool, &profile->update,
                       &origins.update, err));
    if (measured != NULL && !origins.layers) {
        profile->origin = measured->origin;
        profile->kernels = measured->kernels;
        profile->products = measured->products;
    }
    if (measured != NULL) {
        profile->origin.ranks =
            figures->other_ranks > 0 ? figures->other_ranks : measured->origin.ranks;
        profile->origin.precision = measured->origin.precision;
        profile->origin.link = origins.collectives ? NULL : measured->origin.link;
    }
    if (measured != NULL && !origins.update) profile->updates = measured->updates;
    WEFT_TRY(fill_pass(figures, measured == NULL ? NULL : &measured->norm, NORM_BYTES,
                       "time of the norm", &profile->pool, &profile->norm, &origins.norm, err));
    profile->rates = (struct weft_rates){
        .compute = (int32_t)ceil(WEFT_RATE_ONE * (1 - cluster->contention.compute)),
        .own = (int32_t)ceil(WEFT_RATE_ONE * (1 - cluster->contention.channel)),
    };
    if (measured != NULL && measured->rates.compute > 0) profile->rates = measured->rates;
    struct weft_profile_lack lacks[WEFT_PROFILE_LACKS];
    int32_t n_lacks;
    WEFT_TRY(weft_profile_take_tiers(figures->config, measured != NULL ? &measured->tiers : NULL,
                                     &profile->pool, &profile->tiers, lacks, &n_lacks, err));
    for (int32_t i = 0; i < n_lacks; i++)
        note_missing(figures, lacks[i].figure, lacks[i].part);
    origins.base = measured == NULL || measured->base_bytes < 0;
    profile->base_bytes = origins.base ? cluster->base_bytes : measured->base_bytes;
    if (!origins.base) {
        profile->n_bases = measured->n_bases;
        profile->bases = measured->bases;
    }
    profile->staging_bytes = measured == NULL ? 0 : measured->staging_bytes;
    return describe_origins(figures, measured, &origins, profile, err);
}

/* Combines both sources. Writing and reading the profile back gives it its hash, and memory of its
 * own. */
static enum weft_status combine_sources(struct figures *figures,
                                        const struct weft_profile *measured,
                                        struct weft_text *missing, struct weft_profile **out,
                                        struct weft_error *err)
{
    struct weft_text text;
    enum weft_status status;
    weft_text_init(&text);
    struct weft_profile *profile = calloc(1, sizeof *profile);
    if (profile == NULL) return weft_fail_memory(err, "a profile");
    if (measured != NULL && !has_network(figures->config, measured))
        figures->other_ranks = measured->ranks;
    WEFT_TRY_GOTO(done, fill_profile(figures, measured, missing != NULL, profile, err));
    if (missing == NULL && figures->n_missing > 0)
        WEFT_TRY_GOTO(done, refuse_missing(figures, err));
    for (int32_t i = 0; i < figures->n_missing; i++)
        weft_text_addf(missing, "%scluster.%s", missing->length > 0 ? ", " : "",
                       figures->missing[i].figure);
    weft_profile_write(profile, &text);
    if (!weft_text_ok(&text)) {
        status = weft_fail_memory(err, "a profile");
        goto done;
    }
    WEFT_TRY_GOTO(done, weft_profile_parse(weft_text_chars(&text), text.length, "resolved profile",
                                           out, err));
done:
    weft_text_finish(&text);
    weft_profile_destroy(profile);
    return status;
}

enum weft_status weft_profile_analytic(const struct weft_config *config, struct weft_profile **out,
                                       struct weft_error *err)
{
    struct figures figures = {.config = config};
    return combine_sources(&figures, NULL, NULL, out, err);
}

/* Without rates in the profile, layers were measured together with communication. */
static enum weft_status check_contention(const struct weft_config *config,
                                         const struct weft_profile *measured, const char *path,
                                         struct weft_error *err)
{
    bool contends =
        config->cluster.contention.compute > 0 || config->cluster.contention.channel > 0;
    if (!contends || measured->n_layers == 0 || measured->rates.compute > 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: has no `contention`, so its layers were timed during communication and "
                     "include its cost; cluster.contention of %s would count it twice: leave "
                     "it out, or measure both with `weft profile --contention`",
                     path, config->source);
}

static enum weft_status check_device(const struct weft_config *config,
                                     const struct weft_profile *measured, struct weft_error *err)
{
    const char *ours = weft_device_name((enum weft_device_type)config->cluster.device.type);
    const char *theirs =
        measured->device != NULL ? measured->device : weft_device_name(WEFT_DEVICE_CPU);
    if (strcmp(ours, theirs) == 0) return WEFT_OK;
    char shown[WEFT_SHOWN_BYTES];
    return weft_fail(err, WEFT_E_DATA,
                     "%s: was measured on device \"%s\", and cluster.device.type of %s is \"%s\": "
                     "run `weft profile` on that",
                     config->cluster.profile, weft_shown(theirs, shown), config->source, ours);
}

static enum weft_status read_measured(const struct weft_config *config, struct weft_profile **out,
                                      struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 28;
    const char *path = config->cluster.profile;
    struct weft_profile *measured = NULL;
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, most_bytes, &bytes, &length, err));
    enum weft_status status = weft_profile_parse(bytes, length, path, &measured, err);
    free(bytes);
    if (status == WEFT_OK) status = check_device(config, measured, err);
    if (status == WEFT_OK) status = check_contention(config, measured, path, err);
    if (status == WEFT_OK)
        *out = measured;
    else
        weft_profile_destroy(measured);
    return status;
}

bool weft_profile_lacks_network(const struct weft_config *config)
{
    struct weft_profile *measured = NULL;
    struct weft_error unread = {0};
    if (config->cluster.profile == NULL || knows_links(config)) return false;
    if (read_measured(config, &measured, &unread) != WEFT_OK) return false;
    const bool lacks = !has_network(config, measured);
    weft_profile_destroy(measured);
    return lacks;
}

static void add_link(const struct weft_link *link, struct weft_text *out)
{
    char alpha[WEFT_UNITS_TEXT_BYTES], rate[WEFT_UNITS_TEXT_BYTES];
    weft_text_addf(out, "%s and %s", weft_units_show_ns(link->alpha_ns, alpha),
                   weft_units_show_rate(link->bytes_per_s, rate));
}

void weft_profile_link(const struct weft_config *config, struct weft_text *out)
{
    const struct weft_cluster *cluster = &config->cluster;
    if (!weft_config_emulates(config)) {
        weft_text_add(out, "the machine's own link");
        return;
    }
    weft_text_add(out, "an emulated link of ");
    add_link(&cluster->link.intra, out);
    if (cluster->ranks <= cluster->ranks_per_node) return;
    const struct weft_link inter = weft_cluster_inter(cluster);
    weft_text_add(out, ", between nodes ");
    add_link(&inter, out);
}

/* False without memory for the keys. */
static bool has_layers(const struct weft_config *config, const struct weft_profile *profile)
{
    const int32_t n_layers = config->model->n_layers;
    struct weft_batch batch = weft_config_batch(config);
    int64_t splits[WEFT_MOST_SPLITS];
    const int32_t n = n_layers * weft_config_splits(config, splits);
    struct weft_pool pool = {0};
    bool has_all = true;
    for (int32_t i = 0; i < n && has_all; i++) {
        batch.samples = splits[i / n_layers];
        const struct weft_layer *layer = &config->model->layers[i % n_layers];
        const char *key = weft_layer_key(&pool, layer, &batch);
        has_all = key != NULL && weft_profile_times(profile, layer->name, key) != NULL;
    }
    weft_pool_finish(&pool);
    return has_all;
}

/* Whether the profile has times of the config's layers and optimizer. */
static bool has_compute(const struct weft_config *config, const struct weft_profile *profile)
{
    const struct weft_curve *updates = measured_updates(config, profile);
    return updates != NULL && updates->n > 0 && has_layers(config, profile);
}

enum weft_status weft_profile_with_network(const struct weft_config *config,
                                           const struct weft_profile *network,
                                           struct weft_profile **out, struct weft_error *err)
{
    struct weft_profile *measured = NULL;
    WEFT_TRY(read_measured(config, &measured, err));
    struct weft_profile whole = *measured;
    if (!has_compute(config, measured) && has_compute(config, network)) {
        whole = *network;
    } else {
        memcpy(whole.collectives, network->collectives, sizeof whole.collectives);
        whole.ranks = network->ranks;
        whole.network = network->network;
        whole.agree_ns = network->agree_ns;
        whole.staging_bytes = network->staging_bytes;
        whole.origin.ranks = 0;
        whole.origin.link = network->origin.link;
        if (network->origin.busy_millicores > whole.origin.busy_millicores)
            whole.origin.busy_millicores = network->origin.busy_millicores;
    }
    enum weft_status status = weft_profile_with_base(&whole, network->base_bytes, out, err);
    weft_profile_destroy(measured);
    return status;
}

/* Collectives of other ranks may serve for memory, but are not times. */
static void note_ranks(const struct weft_config *config, const struct weft_profile *measured,
                       struct weft_text *missing)
{
    if (has_network(config, measured) || knows_links(config)) return;
    weft_text_addf(missing, "a profile of %lld ranks (%s has %lld)",
                   (long long)weft_config_together(config), config->cluster.profile,
                   (long long)measured->ranks);
}

static enum weft_status resolve_profile(const struct weft_config *config, struct weft_text *missing,
                                        struct weft_profile **out, struct weft_error *err)
{
    struct figures figures = {.config = config, .measured = config->cluster.profile};
    struct weft_profile *measured = NULL;
    if (config->cluster.profile != NULL) WEFT_TRY(read_measured(config, &measured, err));
    if (measured != NULL && missing != NULL) note_ranks(config, measured, missing);
    enum weft_status status = combine_sources(&figures, measured, missing, out, err);
    weft_profile_destroy(measured);
    return status;
}

enum weft_status weft_profile_resolve(const struct weft_config *config, struct weft_profile **out,
                                      struct weft_error *err)
{
    return resolve_profile(config, NULL, out, err);
}

enum weft_status weft_profile_resolve_measured(const struct weft_config *config,
                                               const struct weft_profile *measured,
                                               struct weft_profile **out, struct weft_error *err)
{
    struct figures figures = {.config = config, .measured = "the measured profile"};
    return combine_sources(&figures, measured, NULL, out, err);
}

enum weft_status weft_profile_resolve_for_memory(const struct weft_config *config,
                                                 struct weft_profile **out,
                                                 struct weft_text *missing, struct weft_error *err)
{
    return resolve_profile(config, missing, out, err);
}
