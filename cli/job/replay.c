/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for memfd_create */
#include "cli/job/replay.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "cli/job/hosts.h"
#include "cli/job/job.h"
#include "library/mappings.h"
#include "library/run_mark.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/train/data.h"
#include "runtime/train/dump/dump.h"
#include "runtime/train/train.h"
#include "spec/config_batch.h"

/* A rule plans at once; if its plan does not fit, the run's planner makes one. */
static const char quick_planner[] = "fsdp2";

static struct weft_stop replay_stop;

static enum weft_status read_run(struct weft_replay *r, struct weft_error *err)
{
    struct weft_text path;
    bool marked = false;
    const int n = snprintf(r->from.own_config, sizeof r->from.own_config, "%s/config.json", r->run);
    if (n < 0 || (size_t)n >= sizeof r->from.own_config)
        return weft_fail(err, WEFT_E_USAGE, "%.60s...: the path of the run's directory is too long",
                         r->run);
    WEFT_TRY(weft_run_mark_look(r->run, &marked, err));
    if (!marked || access(r->from.own_config, F_OK) != 0)
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: no run has begun there: give the directory of a run, with its "
                         "config.json and metrics.jsonl",
                         r->run);
    snprintf(r->from.directory, sizeof r->from.directory, "%s", r->run);
    snprintf(r->checkpoints, sizeof r->checkpoints, "%s/checkpoints", r->run);
    r->from.config = r->from.own_config;
    r->from.own = true;
    WEFT_TRY(weft_checkpoint_scan(r->checkpoints, &r->kept, &r->n_kept, err));
    weft_text_init(&path);
    weft_text_addf(&path, "%s/metrics.jsonl", r->run);
    enum weft_status status = weft_text_ok(&path)
                                  ? weft_recorded_read(weft_text_chars(&path), &r->recorded, err)
                                  : weft_fail_memory(err, "a path");
    weft_text_finish(&path);
    return status;
}

enum weft_status weft_replay_open(const struct weft_cli *cli, struct weft_replay *out,
                                  struct weft_error *err)
{
    *out = (struct weft_replay){.cli = cli, .run = cli->operands[0]};
    return read_run(out, err);
}

void weft_replay_close(struct weft_replay *replay)
{
    weft_session_close(&replay->session);
    free(replay->kept);
    weft_recorded_finish(&replay->recorded);
}

enum weft_status weft_replay_reach(const struct weft_replay *replay, int64_t first, int64_t *from,
                                   struct weft_error *err)
{
    int32_t before = 0;
    while (before < replay->n_kept && replay->kept[before] < first)
        before++;
    *from = before > 0 ? replay->kept[before - 1] : 0;
    /* A run that began with another run's checkpoint has no first parameters of its own. */
    if (before > 0 || replay->recorded.first == 1) return WEFT_OK;
    struct weft_text kept;
    weft_text_init(&kept);
    for (int32_t i = 0; i < replay->n_kept; i++)
        weft_text_addf(&kept, "%s%lld", i > 0 ? ", " : "", (long long)replay->kept[i]);
    enum weft_status status = weft_fail(
        err, WEFT_E_NO_INPUT,
        "%s: no kept checkpoint reaches step %lld, and the run's first step is %lld. Kept: %s. "
        "Replay steps after one of them; train.checkpoint.keep and keep_every keep more",
        replay->run, (long long)first, (long long)replay->recorded.first,
        replay->n_kept > 0 ? weft_text_chars(&kept) : "none");
    weft_text_finish(&kept);
    return status;
}

enum weft_status weft_replay_kept(const struct weft_replay *replay, int64_t step,
                                  struct weft_checkpoint **out, struct weft_error *err)
{
    struct weft_text path;
    weft_text_init(&path);
    weft_checkpoint_path(replay->checkpoints, step, &path);
    enum weft_status status = weft_text_ok(&path)
                                  ? weft_checkpoint_open(weft_text_chars(&path), out, err)
                                  : weft_fail_memory(err, "a path");
    weft_text_finish(&path);
    return status;
}

/* Settings of a step belong to the run. */
static enum weft_status check_overrides(const struct weft_cli *cli, struct weft_error *err)
{
    for (int32_t i = 0; i < cli->n_overrides; i++) {
        const char *path = cli->overrides[i];
        const bool moves = strncmp(path, "train.data=", 11) == 0 ||
                           strncmp(path, "train.validation.data=", 22) == 0;
        if (!moves && (strncmp(path, "train", 5) == 0 || strncmp(path, "model", 5) == 0))
            return weft_fail(
                err, WEFT_E_USAGE,
                "--set %s: a replay has the run's training; only cluster, plan and the "
                "paths of data can be set",
                path);
    }
    return WEFT_OK;
}

/* Reads a JSON file of the run, if it is there; *out NULL: it is not. WEFT_E_DATA names a damaged
 * one, and the reason why a replay needs it. */
static enum weft_status read_file(const struct weft_replay *r, const char *name,
                                  const char *needed_for, struct weft_json **out,
                                  struct weft_error *err)
{
    struct weft_text path;
    struct weft_error why = {0};
    enum weft_status status = WEFT_OK;
    *out = NULL;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/%s", r->run, name);
    if (!weft_text_ok(&path))
        status = weft_fail_memory(err, "a path");
    else if (access(weft_text_chars(&path), F_OK) == 0 &&
             weft_json_read(weft_text_chars(&path), out, &why) != WEFT_OK)
        status = weft_fail(err, WEFT_E_DATA, "%s. Without checkpoints it alone says %s", why.text,
                           needed_for);
    weft_text_finish(&path);
    return status;
}

/* The origin of a run without checkpoints is in its result alone. */
static enum weft_status read_result(struct weft_replay *r, struct weft_error *err)
{
    static const char needed_for[] = "with which parameters the run began";
    struct weft_json *document = NULL;
    const char *path = NULL;
    WEFT_TRY(read_file(r, "result.json", needed_for, &document, err));
    const struct weft_json_value *origin =
        document == NULL ? NULL : weft_json_member(weft_json_root(document), "origin");
    const bool is_whole =
        origin == NULL || (weft_json_string(weft_json_member(origin, "path"), &path) && *path);
    if (path != NULL) snprintf(r->origin, sizeof r->origin, "%s", path);
    weft_json_destroy(document);
    if (is_whole) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s/result.json: its origin has no path. Without checkpoints it alone says %s",
                     r->run, needed_for);
}

static bool asks_order(const struct weft_cli *cli)
{
    for (int32_t i = 0; i < cli->n_overrides; i++)
        if (strncmp(cli->overrides[i], "plan.micro_step_order=", 22) == 0) return true;
    return false;
}

/* Without checkpoints the run's plan alone says by how many layers micro-steps took turns. Bits
 * depend on that if the model ties a tensor. */
static enum weft_status read_turns(const struct weft_replay *r, const struct weft_config *config,
                                   struct weft_manifest_split *split, struct weft_error *err)
{
    static const char needed_for[] = "in which order micro-steps ran, on which the terms of a tied "
                                     "tensor depend (plan.micro_step_order)";
    struct weft_json *document = NULL;
    if (r->n_kept > 0 || !weft_model_ties(config->model) ||
        (!weft_config_opens_turns(config) && !asks_order(r->cli)))
        return WEFT_OK;
    WEFT_TRY(read_file(r, "plan.json", needed_for, &document, err));
    const struct weft_json_value *period =
        document == NULL
            ? NULL
            : weft_json_member(weft_json_member(weft_json_root(document), "problem"), "period");
    const struct weft_json_value *layers =
        period == NULL ? NULL : weft_json_member(period, "layers");
    const char *damage = NULL;
    if (document == NULL)
        damage = "is missing";
    else if (period == NULL || weft_json_kind(period) != WEFT_JSON_OBJECT)
        damage = "has no period of a plan";
    else if (layers != NULL && (!weft_json_integer(layers, &split->layers) || split->layers < 0))
        damage = "has a period with a wrong number of layers";
    const enum weft_status status = document == NULL ? WEFT_E_NO_INPUT : WEFT_E_DATA;
    weft_json_destroy(document);
    if (damage == NULL) return WEFT_OK;
    return weft_fail(err, status, "%s/plan.json: %s. Without checkpoints it alone says %s", r->run,
                     damage, needed_for);
}

/* Reads the order of sums and the origin. All checkpoints of a run have equal ones. A run without a
 * checkpoint has no known order yet. */
static enum weft_status read_order(struct weft_replay *r, struct weft_manifest_split *split,
                                   struct weft_error *err)
{
    struct weft_checkpoint *checkpoint = NULL;
    *split = (struct weft_manifest_split){0};
    if (r->n_kept == 0) return read_result(r, err);
    WEFT_TRY(weft_replay_kept(r, r->kept[r->n_kept - 1], &checkpoint, err));
    *split = checkpoint->manifest->split;
    snprintf(r->origin, sizeof r->origin, "%s", checkpoint->manifest->origin.path);
    weft_checkpoint_close(checkpoint);
    return WEFT_OK;
}

/* Sums keep their order on any ranks. Otherwise the first step would differ already. */
static enum weft_status keep_order(const struct weft_replay *r,
                                   const struct weft_manifest_split *split,
                                   struct weft_config *config, int64_t own_ranks,
                                   struct weft_error *err)
{
    const int64_t ranks = config->cluster.ranks;
    enum weft_order_kept kept;
    if (!weft_config_keep_turns(config, split->layers))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: micro-steps took turns by %lld layers, and the model has %d: the "
                         "run's files are damaged",
                         r->run, (long long)split->layers, config->model->n_layers);
    if (split->micro_batch > 0 && split->ranks > 0) {
        const struct weft_order order = {split->ranks, split->micro_batch, split->micro_steps,
                                         split->group, split->idle,        split->bundle,
                                         split->layers};
        const int64_t groups = weft_order_groups(&order);
        WEFT_TRY(weft_config_keep_order(config, &order, &kept, err));
        if (kept == WEFT_ORDER_KEPT) return WEFT_OK;
        if (kept == WEFT_ORDER_TIED && weft_replay_is_of_one(r->cli))
            return weft_fail(err, WEFT_E_USAGE,
                             "--groups and --dump: the model ties a tensor, and micro-steps by "
                             "layer add up its terms in the order of %lld ranks, which one rank "
                             "cannot replay: leave them out",
                             (long long)split->ranks);
        if (kept == WEFT_ORDER_TIED)
            return weft_fail(err, WEFT_E_USAGE,
                             "the model ties a tensor, and micro-steps by layer add up its terms "
                             "in the order of %lld ranks alone: replay with %lld ranks (-n %lld)",
                             (long long)split->ranks, (long long)split->ranks,
                             (long long)split->ranks);
        return weft_fail(err, WEFT_E_USAGE,
                         "%lld ranks cannot keep the order in which the run summed its %lld groups "
                         "of a step: replay with at most %lld ranks (-n), on nodes of the run's "
                         "size",
                         (long long)ranks, (long long)groups, (long long)groups);
    }
    if (ranks != own_ranks)
        return weft_fail(err, WEFT_E_USAGE,
                         "-n %lld: no kept checkpoint says in which groups the run's %lld ranks "
                         "summed: replay with as many ranks",
                         (long long)ranks, (long long)own_ranks);
    if (split->micro_batch == 0 || weft_config_keep_split(config, split->micro_batch, split->group))
        return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: micro-batches of %lld samples do not divide the run's batch",
                     r->checkpoints, (long long)split->micro_batch);
}

/* An order that the user asks for may add up a tied tensor in another order than the run did. */
static enum weft_status check_turns(const struct weft_replay *r,
                                    const struct weft_manifest_split *split,
                                    const struct weft_config *config, struct weft_error *err)
{
    const int64_t layers = weft_config_turn_layers(config);
    if (!asks_order(r->cli) || split->micro_steps == 1 ||
        weft_model_ties_alike(config->model, split->layers, layers))
        return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "--set plan.micro_step_order: the model ties a tensor, and the run added up "
                     "its terms in another order: leave it out");
}

static enum weft_status read_config(struct weft_replay *r, struct weft_error *err)
{
    const struct weft_cli *cli = r->cli;
    struct weft_config *own = NULL;
    struct weft_manifest_split split;
    const struct weft_config_input input = {.source = r->from.own_config, .kinds = cli->kinds};
    WEFT_TRY(check_overrides(cli, err));
    WEFT_TRY(read_order(r, &split, err));
    WEFT_TRY(weft_config_load(&input, &own, err));
    const int64_t own_ranks = own->cluster.ranks, steps = own->train.steps;
    weft_config_destroy(own);
    if (r->recorded.last > steps)
        return weft_fail(err, WEFT_E_DATA,
                         "%s/metrics.jsonl: has a line of step %lld, and the run's train.steps is "
                         "%lld: remove that line, if the file was damaged",
                         r->run, (long long)r->recorded.last, (long long)steps);
    WEFT_TRY(weft_cli_read_config(cli, r->from.config, &r->session, err));
    struct weft_config *config = r->session.config;
    if (cli->dump != NULL) WEFT_TRY(weft_dump_check(config->model, cli->dump, err));
    if (weft_replay_is_of_one(cli) && config->cluster.ranks != 1)
        return weft_fail(
            err, WEFT_E_USAGE,
            "--groups and --dump: one rank computes all groups of a step, one after the other: "
            "leave out -n %lld",
            (long long)config->cluster.ranks);
    WEFT_TRY(read_turns(r, config, &split, err));
    WEFT_TRY(keep_order(r, &split, config, own_ranks, err));
    WEFT_TRY(check_turns(r, &split, config, err));
    /* Another limit or planner has the run's times. Another number of ranks has not. */
    r->from.same_times = config->cluster.ranks == own_ranks && cli->profile == NULL;
    r->from.same_plan = r->from.same_times && cli->n_overrides == 0;
    WEFT_TRY(weft_train_check(config, err));
    return weft_job_check(config, err);
}

static enum weft_status make_plan(struct weft_replay *r, struct weft_error *err)
{
    const struct weft_cli *cli = r->cli;
    struct weft_session *session = &r->session;
    struct weft_error why = {0};
    if (cli->plan != NULL) return weft_session_load(session, cli->plan, err);
    if (r->from.same_plan) return weft_resume_plan(&r->from, session, err);
    if (cli->planner != NULL) return weft_session_plan(session, NULL, err);
    const enum weft_status status = weft_session_plan(session, quick_planner, &why);
    if (status == WEFT_OK) return status;
    if (status != WEFT_E_INFEASIBLE && status != WEFT_E_DATA)
        return weft_fail_again(err, &why, "%s", why.text);
    weft_log(WEFT_LOG_INFO, "planning by %s, since %s has no plan: %s",
             session->config->plan.planner, quick_planner, why.text);
    return weft_session_plan(session, NULL, err);
}

enum weft_status weft_replay_plan(struct weft_replay *r, struct weft_error *err)
{
    struct weft_session *session = &r->session;
    struct weft_profile *profile = NULL;
    WEFT_TRY(read_config(r, err));
    WEFT_TRY(weft_resume_profile(&r->from, session->config->cluster.ranks, &profile, err));
    if (profile == NULL && weft_session_must_measure(session)) {
        if (r->cli->plan != NULL) return weft_cli_refuse_plan(r->cli->plan, r->from.config, err);
        WEFT_TRY(weft_cli_measure(session, &profile, err));
    }
    WEFT_TRY(weft_session_stage(session, profile, err));
    WEFT_TRY(make_plan(r, err));
    const int64_t mapped = weft_hosts_are_ours() ? 1 : session->config->cluster.ranks;
    return weft_session_fit_mappings(session, mapped, r->cli->plan == NULL, err);
}

/* Steps */

static enum weft_status run_job(const struct weft_job *job, struct weft_replay_outcome *out,
                                struct weft_recorded *again, struct weft_error *err)
{
    struct weft_text text;
    struct weft_train_result result = {0};
    weft_text_init(&text);
    enum weft_status status = weft_job_run(job, &text, err);
    if (status == WEFT_OK) status = weft_job_read_result(&text, &result, err);
    if (status == WEFT_OK && result.stopped)
        status = weft_fail(err, WEFT_E_STOPPED, "stopped by a signal after step %lld of %lld",
                           (long long)result.steps_done, (long long)job->replay_to);
    if (status == WEFT_OK) status = weft_recorded_read(job->metrics, again, err);
    out->parameters = result.fingerprint;
    weft_text_finish(&text);
    return status;
}

/* The names on which the bits of the segment depend (runtime/train/bits.h): kept by the first
 * checkpoint after its start, which the same machine saved, or otherwise by the one at its start.
 * NULL: not known. */
static enum weft_status find_bits(const struct weft_replay *r, int64_t from, char **out,
                                  struct weft_error *err)
{
    struct weft_checkpoint *checkpoint = NULL;
    int32_t i = 0;
    while (i < r->n_kept && r->kept[i] <= from)
        i++;
    if (i == r->n_kept) i--;
    if (i < 0) return WEFT_OK;
    WEFT_TRY(weft_replay_kept(r, r->kept[i], &checkpoint, err));
    const char *bits = checkpoint->manifest->bits;
    *out = bits == NULL ? NULL : strdup(bits);
    const bool failed = bits != NULL && *out == NULL;
    weft_checkpoint_close(checkpoint);
    return failed ? weft_fail_memory(err, "a manifest's bits") : WEFT_OK;
}

/* Facts of the kept checkpoints about a segment's steps. */
struct replayed_past {
    char data[WEFT_HASH_TEXT_BYTES]; /* hash of the data that it read; "": not known */
    int64_t read_to;                 /* the last step that surely read them */
    int64_t before;                  /* step of the kept checkpoint before; 0: none */
};

/* Adds a checkpoint after the segment's start. A run may be resumed with other data. */
static enum weft_status add_past(const struct weft_replay *r, const char *settings, int64_t step,
                                 const struct weft_replay_segment *segment,
                                 struct replayed_past *past, struct weft_replay_outcome *out,
                                 struct weft_error *err)
{
    struct weft_checkpoint *checkpoint = NULL;
    char data[WEFT_HASH_TEXT_BYTES];
    WEFT_TRY(weft_replay_kept(r, step, &checkpoint, err));
    weft_hash_show(checkpoint->manifest->progress.data, data);
    if (strcmp(settings, checkpoint->manifest->settings) != 0) out->other_settings = true;
    /* The steps since a checkpoint that is not kept may have read other data. */
    if (checkpoint->manifest->previous.step != past->before) out->unknown_data = true;
    weft_checkpoint_close(checkpoint);
    past->before = step;
    if (past->data[0] != '\0' && strcmp(past->data, data) != 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: read other data after step %lld than before, so steps %lld to %lld "
                         "cannot be replayed at once. Replay steps up to %lld, or after it "
                         "(--steps), each with its data (--set train.data=PATH)",
                         r->run, (long long)past->read_to, (long long)segment->first,
                         (long long)segment->last, (long long)past->read_to);
    strcpy(past->data, data);
    past->read_to = step;
    return WEFT_OK;
}

/* Learns from the kept checkpoints which data the run read in the steps of a segment. Without one
 * after its start the checkpoint at the start tells it. */
static enum weft_status find_past(const struct weft_replay *r,
                                  const struct weft_replay_segment *segment,
                                  struct replayed_past *past, struct weft_replay_outcome *out,
                                  struct weft_error *err)
{
    struct weft_pool pool = {0};
    const char *settings = NULL;
    *past = (struct replayed_past){.before = segment->from};
    enum weft_status status = weft_manifest_settings(r->session.config, &pool, &settings, err);
    for (int32_t i = 0; i < r->n_kept && past->before < segment->last && status == WEFT_OK; i++)
        if (r->kept[i] > segment->from)
            status = add_past(r, settings, r->kept[i], segment, past, out, err);
    if (past->before < segment->last) out->unknown_data = true;
    if (status == WEFT_OK && past->data[0] == '\0' && segment->from > 0)
        status = add_past(r, settings, segment->from, segment, past, out, err);
    weft_pool_finish(&pool);
    return status;
}

/* Reads a line of a group; false for other lines. */
static bool read_group(const char *line, size_t length, struct weft_replay_group *out)
{
    struct weft_json *document = NULL;
    const char *kind = NULL;
    if (weft_json_parse(line, length, "groups", &document, NULL) != WEFT_OK) return false;
    const struct weft_json_value *root = weft_json_root(document);
    const bool is_group = weft_json_string(weft_json_member(root, "kind"), &kind) &&
                          strcmp(kind, "group") == 0 &&
                          weft_json_integer(weft_json_member(root, "step"), &out->step) &&
                          weft_json_integer(weft_json_member(root, "group"), &out->group);
    out->loss = out->norm = NAN;
    weft_json_number(weft_json_member(root, "loss"), &out->loss);
    weft_json_number(weft_json_member(root, "norm"), &out->norm);
    weft_json_destroy(document);
    return is_group;
}

static int compare_groups(const void *a, const void *b)
{
    const struct weft_replay_group *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

/* Reads the lines of groups. The session has one rank, so its rounds are the groups. */
static enum weft_status read_groups(const struct weft_replay *r, const char *path,
                                    const struct weft_replay_segment *segment,
                                    struct weft_replay_outcome *out, struct weft_error *err)
{
    const struct weft_config *config = r->session.config;
    const int64_t rounds = weft_period_reductions(&r->session.plan->problem->period);
    const int64_t batch = weft_config_samples(config), most_bytes = INT64_C(1) << 40;
    const size_t room = (size_t)(rounds * (segment->last - segment->from + 1));
    char *bytes = NULL;
    size_t length = 0;
    struct weft_data *data = NULL;
    WEFT_TRY(weft_file_read(path, most_bytes, &bytes, &length, err));
    enum weft_status status = weft_data_open(config, WEFT_DATA_TRAINING, &data, err);
    if (status != WEFT_OK) {
        free(bytes);
        return status;
    }
    out->groups = calloc(room, sizeof *out->groups);
    const char *at = bytes, *last = bytes + length, *end;
    while (out->groups != NULL && at < last && (size_t)out->n_groups < room &&
           (end = memchr(at, '\n', (size_t)(last - at))) != NULL) {
        struct weft_replay_group group;
        if (read_group(at, (size_t)(end - at), &group) && group.step >= segment->first) {
            group.samples = batch / rounds;
            group.first_sample = group.group * group.samples;
            group.place = weft_data_place(data, group.step, group.first_sample);
            out->groups[out->n_groups++] = group;
        }
        at = end + 1;
    }
    weft_data_close(data);
    free(bytes);
    if (out->groups == NULL) return weft_fail_memory(err, "the groups of steps");
    qsort(out->groups, (size_t)out->n_groups, sizeof *out->groups, compare_groups);
    return WEFT_OK;
}

/* The lines of steps go to a memory file that rank 0 inherits. */
static enum weft_status run_steps(const struct weft_replay *r,
                                  const struct weft_replay_segment *segment,
                                  struct weft_replay_outcome *out, struct weft_recorded *again,
                                  struct weft_error *err)
{
    struct weft_text path;
    char metrics[64], *bits = NULL;
    struct replayed_past past;
    WEFT_TRY(find_past(r, segment, &past, out, err));
    WEFT_TRY(find_bits(r, segment->from, &bits, err));
    const int fd = memfd_create("weft-replay", 0);
    if (fd < 0) {
        free(bits);
        return weft_fail(err, WEFT_E_SYSTEM, "a memory file for the steps cannot be made: %s",
                         strerror(errno));
    }
    snprintf(metrics, sizeof metrics, "/proc/self/fd/%d", fd);
    weft_text_init(&path);
    if (segment->from > 0) weft_checkpoint_path(r->checkpoints, segment->from, &path);
    const struct weft_job job = {
        .kind = WEFT_JOB_TRAIN,
        .config = r->session.config,
        .profile = r->session.profile,
        .plan = r->session.plan,
        .poison = r->cli->poison,
        .steps = r->cli->json || r->cli->quiet ? WEFT_STEPS_SILENT : WEFT_STEPS_TEXT,
        .metrics = metrics,
        .resume = segment->from > 0 ? weft_text_chars(&path) : NULL,
        .from = segment->from == 0 && r->origin[0] != '\0' ? r->origin : NULL,
        .kept_fd = fd,
        .replay_to = segment->last,
        .groups = r->cli->groups,
        .dump = r->cli->dump,
        .dump_to = r->cli->into != NULL ? r->cli->into : "weft-dump",
        .replay_from = segment->first,
        .replay_bits = bits,
        .replay_data = past.data[0] != '\0' ? past.data : NULL,
        .watch = r->cli->watch,
        .stop = &replay_stop,
    };
    enum weft_status status =
        weft_text_ok(&path) ? run_job(&job, out, again, err) : weft_fail_memory(err, "a path");
    if (status == WEFT_OK && job.groups) status = read_groups(r, metrics, segment, out, err);
    weft_text_finish(&path);
    close(fd);
    free(bits);
    return status;
}

void weft_replay_outcome_finish(struct weft_replay_outcome *outcome)
{
    free(outcome->groups);
    outcome->groups = NULL;
    weft_text_finish(&outcome->how);
}

static void compare_steps(const struct weft_recorded *recorded, const struct weft_recorded *again,
                          const struct weft_replay_segment *segment,
                          struct weft_replay_outcome *out)
{
    for (int64_t step = segment->first; step <= segment->last && out->differs == 0; step++) {
        const struct weft_recorded_step *a = weft_recorded_find(recorded, step),
                                        *b = weft_recorded_find(again, step);
        if (a == NULL || b == NULL) {
            out->missing++;
            continue;
        }
        out->compared++;
        if (weft_recorded_compare(a, b, "replayed", &out->how) == 0) continue;
        out->differs = step;
        out->rank = weft_recorded_rank(a, b);
    }
}

/* Compares the parameters with those of a checkpoint that the run kept after the same step. */
static enum weft_status compare_end(const struct weft_replay *r, int64_t last,
                                    struct weft_replay_outcome *out, struct weft_error *err)
{
    const struct weft_hash none = {0};
    struct weft_checkpoint *checkpoint = NULL;
    char a[WEFT_HASH_TEXT_BYTES], b[WEFT_HASH_TEXT_BYTES];
    bool kept = false;
    for (int32_t i = 0; i < r->n_kept; i++)
        kept = kept || r->kept[i] == last;
    if (!kept) return WEFT_OK;
    WEFT_TRY(weft_replay_kept(r, last, &checkpoint, err));
    const struct weft_hash saved = checkpoint->manifest->progress.parameters;
    weft_checkpoint_close(checkpoint);
    out->ends = !weft_hash_equal(saved, none);
    if (!out->ends || out->differs > 0 || weft_hash_equal(saved, out->parameters)) return WEFT_OK;
    out->differs = last;
    weft_text_addf(&out->how, "parameters after it %s, replayed %s", weft_hash_show(saved, a),
                   weft_hash_show(out->parameters, b));
    return WEFT_OK;
}

enum weft_status weft_replay_run(struct weft_replay *replay,
                                 const struct weft_replay_segment *segment,
                                 struct weft_replay_outcome *out, struct weft_error *err)
{
    struct weft_recorded again = {0};
    *out = (struct weft_replay_outcome){.rank = -1};
    weft_text_init(&out->how);
    enum weft_status status = run_steps(replay, segment, out, &again, err);
    if (status == WEFT_OK) {
        compare_steps(&replay->recorded, &again, segment, out);
        status = compare_end(replay, segment->last, out, err);
    }
    weft_recorded_finish(&again);
    return status;
}

const char *weft_replay_show_rank(const struct weft_replay_outcome *outcome,
                                  char out[WEFT_REPLAY_RANK_BYTES])
{
    out[0] = '\0';
    if (outcome->rank >= 0)
        snprintf(out, WEFT_REPLAY_RANK_BYTES, ", in a gradient that rank %d computed",
                 (int)outcome->rank);
    return out;
}

const char *weft_replay_show_doubt(const struct weft_replay_outcome *outcome)
{
    if (outcome->other_settings && outcome->unknown_data)
        return "The cause may be other settings of train or other data, with which the run was "
               "resumed. Otherwise";
    if (outcome->other_settings)
        return "The cause may be other settings of train, with which the run was resumed. "
               "Otherwise";
    return outcome->unknown_data ? "The cause may be other data, because no kept checkpoint tells "
                                   "which data the run read in some of the steps. Otherwise"
                                 : "Either";
}
