/* SPDX-License-Identifier: Apache-2.0 */
/* Options of weighing, from a config and its profile. */
#include "memory_model/vault.h"
#include "problem/stages.h"
#include "spec/config_batch.h"
#include "spec/target.h"

/* A bit for the device, and for each tier that the profile has times of. */
static int known_locations(const struct weft_profile *profile)
{
    return 1 << WEFT_LOCATION_DEVICE | (profile->tiers.host.given ? 1 << WEFT_LOCATION_HOST : 0) |
           (profile->tiers.disk.given ? 1 << WEFT_LOCATION_DISK : 0);
}

/* Ways to keep state in tiers with known times. Updates on the host need a known speed. */
static int known_keeps(const struct weft_config *config, const struct weft_profile *profile)
{
    const bool updates = profile->tiers.host.given && profile->tiers.host.update_bytes_per_s > 0;
    return weft_config_state_keeps(config) &
           (known_locations(profile) | (updates ? 1 << WEFT_KEEP_HOST_UPDATE : 0));
}

/* The ring of the disk's profile, or one that saturates most disks. */
static struct weft_ring ring_of(const struct weft_profile_disk *disk)
{
    enum { BLOCK_BYTES = 1 << 20, THREADS = 4, SEATS = 2 * THREADS };
    struct weft_ring ring = {BLOCK_BYTES, THREADS, SEATS, disk->duplex == WEFT_DUPLEX_HALF ? 1 : 2};
    if (disk->block_bytes > 0) ring.block_bytes = disk->block_bytes;
    if (disk->threads > 0) ring.threads = (int32_t)disk->threads;
    if (disk->seats > 0) ring.seats = (int32_t)disk->seats;
    return ring;
}

/* The least block that uses both of the host's links well, as on the network; 0: copies are whole.
 */
static int64_t copy_block_bytes(const struct weft_config *config,
                                const struct weft_profile *profile, bool whole)
{
    enum { LEAST_BYTES = 64 << 10 };
    if (whole) return 0;
    if (config->plan.offload.block_bytes > 0) return config->plan.offload.block_bytes;
    const double efficiency = config->plan.block_efficiency;
    const int64_t down = weft_curve_efficient(&profile->tiers.host.down, efficiency);
    const int64_t up = weft_curve_efficient(&profile->tiers.host.up, efficiency);
    const int64_t most = down > up ? down : up;
    if (!profile->tiers.host.given || most == 0) return 0;
    return most < LEAST_BYTES ? LEAST_BYTES : most;
}

static bool allows_policy(const struct weft_config *config, uint32_t policies)
{
    uint32_t allowed = 0;
    return weft_variants_policies(config, &allowed, NULL) == WEFT_OK && (allowed & policies) != 0;
}

static bool allows_hybrid(const struct weft_config *config)
{
    const struct weft_cluster *cluster = &config->cluster;
    return cluster->ranks_per_node > 1 && cluster->ranks > cluster->ranks_per_node &&
           allows_policy(config, weft_policies_sharing(WEFT_GROUP_NODE));
}

/* Communicators of a run: one for each lane of the network. hsdp and nodes add one for each of
 * these, within nodes, and two for the lane across nodes. Averages add those of a node and across
 * nodes. */
static int64_t count_communicators(const struct weft_config *config)
{
    const int64_t lanes = config->cluster.channels;
    if (config->train.every > 0)
        return lanes + (config->train.across_rule == WEFT_AVERAGE_GOSSIP ? 3 : 2);
    return allows_hybrid(config) ? 2 * lanes + 2 : lanes;
}

/* PyTorch's AdamW takes the root of the second moment: of all parameters in one call, or of one
 * tensor after the other, with the quotient next to it. Other updates need no temporary. */
static int64_t update_temporary(const struct weft_config *config, int loop, size_t bytes)
{
    const bool roots = weft_optimizer_row(config->train.optimizer.type)->has_roots;
    return roots && config->train.optimizer.loop == loop ? (int64_t)bytes : 0;
}

struct weft_weigh_options weft_stages_weigh_options(const struct weft_config *config,
                                                    const struct weft_profile *profile,
                                                    const struct weft_variant *variant)
{
    const struct weft_profile_disk *disk = &profile->tiers.disk;
    const int keeps = variant->rule.offloaded ? known_keeps(config, profile) : 0;
    return (struct weft_weigh_options){
        .batch = variant->batch,
        .reduce = (enum weft_dtype)config->train.precision.reduce,
        .accumulate = (enum weft_dtype)config->train.precision.accumulate,
        .n_moments = weft_config_moments(config),
        .means = weft_config_means(config),
        .outer = weft_config_outer(config),
        .base_bytes = weft_profile_base_of(profile, variant->batch.samples),
        .staging_bytes = profile->staging_bytes * count_communicators(config),
        .kept_bytes = weft_config_kept_bytes(config),
        .profile = profile,
        .state_keeps = keeps,
        .ring = (keeps & 1 << WEFT_KEEP_DISK) != 0 ? ring_of(disk) : (struct weft_ring){0},
        .copy_block_bytes = copy_block_bytes(config, profile, variant->rule.whole_copies),
        .saved_locations = profile->tiers.host.given && weft_config_moves_activations(config)
                               ? weft_config_activation_locations(config)
                               : 0,
        .input_locations = profile->tiers.host.given && weft_config_moves_inputs(config)
                               ? weft_config_input_locations(config)
                               : 0,
        .parameter_locations = profile->tiers.host.given && weft_config_moves_parameters(config)
                                   ? weft_config_parameter_locations(config)
                                   : 0,
        .recomputes = config->recomputes,
        .target = weft_config_target(config),
        .hybrid = allows_hybrid(config),
        .central = allows_policy(config, 1u << WEFT_POLICY_CENTRAL),
        .foreach_bytes = update_temporary(config, WEFT_LOOP_FOREACH, sizeof(float)),
        .loop_bytes = update_temporary(config, WEFT_LOOP_FOR, 2 * sizeof(float)),
        .reduce_copies = config->cluster.reduce_copies,
        .pools = config->cluster.pools,
        .ahead = (int32_t)config->plan.ahead,
        .prefetches = config->plan.prefetch,
        .late = config->late,
    };
}
