/* SPDX-License-Identifier: Apache-2.0 */
#include "library/split_kept.h"

#include <stdio.h>

#include "base/log.h"
#include "spec/config_batch.h"

/* Tells how many groups a rank has. */
static void tell_kept(const struct weft_config *config, const struct weft_order *order)
{
    const long long ranks = config->cluster.ranks, idle = config->train.idle,
                    rounds = config->train.grad_accum / config->train.group;
    char some[64] = "";
    if (idle > 0) snprintf(some, sizeof some, ", the last %lld of them one less", idle);
    weft_log(WEFT_LOG_INFO,
             "%lld ranks share the %lld groups of each step, which %lld ranks began: each rank "
             "has %lld%s, and the bits stay the same",
             ranks, (long long)weft_order_groups(order), (long long)order->ranks, rounds, some);
}

/* Tells if a tied tensor's terms are added up in another order than before, with the same groups
 * on the same ranks. One micro-step has one order. */
static void tell_turns(const struct weft_manifest_split *split, const struct weft_config *config)
{
    const char *refused = weft_config_refuses_turns(config, config->train.grad_accum);
    const int64_t layers = refused == NULL ? weft_config_turn_layers(config) : 0;
    if (split->micro_steps == 1 || weft_model_ties_alike(config->model, split->layers, layers))
        return;
    char before[48] = "\"step\"";
    if (split->layers == 1) snprintf(before, sizeof before, "\"layer\"");
    if (split->layers > 1) snprintf(before, sizeof before, "%lld", (long long)split->layers);
    if (split->layers > 0 && refused != NULL) {
        weft_log(WEFT_LOG_WARNING,
                 "the checkpoint is of a run with plan.micro_step_order %s, and the model ties a "
                 "tensor; this run has micro-steps one after the other, so its sums round "
                 "otherwise: the order of the checkpoint needs its train.reduce, train.group and "
                 "train.grad_accum",
                 before);
        return;
    }
    weft_log(WEFT_LOG_WARNING,
             "the checkpoint is of a run with plan.micro_step_order %s, and the model ties a "
             "tensor, so its sums round otherwise; --set plan.micro_step_order=%s keeps the bits",
             before, before);
}

/* Goes on with another number of ranks. Any number up to the groups keeps the bits. */
static enum weft_status keep_order(const struct weft_manifest_split *split,
                                   struct weft_config *config, struct weft_error *err)
{
    const struct weft_order order = {split->ranks, split->micro_batch, split->micro_steps,
                                     split->group, split->idle,        split->bundle,
                                     split->layers};
    const int64_t ranks = config->cluster.ranks, groups = weft_order_groups(&order);
    enum weft_order_kept kept;
    WEFT_TRY(weft_config_keep_order(config, &order, &kept, err));
    switch (kept) {
    case WEFT_ORDER_OTHER:
        weft_log(WEFT_LOG_WARNING,
                 "the batch or the order of its sums is another one than in the checkpoint of %lld "
                 "ranks, so sums round otherwise",
                 (long long)split->ranks);
        break;
    case WEFT_ORDER_KEPT:
        tell_kept(config, &order);
        tell_turns(split, config);
        break;
    case WEFT_ORDER_TIED:
        weft_log(WEFT_LOG_WARNING,
                 "the model ties a tensor, and micro-steps by layer add up its terms in the order "
                 "of %lld ranks alone, so sums round otherwise",
                 (long long)split->ranks);
        break;
    case WEFT_ORDER_FEWER:
        return weft_fail(err, WEFT_E_USAGE,
                         "a step of the checkpoint has %lld groups of micro-batches, fewer than "
                         "%lld ranks: start at most %lld ranks (-n %lld), or begin a new run with "
                         "a smaller train.group or a larger train.batch (--from)",
                         (long long)groups, (long long)ranks, (long long)groups, (long long)groups);
    case WEFT_ORDER_LOST:
        weft_log(
            WEFT_LOG_WARNING,
            "%lld ranks cannot keep the order of sums of the checkpoint's %lld groups, so sums "
            "round otherwise%s; numbers of ranks up to %lld keep it%s",
            (long long)ranks, (long long)groups,
            groups < ranks ? " and the batch is larger" : ", in a step of as many samples",
            (long long)groups, split->bundle > 1 ? ", on nodes of as many ranks" : "");
        break;
    }
    return WEFT_OK;
}

enum weft_status weft_split_keep(const struct weft_manifest_split *split,
                                 struct weft_config *config, struct weft_error *err)
{
    if (split->micro_batch == 0) return WEFT_OK;
    if (split->micro_steps != 1 && !weft_config_keep_turns(config, split->layers))
        return weft_fail(err, WEFT_E_DATA,
                         "the checkpoint's turn_layers is %lld, and the model has %d layers, so "
                         "its manifest is damaged: resume with another checkpoint",
                         (long long)split->layers, config->model->n_layers);
    if (split->ranks == 0)
        weft_log(WEFT_LOG_WARNING,
                 "an older version saved the checkpoint without the number of its ranks: the same "
                 "number keeps the order of sums, and another one may round otherwise");
    if (split->ranks > 0 && (split->ranks != config->cluster.ranks || split->idle > 0))
        return keep_order(split, config, err);
    const bool kept = weft_config_keep_split(config, split->micro_batch, split->group);
    if (kept) tell_turns(split, config);
    if (!kept)
        weft_log(WEFT_LOG_WARNING,
                 "the checkpoint's micro-batches of %lld samples do not divide train.batch here: "
                 "the batch is split anew, so sums round otherwise",
                 (long long)split->micro_batch);
    else if (config->kept.micro_batch > 0)
        weft_log(WEFT_LOG_INFO,
                 "goes on with the checkpoint's micro-batches of %lld samples; --set "
                 "train.micro_batch=auto plans them anew",
                 (long long)split->micro_batch);
    return WEFT_OK;
}
