/* The split of a step's batch: ranks x micro-batch x micro-steps. */
#include "spec/config_batch.h"
#include "base/checked.h"
#include "spec/config_parts.h"

static const char batch_path[] = "$.train.batch", split_path[] = "$.train.micro_batch";

static int64_t samples_a_rank(const struct weft_config *config)
{
    return config->train.batch / config->cluster.ranks;
}

/* Whether a rank may take its samples in micro-batches of this size. */
static bool is_split(const struct weft_config *config, int64_t micro_batch)
{
    const struct weft_train *train = &config->train;
    const int64_t samples = samples_a_rank(config), micro_steps = samples / micro_batch;
    if (samples % micro_batch != 0 || micro_batch > WEFT_MOST_MICRO_BATCH) return false;
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

void weft_config_settle(struct weft_config *config, int64_t micro_batch)
{
    struct weft_train *train = &config->train;
    if (train->asked.micro_batch > 0) return;
    train->micro_batch = micro_batch;
    train->grad_accum = samples_a_rank(config) / micro_batch;
}

bool weft_config_keep_split(struct weft_config *config, int64_t micro_batch,
                            enum weft_cadence cadence)
{
    if (!config->cadence_given) config->kept.cadence = cadence;
    if (config->train.asked.micro_batch > 0 || config->split_given) return true;
    if (micro_batch < 1 || !is_split(config, micro_batch)) return false;
    weft_config_settle(config, micro_batch);
    config->kept.micro_batch = micro_batch;
    return true;
}

/* A batch that the ranks cannot share equally. */
static void refuse_batch(const struct weft_config *config, struct weft_findings *findings)
{
    const int64_t batch = config->train.batch, ranks = config->cluster.ranks;
    const int64_t below = batch - batch % ranks;
    weft_findings_add(findings, config->source, batch_path,
                      "%lld samples are no multiple of %lld ranks; try %lld", (long long)batch,
                      (long long)ranks, (long long)(below > 0 ? below : ranks));
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
                          "micro-steps of at most %d tokens%s; try another batch",
                          samples, WEFT_MOST_MICRO_STEPS, INT32_MAX,
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
    if (train->asked.grad_accum == 0) train->asked.grad_accum = 1;
    train->micro_batch = train->asked.micro_batch;
    train->grad_accum = train->asked.grad_accum;
}

void weft_config_take_batch(struct weft_config *config, struct weft_findings *findings)
{
    struct weft_train *train = &config->train;
    int64_t splits[WEFT_MOST_SPLITS];
    if (train->batch == 0) {
        take_product(config, findings);
    } else if (train->batch % config->cluster.ranks != 0) {
        refuse_batch(config, findings);
    } else if (train->asked.micro_batch == 0) {
        if (weft_config_splits(config, splits) == 0)
            refuse_auto(config, findings);
        else
            weft_config_settle(config, splits[0]);
    } else {
        const int64_t micro_batch = train->asked.micro_batch, samples = samples_a_rank(config);
        const int64_t micro_steps = samples / micro_batch;
        const bool fits = samples % micro_batch == 0 && micro_steps <= WEFT_MOST_MICRO_STEPS &&
                          (train->asked.grad_accum == 0 || train->asked.grad_accum == micro_steps);
        train->micro_batch = micro_batch;
        train->grad_accum = micro_steps;
        if (!fits) refuse_split(config, findings);
    }
}
