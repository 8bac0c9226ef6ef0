/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "library/metrics/metrics.h"
#include "runtime/checkpoint/manifest.h"

/* Lines are only written, so their keys have no place in a struct. */

#define COUNT(name, text)  WEFT_KEY_PART(WEFT_KEY_INT64, name, NULL, text)
#define NUMBER(name, text) WEFT_KEY_PART(WEFT_KEY_NUMBER, name, NULL, text)
#define NUMBER_OR_NULL(name, text)                                                                 \
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_NUMBER, name, NULL, text)
#define BITS_IF(name, text)                                                                        \
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_OR_NULL, WEFT_KEY_NUMBER, name, NULL, text)
/* The first keys of every line. */
#define LINE(kind)                                                                                 \
    WEFT_KEY_PART(WEFT_KEY_CONST, "kind", kind, "of the line"),                                    \
        COUNT("unix_ms", "when it was written, since 1970"), COUNT("step", "of the line"),         \
        WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_NUMBER, "tokens_per_s", NULL,                  \
                         "of the latest step, of all ranks; null before it"),                      \
        WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_INT64, "held_bytes", NULL,                     \
                         "memory of rank 0 at the last look; null before it"),                     \
        COUNT("predicted_step_ns", "of a step, by the plan"),                                      \
        WEFT_KEY_PART(WEFT_KEY_BOOL, "emulated", NULL, "times depend on an emulated link")

static const struct weft_key_table gradients_table = WEFT_KEY_TABLE_OPEN(
    NULL, COUNT("step", "of the gradients"),
    COUNT("ranks", "that shared its groups: rank g % ranks computed group g"),
    COUNT("groups", "of the step, in data order"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_TEXT, "hashes", NULL,
                     "of each group's gradient before the sum, 16 hexadecimal digits; with more "
                     "than 64 groups the sum over every 64th"));

static const struct weft_key_table step_table = WEFT_KEY_TABLE_OPEN(
    "After every step.", LINE("step"),
    NUMBER("loss", "mean over the samples of the step; with train.across.every of all "
                   "nodes before an average, otherwise of the first node"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_NUMBER, "nodes_loss", NULL,
                     "mean of all nodes over the steps since they met last"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_INT64, "nodes_steps", NULL,
                     "number of these steps"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_NUMBER, "norm", NULL,
                     "of the gradients, if it is computed"),
    NUMBER("clip", "factor of the gradients"), NUMBER("lr", "learning rate"),
    NUMBER("loss_scale", "1 except in f16"), COUNT("step_ns", "measured"),
    COUNT("exposed_ns", "part of it in which compute waited for communication"),
    COUNT("overlapped_ns", "of communication during compute"),
    COUNT("data_wait_ns", "before the step, for its data"),
    COUNT("tokens", "of all ranks in this step"),
    NUMBER_OR_NULL("model_flops_per_s", "of all ranks: forward and backward without recomputation"),
    NUMBER_OR_NULL("mfu", "their share of the devices' peak; null: cluster.device.flops lacks it"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_HASH, "parameters", NULL,
                     "hash of all trained parameters before the step (train.fingerprint.every)"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "gradients", &gradients_table,
                     "hashes of this step's gradients, or of the step's before if train.clip_norm "
                     "is 0 (train.fingerprint.every)"));

static const struct weft_key_table validation_table =
    WEFT_KEY_TABLE_OPEN("After every train.validation.every steps.", LINE("validation"),
                        WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_NUMBER, "validation_loss", NULL,
                                         "natural logarithm; null: not finite"),
                        BITS_IF("bits_per_byte", "the same for a text"),
                        BITS_IF("bits_per_token", "the same for a token file"),
                        BITS_IF("bits_per_sample", "the same for a classifier"),
                        COUNT("samples", "of all ranks"), COUNT("validation_ns", "its time"));

static const struct weft_key_table checkpoint_table =
    WEFT_KEY_TABLE_OPEN("When a checkpoint is committed. Lines of later steps may come first.",
                        LINE("checkpoint"), COUNT("saved_bytes", "of its files"),
                        COUNT("save_ns", "time in which training stood still for it"));

const struct weft_key_table *const weft_metrics_keys[] = {&step_table, &validation_table,
                                                          &checkpoint_table, NULL};

/* The result, which the launching process reads too */

#define DONE(member, text) WEFT_KEY_COUNT(weft_train_result, member, text)
#define TIME(member, text)                                                                         \
    WEFT_KEY_COUNT_AS(WEFT_KEY_OR_NULL, #member, weft_train_result, member, text)
#define LOSS(member, text)                                                                         \
    WEFT_KEY_VALUE_AS(WEFT_KEY_OR_NULL, #member, WEFT_KEY_NUMBER, weft_train_result, member, text)
#define PLANNED(member, prefix, text)                                                              \
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, prefix "planned_bytes", weft_train_result,                  \
                      member.planned_bytes, text),                                                 \
        WEFT_KEY_COUNT_AS(WEFT_KEY_OR_NULL, prefix "measured_bytes", weft_train_result,            \
                          member.measured_bytes, "the most that rank 0 held there")

static void put_now(const void *context, const void *source, struct weft_json_writer *writer)
{
    (void)context;
    (void)source;
    weft_json_put_integer(writer, "unix_ms", weft_clock_unix_ms());
}

/* `context`: the hosts and their ranks, or NULL. */
static void put_hosts(const void *context, const void *source, struct weft_json_writer *writer)
{
    (void)source;
    if (context != NULL) weft_run_hosts_write(context, writer);
}

const struct weft_key_table weft_result_keys = WEFT_KEY_TABLE_OPEN(
    "The end of a run: RUN/result.json, and the last line of `weft train --json`.",
    WEFT_KEY_PART(WEFT_KEY_CONST, "kind", "result", "of the line"),
    WEFT_KEY_PART(WEFT_KEY_TEXT, "weft", WEFT_VERSION, "version of the program that wrote it"),
    WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_INT64, "unix_ms", NULL, put_now,
                 "when it was written, since 1970"),
    DONE(steps_done, "in all, with the steps before a resumed checkpoint"),
    WEFT_KEY_VALUE(WEFT_KEY_BOOL, weft_train_result, stopped, "by a signal, before the last step"),
    WEFT_KEY_RANGE(weft_train_result, saved_step, -1, WEFT_KEY_MOST,
                   "of the last checkpoint; -1: none"),
    LOSS(first_loss, "of this start; null: no step was left"),
    LOSS(last_loss, "of this start; null: no step was left"),
    LOSS(validation_loss, "of the last evaluation; null: none"),
    WEFT_KEY_VALUE(WEFT_KEY_HASH, weft_train_result, fingerprint, "of all parameters"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_UNREAD, "origin", weft_train_result, origin, origin.path[0],
                       &weft_origin_keys, "of a run that began with `--from`"),
    TIME(step_ns, "median; null: no step was left"), DONE(predicted_step_ns, "by the plan"),
    TIME(exposed_ns, "median, time in which compute waited for communication"),
    TIME(overlapped_ns, "median, of communication during compute"),
    TIME(data_wait_ns, "of all steps after the first two, for data"),
    PLANNED(tiers[WEFT_LOCATION_DEVICE], "",
            "of a rank in the device's memory: base, ring of a disk and arena"),
    PLANNED(outside, "outside_", "of these, outside the arena"),
    PLANNED(tiers[WEFT_LOCATION_HOST], "host_", "of a rank in the host's tier"),
    PLANNED(tiers[WEFT_LOCATION_DISK], "disk_", "of a rank on the disk"),
    DONE(touched_bytes, "of the arena, that buffers were in"),
    DONE(ring_bytes, "of a disk's ring, that are in memory"),
    WEFT_KEY_VALUE(WEFT_KEY_BOOL, weft_train_result, emulated, "times depend on an emulated link"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL | WEFT_KEY_LIST, WEFT_KEY_OBJECT, "hosts", &weft_run_host_keys,
                 put_hosts, "of `weft train`, by first appearance of their ranks"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_LIST, WEFT_KEY_OBJECT, "ranks",
                     &weft_run_rank_keys, "of `weft train`, by rank"));
