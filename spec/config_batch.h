/* SPDX-License-Identifier: Apache-2.0 */
/* The split of a step's batch: ranks x micro-batch x micro-steps. A config names it, or leaves it
 * to the planner with train.micro_batch "auto". */
#ifndef WEFT_SPEC_CONFIG_BATCH_H
#define WEFT_SPEC_CONFIG_BATCH_H

#include "spec/config.h"

/* Ranks that step together, and share the parameters: with train.across.every those of a node. */
static inline int64_t weft_config_together(const struct weft_config *config)
{
    return config->train.every > 0 ? config->cluster.ranks_per_node : config->cluster.ranks;
}

/* Nodes with parameters of their own: with train.across.every all nodes, otherwise 1. */
static inline int32_t weft_config_nodes(const struct weft_config *config)
{
    return (int32_t)(config->cluster.ranks / weft_config_together(config));
}

/* The nodes of an average: all, or a node and one neighbour at a time. */
enum weft_average_rule { WEFT_AVERAGE_ALL, WEFT_AVERAGE_GOSSIP };

/* Step, modulo train.across.every, after which nodes average the tensors of a layer. */
static inline int64_t weft_config_average_phase(const struct weft_config *config, int32_t layer)
{
    const struct weft_train *train = &config->train;
    return layer % train->fragments * train->every / train->fragments;
}

/* Whether nodes average a part of the model after a step. */
static inline bool weft_config_averages_after(const struct weft_config *config, int64_t step)
{
    const struct weft_train *train = &config->train;
    const int64_t at = train->every > 0 ? step % train->every : 1;
    if (train->every == 0) return false;
    /* The first part f with f * every / fragments at or above `at`. */
    const int64_t part = (at * train->fragments + train->every - 1) / train->every;
    return part < train->fragments && part < config->model->n_layers &&
           part * train->every / train->fragments == at;
}

/* plan.micro_step_order without a number. BY_LAYER: groups of one layer. */
enum weft_micro_step_order {
    WEFT_ORDER_BY_STEP = 0,
    WEFT_ORDER_BY_LAYER = -1,
    WEFT_ORDER_AUTO = -2
};

/* Layers of a group in the order of micro-steps that the rule of plan.planner has: of
 * "breadth-first:4" 4, of "breadth-first" and "greedysnake" 1. 0: it asks for none. */
int32_t weft_config_planner_layers(const struct weft_config *config);

/* Layers of a group that all micro-steps run through before the next group; 0: one micro-step
 * follows the other, or weft_config_opens_turns. */
static inline int32_t weft_config_turn_layers(const struct weft_config *config)
{
    const int64_t order = config->plan.micro_step_order;
    if (order == WEFT_ORDER_AUTO)
        return config->kept.turns ? (int32_t)config->kept.layers
                                  : weft_config_planner_layers(config);
    return order == WEFT_ORDER_BY_LAYER ? 1 : (int32_t)order;
}

/* The reason why micro-steps cannot take turns by layers in a step of `n_micro`, and a cure. NULL:
 * they can. */
const char *weft_config_refuses_turns(const struct weft_config *config, int64_t n_micro);

/* Whether the planner may choose the order. */
static inline bool weft_config_opens_turns(const struct weft_config *config)
{
    return config->plan.micro_step_order == WEFT_ORDER_AUTO && !config->kept.turns &&
           weft_config_planner_layers(config) == 0;
}

/* plan.update_in without a number. */
enum weft_update_in {
    WEFT_UPDATE_IN_FORWARD = 0,
    WEFT_UPDATE_IN_BACKWARD = -1,
    WEFT_UPDATE_IN_AUTO = -2
};

/* The price of updates in backward: the promise that a user gives up. */
extern const char weft_update_in_price[];

/* Why no unit can be updated in backward. NULL: units can. *cure (may be NULL) is a change that
 * would work, next to "forward"; it stays if units can. */
const char *weft_config_refuses_backward(const struct weft_config *config, const char **cure);

/* Whether an average is a step of an outer optimizer, which has states of its own. */
static inline bool weft_config_outer(const struct weft_config *config)
{
    const struct weft_train *train = &config->train;
    return train->every > 0 && (train->across_momentum > 0 || train->across_lr != 1);
}

/* Sets whether the run's products are plain (struct weft_batch), and updates the hash, which covers
 * it for 16 bits on a GPU. */
WEFT_MUST_USE enum weft_status weft_config_set_plain(struct weft_config *config, bool plain,
                                                     struct weft_error *err);

enum { WEFT_MOST_MICRO_BATCH = 1048576, WEFT_MOST_MICRO_STEPS = 1024, WEFT_MOST_SPLITS = 8 };

/* Lists the micro-batches that the config allows, increasing, and returns their number: one unless
 * train.micro_batch is auto. Those of several micro-steps need an f32 reduction. If there are more
 * than WEFT_MOST_SPLITS divisors, these spread evenly from the least to the largest. */
int32_t weft_config_splits(const struct weft_config *config, int64_t out[WEFT_MOST_SPLITS]);
/* Leaves the split of the same batch open. False, and no change, if the config has several
 * micro-steps, or an override names the split. */
bool weft_config_open_split(struct weft_config *config);
/* Micro-steps of a rank that takes the batch in micro-batches of this size; 0: they do not divide
 * it. With train.group the groups of a step may be no multiple of the ranks. The last *idle ranks
 * then have no group in the last round. */
int64_t weft_config_micro_steps(const struct weft_config *config, int64_t micro_batch,
                                int64_t *idle);
/* Samples of a step, of all ranks. */
static inline int64_t weft_config_samples(const struct weft_config *config)
{
    const struct weft_train *train = &config->train;
    const int64_t micro_steps = config->cluster.ranks * train->grad_accum;
    return train->micro_batch * (micro_steps - train->idle * train->group);
}
/* Makes one of these micro-batches the split of the config; the hash stays. */
void weft_config_settle(struct weft_config *config, int64_t micro_batch);
/* Plans only a checkpoint's micro-batch, and its rounds of `group` micro-steps, from now on, as far
 * as the config leaves these open and no override asks for them. False if its micro-batch divides
 * no rank's samples any more. */
bool weft_config_keep_split(struct weft_config *config, int64_t micro_batch, int64_t group);

/* Plans only a checkpoint's order of micro-steps from now on, if the config leaves it open and bits
 * depend on it. A step that refuses turns has none. False, and no change, if no group of that many
 * layers leaves a second one. */
bool weft_config_keep_turns(struct weft_config *config, int64_t layers);

/* Ranks with gradients that are summed first: those of a node, if there are several. Otherwise 1,
 * because the ranks of a single node are added one after the other. */
static inline int64_t weft_config_bundle(const struct weft_config *config)
{
    return config->cluster.ranks_per_node < config->cluster.ranks ? config->cluster.ranks_per_node
                                                                  : 1;
}

/* A step's batch in groups of micro-batches, shared by a number of ranks. */
struct weft_order {
    int64_t ranks, micro_batch, micro_steps, group, idle, bundle;
    int64_t layers; /* of a turn; 0: one micro-step after the other */
};

static inline int64_t weft_order_groups(const struct weft_order *order)
{
    return order->ranks * order->micro_steps / order->group - order->idle;
}

enum weft_order_kept {
    WEFT_ORDER_OTHER, /* the config or an override asks for another batch, or for another order */
    WEFT_ORDER_KEPT,  /* the ranks share the run's batch, in the run's groups */
    WEFT_ORDER_LOST,  /* other groups are summed first, in a step of as many samples; or there are
                         more ranks than groups */
    WEFT_ORDER_TIED,  /* batch and groups are kept, but the terms of a tied tensor are added up in
                         another order than in turns by layers */
    WEFT_ORDER_FEWER  /* train.batch has fewer groups than ranks; without it more ranks are LOST,
                         and have a larger batch */
};

/* Gives the config's ranks the batch and the groups of a run with another number of ranks: its keys
 * batch, micro_batch and group. The bits of a step then stay the same. WEFT_E_USAGE if fewer ranks
 * cannot take the batch, or would add up in 16 bits. */
WEFT_MUST_USE enum weft_status weft_config_keep_order(struct weft_config *config,
                                                      const struct weft_order *order,
                                                      enum weft_order_kept *out,
                                                      struct weft_error *err);

#endif
