/* SPDX-License-Identifier: Apache-2.0 */
/* The split of a step's batch: ranks x micro-batch x micro-steps. */
#include "spec/config_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "spec/config_parts.h"
#include "spec/target.h"

static const char batch_path[] = "$.train.batch", split_path[] = "$.train.micro_batch";

static int64_t samples_a_rank(const struct weft_config *config)
{
    return config->train.batch / config->cluster.ranks;
}

int64_t weft_config_micro_steps(const struct weft_config *config, int64_t micro_batch,
                                int64_t *idle)
{
    const struct weft_train *train = &config->train;
    const int64_t ranks = config->cluster.ranks, group = train->group > 0 ? train->group : 1;
    *idle = 0;
    if (train->batch == 0) return train->grad_accum;
    if (train->batch % micro_batch != 0) return 0;
    const int64_t n = train->batch / micro_batch; /* micro-steps of all ranks */
    if (train->group == 0) return n % ranks == 0 ? n / ranks : 0;
    if (n % group != 0 || n / group < ranks) return 0;
    const int64_t rounds = (n / group + ranks - 1) / ranks;
    *idle = rounds * ranks - n / group;
    return rounds * group;
}

/* Whether a rank may take its samples in micro-batches of this size. */
static bool is_split(const struct weft_config *config, int64_t micro_batch)
{
    const struct weft_train *train = &config->train;
    int64_t idle;
    const int64_t micro_steps = weft_config_micro_steps(config, micro_batch, &idle);
    if (micro_steps == 0 || micro_batch > WEFT_MOST_MICRO_BATCH) return false;
    if (train->asked.grad_accum > 0 && micro_steps != train->asked.grad_accum) return false;
    /* Kernels count the tokens of a micro-step in 32 bits. */
    if (micro_batch > INT32_MAX / train->seq_len || micro_steps > WEFT_MOST_MICRO_STEPS)
        return false;
    /* Gradients of several micro-steps are added up in f32. */
    return micro_steps == 1 || train->precision.reduce == WEFT_F32;
}

/* The next split after `micro_batch`; 0 after the last one. */
static int64_t next_split(const struct weft_config *config, int64_t micro_batch)
{
    const int64_t samples = samples_a_rank(config);
    const int64_t most = samples < WEFT_MOST_MICRO_BATCH ? samples : WEFT_MOST_MICRO_BATCH;
    for (int64_t next = micro_batch + 1; next <= most; next++)
        if (is_split(config, next)) return next;
    return 0;
}

int32_t weft_config_splits(const struct weft_config *config, int64_t out[WEFT_MOST_SPLITS])
{
    int32_t n = 0, k = 0, at = 0;
    out[0] = config->train.micro_batch;
    if (config->train.asked.micro_batch > 0 || config->kept.micro_batch > 0) return 1;
    for (int64_t split = next_split(config, 0); split > 0; split = next_split(config, split))
        n++;
    for (int64_t split = next_split(config, 0); split > 0; split = next_split(config, split), at++)
        if (n <= WEFT_MOST_SPLITS || at == k * (n - 1) / (WEFT_MOST_SPLITS - 1)) out[k++] = split;
    return k;
}

bool weft_config_open_split(struct weft_config *config)
{
    struct weft_train *train = &config->train;
    if (train->asked.micro_batch == 0 || train->asked.grad_accum > 1 || config->split_given)
        return false;
    train->batch = weft_config_samples(config);
    train->asked.micro_batch = train->asked.grad_accum = 0;
    return true;
}

void weft_config_settle(struct weft_config *config, int64_t micro_batch)
{
    struct weft_train *train = &config->train;
    if (train->asked.micro_batch > 0) return;
    train->micro_batch = micro_batch;
    train->grad_accum = weft_config_micro_steps(config, micro_batch, &train->idle);
}

bool weft_config_keep_split(struct weft_config *config, int64_t micro_batch, int64_t group)
{
    if (!config->order_given) config->kept.group = group;
    if (config->train.asked.micro_batch > 0 || config->split_given) return true;
    if (micro_batch < 1 || !is_split(config, micro_batch)) return false;
    weft_config_settle(config, micro_batch);
    config->kept.micro_batch = micro_batch;
    return true;
}

/* Gives the config's ranks a run's batch in `rounds` rounds of its groups. */
static void take_order(struct weft_config *config, const struct weft_order *order, int64_t batch,
                       int64_t rounds)
{
    struct weft_train *train = &config->train;
    /* Averages over nodes and delayed reductions exclude train.group. */
    const bool names_group = train->every == 0 && train->delay == 0;
    /* Several rounds have one order. Without tied tensors both orders give the same sums. */
    if (rounds > 1 && weft_config_turn_layers(config) > 0)
        config->plan.micro_step_order = WEFT_ORDER_BY_STEP;
    train->batch = batch;
    train->asked.micro_batch = order->micro_batch;
    train->asked.grad_accum = 0;
    train->group = names_group ? order->group : 0;
    train->cadence = names_group   ? WEFT_CADENCE_AUTO
                     : rounds == 1 ? WEFT_CADENCE_STEP
                                   : WEFT_CADENCE_MICRO_STEP;
    train->micro_batch = order->micro_batch;
    train->grad_accum = weft_config_micro_steps(config, order->micro_batch, &train->idle);
}

/* Without train.batch fewer ranks would have a smaller batch. */
static enum weft_status refuse_order(const struct weft_config *config,
                                     const struct weft_order *order, struct weft_error *err)
{
    const long long batch =
        (long long)(weft_order_groups(order) * order->group * order->micro_batch);
    return weft_fail(err, WEFT_E_USAGE,
                     "%lld ranks cannot take the %lld samples of a step that %lld ranks began, in "
                     "the same groups: start %lld ranks (-n %lld), or set train.batch to %lld for "
                     "sums that round otherwise",
                     (long long)config->cluster.ranks, batch, (long long)order->ranks,
                     (long long)order->ranks, (long long)order->ranks, batch);
}

enum weft_status weft_config_keep_order(struct weft_config *config, const struct weft_order *order,
                                        enum weft_order_kept *out, struct weft_error *err)
{
    struct weft_train *train = &config->train;
    const int64_t ranks = config->cluster.ranks, groups = weft_order_groups(order);
    const int64_t batch = groups * order->group * order->micro_batch;
    const bool same_batch =
        train->batch > 0 ? train->batch == batch : train->asked.grad_accum == order->micro_steps;
    const bool same_split =
        train->asked.micro_batch == 0 || train->asked.micro_batch == order->micro_batch;
    *out = WEFT_ORDER_OTHER;
    if (config->split_given || config->order_given || !same_batch || !same_split) return WEFT_OK;
    const int64_t rounds = (groups + ranks - 1) / ranks;
    /* Gradients of several micro-steps are added up in f32. */
    const bool adds_up = rounds * order->group == 1 || train->precision.reduce == WEFT_F32;
    if (!adds_up && groups >= ranks)
        return weft_fail(err, WEFT_E_USAGE,
                         "train.precision.reduce is %s, and %lld rank%s would add up the %lld "
                         "groups of a step in %lld rounds, which needs f32: start %lld ranks (-n "
                         "%lld), or begin a new run with f32",
                         weft_dtype_name((enum weft_dtype)train->precision.reduce),
                         (long long)ranks, ranks == 1 ? "" : "s", (long long)groups,
                         (long long)rounds, (long long)groups, (long long)groups);
    /* Averages over nodes and delayed reductions exclude train.group. */
    const bool names_group = train->every == 0 && train->delay == 0;
    *out = groups < ranks && train->batch > 0 ? WEFT_ORDER_FEWER : WEFT_ORDER_LOST;
    const bool too_many = rounds > WEFT_MOST_MICRO_STEPS / order->group;
    const bool names_rounds = names_group || rounds == 1 || order->group == 1;
    if (groups < ranks || !adds_up) return WEFT_OK;
    if (too_many || !names_rounds)
        return train->batch > 0 ? WEFT_OK : refuse_order(config, order, err);
    if (order->bundle == weft_config_bundle(config)) {
        const bool is_tied = rounds > 1 && order->layers > 0 && weft_model_ties(config->model);
        *out = is_tied ? WEFT_ORDER_TIED : WEFT_ORDER_KEPT;
    } else if (train->batch > 0) {
        return WEFT_OK; /* it is the checkpoint's, in the config's own rounds */
    }
    take_order(config, order, batch, rounds);
    return weft_config_hash_inputs(config, err);
}

int32_t weft_config_planner_layers(const struct weft_config *config)
{
    static const char *const rules[] = {"breadth-first", "greedysnake"};
    const char *planner = config->plan.planner;
    for (size_t r = 0; planner != NULL && r < sizeof rules / sizeof *rules; r++) {
        const size_t n = strlen(rules[r]);
        if (strncmp(planner, rules[r], n) != 0 || (planner[n] != '\0' && planner[n] != ':'))
            continue;
        const long layers = planner[n] == ':' ? strtol(planner + n + 1, NULL, 10) : 1;
        return layers > 0 && layers <= INT32_MAX ? (int32_t)layers : 1;
    }
    return 0;
}

const char *weft_config_refuses_turns(const struct weft_config *config, int64_t n_micro)
{
    const struct weft_train *train = &config->train;
    if (weft_config_target(config)->is_foreign)
        return "the runtime of plan.for runs one micro-step after the other: leave it out, or set "
               "plan.for to \"weft\"";
    if (n_micro < 2)
        return "a step has one micro-step: leave it out, or let each rank have 2 or more "
               "(train.grad_accum; with train.batch, a smaller train.micro_batch or fewer ranks)";
    if (train->cadence == WEFT_CADENCE_MICRO_STEP || (train->group > 0 && train->group != n_micro))
        return "all micro-steps of a layer add up one gradient: leave it out, or set train.reduce "
               "to \"step\", without a smaller train.group";
    return NULL;
}

const char weft_update_in_price[] =
    "if a later gradient of a step is not finite, the run ends with "
    "79 and no state of that step is saved";

const char *weft_config_refuses_backward(const struct weft_config *config, const char **cure)
{
    const struct weft_train *train = &config->train;
    const struct weft_target *target = weft_config_target(config);
    const struct {
        bool applies;
        const char *why, *cure;
    } refusals[] = {
        {target->is_foreign || target->updates_first,
         "the runtime of plan.for updates after backward", "plan.for to \"weft\""},
        {weft_optimizer_row(train->optimizer.type)->agrees,
         "lamb agrees on norms within each update, for which reductions would wait",
         "take adamw or sgd"},
        {weft_config_means(config),
         "adam_mini divides by means of squares that ranks sum after backward",
         "take adamw or sgd"},
        {train->clip_norm > 0, "clipping needs the norm of all gradients before the first update",
         "train.clip_norm to 0"},
        {train->precision.compute == WEFT_F16,
         "f16 repeats a step that overflowed, and a part of the units would be updated",
         "compute in bf16 or f32"},
        {train->delay > 0, "delayed updates have their own place in backward", "train.delay to 0"},
        {train->every > 0,
         "a node with gradients that are not finite waits for an average of whole updates",
         "train.across.every to 0"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (!refusals[i].applies) continue;
        if (cure != NULL) *cure = refusals[i].cure;
        return refusals[i].why;
    }
    return NULL;
}

bool weft_config_keep_turns(struct weft_config *config, int64_t layers)
{
    if (!weft_config_opens_turns(config) || !weft_model_ties(config->model)) return true;
    if (layers < 0 || layers >= config->model->n_layers) return false;
    config->kept.turns = true;
    config->kept.layers = layers;
    return true;
}

/* The least batch that all ranks can share in the asked parts. */
static int64_t least_batch(const struct weft_config *config)
{
    const struct weft_train *train = &config->train;
    const int64_t ranks = config->cluster.ranks;
    const int64_t asked = train->asked.micro_batch > 0  ? train->asked.micro_batch
                          : train->asked.grad_accum > 0 ? train->asked.grad_accum
                                                        : 1;
    int64_t least;
    return weft_checked_mul(ranks, asked, &least) ? least : ranks;
}

/* A batch that the ranks cannot share equally. */
static void refuse_batch(const struct weft_config *config, struct weft_findings *findings)
{
    const int64_t batch = config->train.batch, ranks = config->cluster.ranks;
    const int64_t least = least_batch(config), below = batch - batch % least;
    weft_findings_add(findings, config->source, batch_path,
                      "%lld samples are no multiple of %lld ranks; try %lld, or train.group=1 with "
                      "ranks that are idle in the last round",
                      (long long)batch, (long long)ranks, (long long)(below > 0 ? below : least));
}

/* A batch with fewer groups than ranks, or not in whole groups of that many micro-batches. */
static void refuse_groups(const struct weft_config *config, struct weft_findings *findings)
{
    const struct weft_train *train = &config->train;
    const int64_t each = train->group * train->asked.micro_batch, ranks = config->cluster.ranks;
    const long long groups = train->batch / each;
    if (train->batch % each != 0)
        weft_findings_add(findings, config->source, batch_path,
                          "%lld samples are no whole groups of %lld micro-batches of %lld samples "
                          "(train.group); try %lld",
                          (long long)train->batch, (long long)train->group,
                          (long long)train->asked.micro_batch, (long long)((groups + 1) * each));
    else if (groups < ranks)
        weft_findings_add(
            findings, config->source, batch_path,
            "%lld samples make %lld groups of %lld (train.group x micro_batch), fewer "
            "than %lld ranks; start at most %lld ranks, or try a batch of %lld",
            (long long)train->batch, groups, (long long)each, (long long)ranks, groups,
            (long long)(ranks * each));
    else
        weft_findings_add(findings, config->source, batch_path,
                          "%lld samples give a rank more than %d micro-steps; try a larger "
                          "train.micro_batch",
                          (long long)train->batch, WEFT_MOST_MICRO_STEPS);
}

/* train.micro_batch is auto, and no divisor is a split. */
static void refuse_auto(const struct weft_config *config, struct weft_findings *findings)
{
    const struct weft_train *train = &config->train;
    const long long samples = (long long)samples_a_rank(config);
    if (train->asked.grad_accum > 0)
        weft_findings_add(findings, config->source, "$.train.grad_accum",
                          "%lld micro-steps cannot divide the %lld samples of a rank; leave it out",
                          (long long)train->asked.grad_accum, samples);
    else
        weft_findings_add(findings, config->source, batch_path,
                          "no micro-batch divides the %lld samples of a rank into at most %d "
                          "micro-steps of at most %d tokens%s%s; try another batch",
                          samples, WEFT_MOST_MICRO_STEPS, INT32_MAX,
                          train->group > 1 ? ", in rounds of train.group" : "",
                          train->precision.reduce == WEFT_F32
                              ? ""
                              : " (with train.precision.reduce other than f32: into one)");
}

/* A batch and a micro-batch that do not fit together. */
static void refuse_split(const struct weft_config *config, struct weft_findings *findings)
{
    const struct weft_train *train = &config->train;
    const int64_t samples = samples_a_rank(config), micro_batch = train->asked.micro_batch;
    if (samples % micro_batch == 0 && train->asked.grad_accum > 0)
        weft_findings_add(findings, config->source, "$.train.grad_accum",
                          "is %lld, and train.batch with train.micro_batch makes %lld micro-steps; "
                          "leave it out",
                          (long long)train->asked.grad_accum, (long long)(samples / micro_batch));
    else
        weft_findings_add(findings, config->source, split_path,
                          "%lld does not divide the %lld samples that train.batch gives each of "
                          "%lld ranks into at most %d micro-steps; try \"auto\"",
                          (long long)micro_batch, (long long)samples,
                          (long long)config->cluster.ranks, WEFT_MOST_MICRO_STEPS);
}

/* Without a batch the config names the split. */
static void take_product(struct weft_config *config, struct weft_findings *findings)
{
    struct weft_train *train = &config->train;
    if (train->asked.micro_batch == 0) {
        weft_findings_add(findings, config->source, split_path,
                          "is \"auto\", which divides train.batch, and there is none; give the "
                          "samples of a step as train.batch, or a number here");
        return;
    }
    if (train->asked.grad_accum == 0) train->asked.grad_accum = train->group > 0 ? train->group : 1;
    train->micro_batch = train->asked.micro_batch;
    train->grad_accum = train->asked.grad_accum;
}

/* Settings that exclude train.group. */
static void check_group(const struct weft_config *config, struct weft_findings *findings)
{
    const struct weft_train *train = &config->train;
    const char *why = NULL;
    if (train->group == 0) return;
    if (train->cadence != WEFT_CADENCE_AUTO)
        why = "train.reduce also names the rounds: leave out one of them";
    else if (train->delay > 0)
        why = "train.delay needs one round a step: leave out one of them";
    else if (train->every > 0)
        why = "nodes that step on their own (train.across.every) share no groups: leave out one of "
              "them";
    else if (weft_config_target(config)->is_foreign)
        why = "the runtime of plan.for has rounds of its own: set plan.for to \"weft\"";
    if (why != NULL)
        weft_findings_add(findings, config->source, "$.train.group", "is %lld, and %s",
                          (long long)train->group, why);
    else if (train->grad_accum % train->group != 0)
        weft_findings_add(
            findings, config->source, "$.train.group",
            "rounds of %lld micro-steps do not divide the %lld micro-steps of a step; "
            "set train.grad_accum to a multiple",
            (long long)train->group, (long long)train->grad_accum);
}

void weft_config_take_batch(struct weft_config *config, struct weft_findings *findings)
{
    struct weft_train *train = &config->train;
    int64_t splits[WEFT_MOST_SPLITS];
    if (train->batch == 0) {
        take_product(config, findings);
    } else if (train->group == 0 && train->batch % config->cluster.ranks != 0) {
        refuse_batch(config, findings);
    } else if (train->asked.micro_batch == 0) {
        if (weft_config_splits(config, splits) == 0)
            refuse_auto(config, findings);
        else
            weft_config_settle(config, splits[0]);
    } else {
        const int64_t micro_batch = train->asked.micro_batch;
        const int64_t micro_steps = weft_config_micro_steps(config, micro_batch, &train->idle);
        const bool given = train->asked.grad_accum == 0 || train->asked.grad_accum == micro_steps;
        const bool fits = micro_steps > 0 && micro_steps <= WEFT_MOST_MICRO_STEPS;
        train->micro_batch = micro_batch;
        train->grad_accum = micro_steps;
        if (!fits && train->group > 0)
            refuse_groups(config, findings);
        else if (!fits || !given)
            refuse_split(config, findings);
    }
    if (findings->count == 0) check_group(config, findings);
}
