/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "spec/block_scale.h"
#include "spec/config_batch.h"
#include "spec/config_parts.h"
#include "spec/config_tables.h"
#include "spec/schedule.h"
#include "spec/target.h"

/* A GPU gives out memory only in large pages. */
static void check_page(const struct weft_section *section, struct weft_cluster *cluster,
                       struct weft_findings *findings)
{
    enum { LARGE_BYTES = 2 << 20 };
    char path[32];
    const int64_t page_bytes = cluster->page_bytes;
    snprintf(path, sizeof path, "%s.page", section->path);
    if (cluster->device.type == WEFT_DEVICE_CUDA) {
        if (page_bytes == 0) cluster->page_bytes = LARGE_BYTES;
        if (cluster->page_bytes != LARGE_BYTES)
            weft_findings_add(findings, section->source, path,
                              "a GPU has pages of 2MiB: leave the key out");
        return;
    }
    if ((page_bytes & (page_bytes - 1)) == 0) return;
    int64_t lower = 4096;
    while (2 * lower < page_bytes)
        lower *= 2;
    weft_findings_add(findings, section->source, path, "%lld bytes is no power of two; try %lldKiB",
                      (long long)page_bytes, (long long)(lower / 1024));
}

static void check_cluster(const struct weft_section *section, struct weft_config *config,
                          struct weft_findings *findings)
{
    struct weft_cluster *cluster = &config->cluster;
    check_page(section, cluster, findings);
    if (cluster->ranks_per_node == 0 || cluster->ranks_per_node > cluster->ranks) {
        cluster->ranks_per_node = cluster->ranks;
    }
    if (cluster->emulate_link && cluster->link.intra.bytes_per_s == 0) {
        char path[32];
        snprintf(path, sizeof path, "%s.emulate", section->path);
        weft_findings_add(findings, section->source, path,
                          "there is no link to emulate; give link.intra.bandwidth");
    }
    if (cluster->emulate_link && cluster->device.type == WEFT_DEVICE_CUDA) {
        char path[32];
        snprintf(path, sizeof path, "%s.emulate", section->path);
        weft_findings_add(findings, section->source, path,
                          "a GPU has no emulated link, which is the CPU's: leave it out, or take "
                          "device.type \"cpu\"");
    }
    if (cluster->contention.compute + cluster->contention.channel > 1) {
        char path[32];
        snprintf(path, sizeof path, "%s.contention", section->path);
        weft_findings_add(findings, section->source, path,
                          "compute and communication lose %g and %g of their speed at the same "
                          "time: one after the other they would be faster; the two must not add "
                          "up to more than 1",
                          cluster->contention.compute, cluster->contention.channel);
    }
}

/* The most that train.validation.samples takes. */
static const int64_t most_samples = INT64_C(1000000000000);

/* Converts held-out samples of older configs, which count micro-batches of all ranks. */
static void convert_batches(const struct weft_section *section, struct weft_config *config,
                            struct weft_findings *findings)
{
    const struct weft_json_value *validation =
        weft_json_member(weft_json_member(section->root, "train"), "validation");
    struct weft_train *train = &config->train;
    int64_t batches = train->validation.batches;
    train->validation.batches = 0;
    if (batches == 0 || weft_json_member(validation, "samples") != NULL) return;
    int64_t samples = 0;
    train->validation.by_batches = true;
    if (train->asked.micro_batch == 0) {
        weft_findings_add(findings, section->source, "$.train.validation.batches",
                          "counts micro-batches, and train.micro_batch is \"auto\"; give "
                          "\"samples\" in place of \"batches\"");
        return;
    }
    if (weft_checked_mul(batches, train->micro_batch, &samples) &&
        weft_checked_mul(samples, config->cluster.ranks, &samples) && samples <= most_samples)
        train->validation.samples = samples;
    else
        weft_findings_add(findings, section->source, "$.train.validation.batches",
                          "%lld micro-batches of %lld samples on %lld ranks are more than %lld "
                          "samples; give \"samples\" in place of \"batches\"",
                          (long long)batches, (long long)train->micro_batch,
                          (long long)config->cluster.ranks, (long long)most_samples);
}

static void check_train(const struct weft_section *section, const struct weft_train *train,
                        struct weft_findings *findings)
{
    /* Kernels count the tokens of a micro-step in 32 bits. */
    if (train->seq_len > 0 && train->asked.micro_batch > INT32_MAX / train->seq_len) {
        weft_findings_add(findings, section->source, "$.train.micro_batch",
                          "%lld samples of %lld tokens are more than %d tokens; lower one of them",
                          (long long)train->asked.micro_batch, (long long)train->seq_len,
                          INT32_MAX);
    }
    int exponent;
    if (train->loss_scale.initial > 0 && frexp(train->loss_scale.initial, &exponent) != 0.5) {
        weft_findings_add(findings, section->source, "$.train.loss_scale.initial",
                          "%g is no power of two; try %g", train->loss_scale.initial,
                          ldexp(1, exponent));
    }
    const int64_t schedule_steps = weft_train_schedule_steps(train);
    if (train->lr_schedule.type == WEFT_LR_WSD &&
        train->lr_schedule.decay_steps > schedule_steps - train->lr_schedule.warmup_steps) {
        weft_findings_add(findings, section->source, "$.train.lr_schedule.decay_steps",
                          "%lld steps of decay and %lld of warm-up are more than all %lld steps; "
                          "lower one of them",
                          (long long)train->lr_schedule.decay_steps,
                          (long long)train->lr_schedule.warmup_steps, (long long)schedule_steps);
    }
    if (train->validation.data != NULL && train->validation.share > 0) {
        weft_findings_add(findings, section->source, "$.train.validation",
                          "held-out data are a file of their own or a share of train.data; give "
                          "data or share");
    }
}

/* The settings that a delayed update excludes. */
static void check_delay(const struct weft_section *section, const struct weft_config *config,
                        struct weft_findings *findings)
{
    const struct weft_train *train = &config->train;
    const char *why = NULL;
    if (train->delay == 0) return;
    if (weft_optimizer_row(train->optimizer.type)->agrees)
        why =
            "lamb agrees on norms within each update, for which reductions would wait: take adamw "
            "or sgd";
    else if (weft_config_means(config))
        why = "adam_mini divides by means of squares that ranks sum with the norm, and a delayed "
              "update would have those of another step: take adamw or sgd";
    else if (train->precision.compute == WEFT_F16)
        why = "f16 repeats a step that overflowed, and its gradient would be in use: compute in "
              "bf16 or f32";
    else if (train->cadence == WEFT_CADENCE_MICRO_STEP)
        why = "the slice of the last gradient is in use while micro-steps would add to it: set "
              "train.reduce to \"step\" or leave it out";
    else if (weft_config_target(config)->is_foreign)
        why = "the runtime of plan.for updates with the gradient of its own step: set plan.for to "
              "\"weft\"";
    else if (weft_config_moves_state(config) || weft_config_moves_parameters(config))
        why = "optimizer state and parameters stay on the device: set plan.offload to "
              "{\"state\": [\"device\"]} (activations may be offloaded)";
    if (why != NULL)
        weft_findings_add(findings, section->source, "$.train.delay",
                          "is 1, and %s; or set it to 0", why);
}

/* The settings that steps of nodes on their own exclude. */
static void check_across(const struct weft_section *section, const struct weft_config *config,
                         struct weft_findings *findings)
{
    const struct weft_train *train = &config->train;
    const struct weft_cluster *cluster = &config->cluster;
    const char *why = NULL;
    const bool outer = train->across_momentum > 0 || train->across_lr != 1;
    const bool has_more = outer || train->fragments > 1 || train->across_rule != WEFT_AVERAGE_ALL;
    if (train->every == 0 && has_more)
        weft_findings_add(
            findings, section->source, "$.train.across",
            "has momentum, lr, fragments or rule, which are for averages: give \"every\", "
            "or leave them out");
    if (train->every == 0) return;
    if (outer && train->across_rule == WEFT_AVERAGE_GOSSIP)
        weft_findings_add(
            findings, section->source, "$.train.across.rule",
            "is \"gossip\", by which nodes never have one average, and momentum and lr "
            "make a step of it: leave them out, or set rule to \"mean\"");
    if (train->fragments > train->every)
        weft_findings_add(findings, section->source, "$.train.across.fragments",
                          "is %lld, and %lld steps between averages have no more: lower it, or "
                          "raise train.across.every",
                          (long long)train->fragments, (long long)train->every);
    if (cluster->ranks <= cluster->ranks_per_node)
        why = "there is one node: set cluster.ranks_per_node to the ranks of a node, below "
              "cluster.ranks";
    else if (cluster->ranks % cluster->ranks_per_node != 0)
        why = "nodes have different numbers of ranks: let cluster.ranks_per_node divide "
              "cluster.ranks";
    else if (train->precision.compute == WEFT_F16)
        why = "f16 repeats a step that overflowed, on one node alone: compute in bf16 or f32";
    else if (weft_config_target(config)->is_foreign)
        why = "the runtime of plan.for steps with all ranks together: set plan.for to \"weft\"";
    else if (weft_config_moves_state(config) || weft_config_moves_parameters(config))
        why = "optimizer state and parameters stay on the device: set plan.offload to "
              "{\"state\": [\"device\"]} (activations may be offloaded)";
    if (why != NULL)
        weft_findings_add(findings, section->source, "$.train.across.every",
                          "is %lld, and %s; or set it to 0", (long long)train->every, why);
}

/* The settings that exclude another order of micro-steps. */
static void check_micro_step_order(const struct weft_section *section,
                                   const struct weft_config *config, struct weft_findings *findings)
{
    const int32_t layers = weft_config_turn_layers(config), n_layers = config->model->n_layers;
    const bool by_planner = config->plan.micro_step_order == WEFT_ORDER_AUTO && !config->kept.turns;
    const char *path = by_planner ? "$.plan.planner" : "$.plan.micro_step_order";
    if (layers == 0) return;
    const char *why = weft_config_refuses_turns(config, config->train.grad_accum);
    if (why != NULL && by_planner)
        weft_findings_add(findings, section->source, path,
                          "%s runs all micro-steps through a group of layers before the next one, "
                          "which is no order here: %s",
                          config->plan.planner, why);
    else if (why != NULL)
        weft_findings_add(findings, section->source, path, "is no order here: %s", why);
    else if (layers >= n_layers && n_layers > 1)
        weft_findings_add(findings, section->source, path,
                          "groups of %d layers leave no second one in a model of %d layers: %s at "
                          "most %d, or %s",
                          layers, n_layers, by_planner ? "take groups of" : "set it to",
                          n_layers - 1,
                          by_planner ? "another planner, such as ilp" : "to \"step\"");
    else if (layers >= n_layers)
        weft_findings_add(findings, section->source, path, "a model of one layer has one order: %s",
                          by_planner ? "take another planner, such as ilp" : "set it to \"step\"");
}

/* The settings that exclude updates in backward. With auto the planner leaves these out. */
static void check_update_in(const struct weft_section *section, const struct weft_config *config,
                            struct weft_findings *findings)
{
    const int64_t asked = config->plan.update_in;
    const char *cure = NULL, *why = weft_config_refuses_backward(config, &cure);
    if (asked == WEFT_UPDATE_IN_FORWARD || asked == WEFT_UPDATE_IN_AUTO) return;
    if (why != NULL)
        weft_findings_add(findings, section->source, "$.plan.update_in",
                          "no unit is updated in backward: %s: set it to \"forward\", or %s", why,
                          cure);
    else if (asked >= config->model->n_layers)
        weft_findings_add(findings, section->source, "$.plan.update_in",
                          "%lld layers after the last backward of a unit leave no layer in a model "
                          "of %d: set it to at most %d, or to \"forward\"",
                          (long long)asked, (int)config->model->n_layers,
                          (int)config->model->n_layers - 1);
}

static bool hides_padding(const struct weft_config *config)
{
    const struct weft_batch batch = weft_config_batch(config);
    return weft_model_hides_padding(config->model, &batch);
}

/* The settings and models that cannot leave out labels. */
static void check_labels(const struct weft_section *section, const struct weft_config *config,
                         struct weft_findings *findings)
{
    const struct weft_train *train = &config->train;
    const struct weft_model *model = config->model;
    const char *key = train->masked.given ? "masked" : "padding", *why = NULL;
    const int64_t token = train->masked.given ? train->masked.token : train->padding.token;
    if (!train->masked.given && !train->padding.given) return;
    const int64_t vocab = model->layers[0].vocab;
    char path[32];
    snprintf(path, sizeof path, "$.train.%s", key);
    const bool classes = weft_model_tells_classes(model);
    const bool mask_hides = train->padding.given && train->masked.given &&
                            train->masked.token == train->padding.token && hides_padding(config);
    if (!weft_model_reads_tokens(model) ||
        (classes && (train->masked.given || !train->padding.hidden)))
        why = "the model must read tokens and predict tokens: begin it with an embedding, end it "
              "with an lm_head, or leave the key out";
    else if (mask_hides)
        why =
            "its token is train.padding's, which attention leaves out: give another token, or set "
            "train.padding.hidden to false";
    else if (classes && !hides_padding(config))
        why = "no attention of the model leaves out padding, and a classifier has no targets with "
              "it: leave the key out";
    else if (train->every > 0 && !classes)
        why = "nodes that step on their own have different numbers of labels: set "
              "train.across.every to 0, or leave the key out";
    if (why != NULL)
        weft_findings_add(findings, section->source, path, "%s", why);
    else if (token >= vocab || (train->padding.given && train->padding.token >= vocab))
        weft_findings_add(findings, section->source, path,
                          "a token of it is outside the vocabulary, 0 to %lld",
                          (long long)vocab - 1);
}

/* Checks that shapes chain and sizes do not overflow, after every single layer passed. */
static void check_model(const struct weft_section *section, struct weft_config *config,
                        const struct weft_layer *layers, int32_t n_layers,
                        struct weft_findings *findings)
{
    struct weft_error error = {0};
    if (weft_model_create(layers, n_layers, &config->model, &error) != WEFT_OK) {
        weft_findings_add(findings, section->source, section->path, "%s", error.text);
        return;
    }
    if (section->hub.section != NULL &&
        weft_hub_model_name_modules(section->written, config->model, &error) != WEFT_OK)
        findings->text.failed = true;
    struct weft_batch batch = weft_config_batch(config);
    int64_t splits[WEFT_MOST_SPLITS];
    const int32_t n_splits = weft_config_splits(config, splits);
    for (int32_t i = 0; i < n_layers * n_splits; i++) {
        struct weft_layer_work work;
        error = (struct weft_error){0};
        batch.samples = splits[i / n_layers];
        if (weft_layer_work(&config->model->layers[i % n_layers], &batch, &work, &error) == WEFT_OK)
            continue;
        weft_findings_add(findings, section->source, section->path, "%s", error.text);
        return;
    }
}

static void resolve_path(struct weft_config *config, const char *directory, const char **path,
                         struct weft_findings *findings)
{
    if (*path == NULL) return;
    *path = weft_path_absolute(&config->pool, directory, *path);
    if (*path != NULL) return;
    findings->text.failed = true;
    findings->count++;
}

/* Adds key `name`, an input of plans, as {"name": value} tokens. */
static void add_key(struct weft_json_writer *writer, const struct weft_field_table *table,
                    const char *name, const void *target)
{
    weft_field_encode_key(weft_field_find(table, name), target, writer);
}

/* Attention in 16 bits on a GPU needs other memory then. */
static bool hides_on_gpu(const struct weft_config *config)
{
    return config->cluster.device.type == WEFT_DEVICE_CUDA &&
           config->train.precision.compute != WEFT_F32 && hides_padding(config);
}

enum weft_status weft_config_hash_inputs(struct weft_config *config, struct weft_error *err)
{
    static const char *const cluster_keys[] = {"ranks", "ranks_per_node", "memory_limit", "page",
                                               "channels"};
    static const char *const train_keys[] = {"micro_batch", "grad_accum", "seq_len", "precision"};
    struct weft_train train = config->train;
    static const char *const plan_keys[] = {"blocks", "block_size", "block_efficiency", "fuse"};
    struct weft_text text;
    struct weft_json_writer writer;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    /* A batch with its micro-batch is the same as a micro-batch with its micro-steps. */
    if (train.asked.micro_batch > 0) train.asked.grad_accum = train.grad_accum;
    weft_json_begin_object(&writer);
    weft_kinds_encode(config->model, &writer);
    weft_json_key(&writer, "layers");
    weft_layers_encode(config->model, &writer);
    for (size_t i = 0; i < sizeof cluster_keys / sizeof *cluster_keys; i++) {
        add_key(&writer, &weft_cluster_table, cluster_keys[i], &config->cluster);
    }
    for (size_t i = 0; i < sizeof train_keys / sizeof *train_keys; i++) {
        add_key(&writer, &weft_train_table, train_keys[i], &train);
    }
    if (train.asked.micro_batch == 0) add_key(&writer, &weft_train_table, "batch", &train);
    if (config->plan.target != WEFT_FOR_WEFT)
        add_key(&writer, &weft_plan_table, "for", &config->plan);
    if (config->plan.target != WEFT_FOR_WEFT && config->train.optimizer.loop != WEFT_LOOP_FOREACH)
        weft_json_put_integer(&writer, "loop", config->train.optimizer.loop);
    if (config->cluster.reduce_copies) weft_json_put_bool(&writer, "reduce_copies", true);
    if (config->cluster.pools) weft_json_put_bool(&writer, "pools", true);
    if (config->plan.prefetch) weft_json_put_bool(&writer, "prefetch", true);
    if (config->plan.ahead != 0) weft_json_put_integer(&writer, "ahead", config->plan.ahead);
    if (config->plan.block_scale != WEFT_BLOCKS_USUAL)
        add_key(&writer, &weft_plan_table, "block_scale", &config->plan);
    weft_json_put_integer(&writer, "optimizer", config->train.optimizer.type);
    if (weft_optimizer_row(config->train.optimizer.type)->has_momentum)
        weft_json_put_integer(&writer, "moments", weft_config_moments(config));
    if (config->train.checkpoint.host > 0) weft_json_put_bool(&writer, "keeps_checkpoints", true);
    /* Without a new key, hashes of older plans stay valid. */
    if (config->cluster.device.type != WEFT_DEVICE_CPU)
        weft_json_put_string(&writer, "device",
                             weft_device_name((enum weft_device_type)config->cluster.device.type));
    /* Attention of f32 or on a CPU saves probabilities with any products. */
    if (config->plain && config->cluster.device.type == WEFT_DEVICE_CUDA &&
        config->train.precision.compute != WEFT_F32)
        weft_json_put_bool(&writer, "plain", true);
    if (hides_on_gpu(config)) weft_json_put_bool(&writer, "hides_padding", true);
    for (size_t i = 0; i < sizeof plan_keys / sizeof *plan_keys; i++) {
        add_key(&writer, &weft_plan_table, plan_keys[i], &config->plan);
    }
    weft_json_end_object(&writer);
    config->hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    bool ok = weft_text_ok(&text);
    weft_text_finish(&text);
    return ok ? WEFT_OK : weft_fail_memory(err, "the config's hash");
}

enum weft_status weft_config_set_memory_limit(struct weft_config *config, int64_t bytes,
                                              struct weft_error *err)
{
    config->cluster.memory_limit_bytes = bytes;
    return weft_config_hash_inputs(config, err);
}

enum weft_status weft_config_set_plain(struct weft_config *config, bool plain,
                                       struct weft_error *err)
{
    config->plain = plain;
    return weft_config_hash_inputs(config, err);
}

/* Whether an override sets the key. */
static bool is_set(const struct weft_config_input *input, const char *key)
{
    const size_t length = strlen(key);
    for (int32_t i = 0; i < input->n_overrides; i++)
        if (strncmp(input->overrides[i], key, length) == 0 && input->overrides[i][length] == '=')
            return true;
    return false;
}

static void add_file(struct weft_findings *findings, const struct weft_section *section)
{
    if (section->written == NULL) return;
    findings->files[findings->n_files++] = (struct weft_findings_file){
        section->source, section->written, section->hub.renames, section->hub.n_renames};
}

/* Keeps the notes of a converted model, and refuses sequences longer than its window. */
static void take_hub(const struct weft_section *section, struct weft_config *config,
                     struct weft_findings *findings)
{
    const struct weft_hub_model *hub = &section->hub;
    config->notes = hub->notes != NULL ? hub->notes : "";
    if (hub->window == 0 || config->train.seq_len <= hub->window) return;
    weft_findings_add(
        findings, section->source, hub->window_path,
        "is %lld, and train.seq_len is %lld: the block of this family has no window. Take "
        "sequences of at most %lld tokens, or a model without a window",
        (long long)hub->window, (long long)config->train.seq_len, (long long)hub->window);
}

static enum weft_status decode_sections(const struct weft_sections *sections,
                                        const struct weft_config_input *input,
                                        struct weft_config *config, struct weft_error *err)
{
    const char *directory = input->directory;
    struct weft_findings findings;
    struct weft_run run = {0};
    struct weft_layer *layers = NULL;
    int32_t n_layers = 0;
    weft_findings_init(&findings);
    findings.overrides = input->overrides;
    findings.n_overrides = input->n_overrides;
    add_file(&findings, &sections->run);
    add_file(&findings, &sections->model);
    add_file(&findings, &sections->cluster);
    weft_field_decode(&weft_run_table, sections->run.root, sections->run.source, "$", &config->pool,
                      &run, &findings);
    config->train = run.train;
    config->plan = run.plan;
    config->limit_given = is_set(input, "cluster.memory_limit");
    config->split_given = is_set(input, "train.batch") || is_set(input, "train.micro_batch") ||
                          is_set(input, "train.grad_accum");
    config->order_given = is_set(input, "train.reduce") || is_set(input, "train.group");
    config->kinds = input->kinds;
    check_train(&sections->run, &config->train, &findings);
    if (sections->cluster.root != NULL) {
        weft_field_decode(&weft_cluster_table, sections->cluster.root, sections->cluster.source,
                          sections->cluster.path, &config->pool, &config->cluster, &findings);
        check_cluster(&sections->cluster, config, &findings);
    }
    if (sections->model.root != NULL) {
        weft_layers_decode(&sections->model, input->kinds, &config->pool, &layers, &n_layers,
                           &findings);
    }
    take_hub(&sections->model, config, &findings);
    weft_config_check_tiers(&sections->run, &sections->cluster, config, &findings);
    check_delay(&sections->run, config, &findings);
    if (findings.count == 0) check_across(&sections->run, config, &findings);
    resolve_path(config, directory, &config->cluster.profile, &findings);
    resolve_path(config, directory, &config->cluster.disk.path, &findings);
    resolve_path(config, directory, &config->train.data, &findings);
    resolve_path(config, directory, &config->train.validation.data, &findings);
    if (findings.count == 0) weft_config_take_batch(config, &findings);
    if (findings.count == 0) {
        convert_batches(&sections->run, config, &findings);
        check_model(&sections->model, config, layers, n_layers, &findings);
    }
    if (findings.count == 0 && config->model != NULL)
        check_labels(&sections->run, config, &findings);
    if (findings.count == 0 && config->model != NULL)
        check_micro_step_order(&sections->run, config, &findings);
    if (findings.count == 0 && config->model != NULL)
        check_update_in(&sections->run, config, &findings);
    if (findings.count == 0) weft_config_take_recompute(config, &findings);
    enum weft_status status = weft_findings_status(&findings, err);
    weft_findings_finish(&findings);
    return status == WEFT_OK ? weft_config_hash_inputs(config, err) : status;
}

/* Configs of other programs, recognised by keys that Weft does not have. */
static const struct foreign_config {
    const char *keys[4]; /* any of these keys; NULL at the end */
    const char *text;
} foreign_configs[] = {
    {{"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", NULL},
     "looks like DeepSpeed's config. Weft plans what zero_optimization sets by hand. Begin with a "
     "config of Weft's (`weft estimate gpt2` reads a shipped one) and set train.micro_batch to "
     "train_micro_batch_size_per_gpu"},
    {{"model_type", "architectures", "transformers_version", NULL},
     "looks like a Hugging Face model's config, which has no cluster and no training. Give it to a "
     "config of Weft's as its model: `weft estimate gpt2 --model FILE` reads a shipped config"},
    {{"fsdp_config", "mixed_precision", "distributed_type", "deepspeed_config"},
     "looks like Accelerate's config. Begin with a config of Weft's (`weft estimate gpt2` reads a "
     "shipped one)"},
};

static bool has_key(const struct weft_section *run, const struct foreign_config *foreign)
{
    for (size_t i = 0; i < sizeof foreign->keys / sizeof *foreign->keys; i++)
        if (foreign->keys[i] != NULL && weft_json_member(run->root, foreign->keys[i]) != NULL)
            return true;
    return false;
}

/* A run or model file of another program gets one error; otherwise every key would be a finding. */
static enum weft_status refuse_foreign(const struct weft_section *section, struct weft_error *err)
{
    static const char *const own[] = {"model", "cluster", "train", "layers"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (weft_json_member(section->root, own[i]) != NULL) return WEFT_OK;
    for (size_t i = 0; i < sizeof foreign_configs / sizeof *foreign_configs; i++)
        if (has_key(section, &foreign_configs[i]))
            return weft_fail(err, WEFT_E_DATA, "%s: %s", section->source, foreign_configs[i].text);
    return WEFT_OK;
}

static enum weft_status refuse_model_alone(const struct weft_section *run, struct weft_error *err)
{
    const bool is_run = weft_json_member(run->root, "model") != NULL ||
                        weft_json_member(run->root, "train") != NULL;
    if (!is_run && weft_json_member(run->root, "layers") != NULL)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: is a model alone. A run names it: {\"model\": \"%s\", \"cluster\": "
                         "..., \"train\": ...}",
                         run->source, run->source);
    return WEFT_OK;
}

/* A file that weft wrote, with none of a config's keys, gets one error too. */
static enum weft_status refuse_other_files(const struct weft_section *run, struct weft_error *err)
{
    const char *format;
    if (!weft_json_string(weft_json_member(run->root, "format"), &format) ||
        strncmp(format, "weft-", 5) != 0)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: is a file of format \"%.64s\", and no config",
                     run->source, format);
}

static enum weft_status load_config(const struct weft_config_input *input, struct weft_config **out,
                                    struct weft_error *err)
{
    struct weft_sections sections = {0};
    enum weft_status status;
    struct weft_config *config = calloc(1, sizeof *config);
    if (config == NULL) return weft_fail_memory(err, "a config");
    config->source = weft_pool_string(&config->pool, input->source);
    if (config->source == NULL) {
        status = weft_fail_memory(err, "a config");
        goto done;
    }
    WEFT_TRY_GOTO(done, weft_sections_load(input, &config->pool, &sections, err));
    WEFT_TRY_GOTO(done, refuse_other_files(&sections.run, err));
    WEFT_TRY_GOTO(done, refuse_model_alone(&sections.run, err));
    WEFT_TRY_GOTO(done, refuse_foreign(&sections.run, err));
    WEFT_TRY_GOTO(done, refuse_foreign(&sections.model, err));
    WEFT_TRY_GOTO(done, decode_sections(&sections, input, config, err));
    *out = config;
    config = NULL;
done:
    weft_sections_finish(&sections);
    weft_config_destroy(config);
    return status;
}

enum weft_status weft_config_load(const struct weft_config_input *input, struct weft_config **out,
                                  struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 30;
    struct weft_config_input file = *input;
    struct weft_pool pool = {0};
    char *bytes = NULL;
    enum weft_status status;
    if (input->bytes != NULL) return load_config(input, out, err);
    const char *path = input->source, *slash = strrchr(path, '/');
    /* "/run.json" is in "/", "run.json" in ".", "a/run.json" in "a". */
    int kept = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
    file.directory = weft_pool_format(&pool, "%.*s", kept, path);
    if (file.directory == NULL) return weft_fail_memory(err, "a config");
    WEFT_TRY_GOTO(done, weft_file_read(path, most_bytes, &bytes, &file.length, err));
    file.bytes = bytes;
    WEFT_TRY_GOTO(done, load_config(&file, out, err));
done:
    free(bytes);
    weft_pool_finish(&pool);
    return status;
}

enum weft_status weft_config_parse(const char *bytes, size_t length, const char *source,
                                   const char *directory, const char *const *overrides,
                                   int32_t n_overrides, struct weft_config **out,
                                   struct weft_error *err)
{
    const struct weft_config_input input = {.bytes = bytes,
                                            .length = length,
                                            .source = source,
                                            .directory = directory,
                                            .overrides = overrides,
                                            .n_overrides = n_overrides};
    return weft_config_load(&input, out, err);
}

enum weft_status weft_config_read(const char *path, const char *const *overrides,
                                  int32_t n_overrides, struct weft_config **out,
                                  struct weft_error *err)
{
    const struct weft_config_input input = {
        .source = path, .overrides = overrides, .n_overrides = n_overrides};
    return weft_config_load(&input, out, err);
}

void weft_config_destroy(struct weft_config *config)
{
    if (config == NULL) return;
    weft_model_destroy(config->model);
    weft_pool_finish(&config->pool);
    free(config);
}

void weft_config_write(const struct weft_config *config, struct weft_text *out)
{
    struct weft_json_writer writer;
    struct weft_cluster cluster = config->cluster;
    /* All ranks stay in one node, also if the config is read for another number of ranks. */
    if (cluster.ranks_per_node == cluster.ranks) cluster.ranks_per_node = 0;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "version", 1);
    weft_json_key(&writer, "model");
    weft_json_begin_object(&writer);
    weft_kinds_encode(config->model, &writer);
    weft_json_key(&writer, "layers");
    weft_layers_encode(config->model, &writer);
    weft_json_end_object(&writer);
    weft_json_key(&writer, "cluster");
    weft_field_encode(&weft_cluster_table, &cluster, &writer);
    weft_json_key(&writer, "train");
    weft_field_encode(&weft_train_table, &config->train, &writer);
    weft_json_key(&writer, "plan");
    weft_field_encode(&weft_plan_table, &config->plan, &writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

struct weft_batch weft_config_batch(const struct weft_config *config)
{
    return (struct weft_batch){
        .samples = config->train.micro_batch,
        .seq_len = config->train.seq_len,
        .compute = (enum weft_dtype)config->train.precision.compute,
        .on_gpu = config->cluster.device.type == WEFT_DEVICE_CUDA,
        .plain = config->plain && config->cluster.device.type == WEFT_DEVICE_CUDA,
        .hides = config->train.padding.given && config->train.padding.hidden,
        .padding = (int32_t)config->train.padding.token,
    };
}

int32_t weft_config_moments(const struct weft_config *config)
{
    const struct weft_optimizer_row *row = weft_optimizer_row(config->train.optimizer.type);
    return row->has_momentum && !(config->train.optimizer.momentum > 0) ? 0 : row->moments;
}

bool weft_config_means(const struct weft_config *config)
{
    return weft_optimizer_row(config->train.optimizer.type)->has_means;
}

uint32_t weft_config_states(const struct weft_config *config)
{
    const int32_t moments = weft_config_moments(config);
    return 1u << WEFT_STATE_PARAMETER | (uint32_t)(moments >= 1) << WEFT_STATE_MOMENT1 |
           (uint32_t)(moments >= 2) << WEFT_STATE_MOMENT2 |
           (uint32_t)(config->train.delay > 0) << WEFT_STATE_PENDING |
           (uint32_t)weft_config_outer(config) << WEFT_STATE_ANCHOR |
           (uint32_t)weft_config_outer(config) << WEFT_STATE_OUTER |
           (uint32_t)weft_config_means(config) << WEFT_STATE_MEAN2;
}

bool weft_config_emulates(const struct weft_config *config)
{
    return config->cluster.emulate_link && config->cluster.ranks > 1;
}

int64_t weft_cluster_timeout_ns(const struct weft_cluster *cluster)
{
    return cluster->timeout_ns > 0 ? cluster->timeout_ns : 10 * INT64_C(60000000000);
}

const char *weft_config_updates(const struct weft_config *config)
{
    const struct weft_optimizer_row *row = weft_optimizer_row(config->train.optimizer.type);
    const bool momentum = row->has_momentum && weft_config_moments(config) > 0;
    return momentum ? "sgd with momentum" : row->name;
}
