/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "cli/command.h"
#include "cli/job/hosts.h"
#include "cli/job/rank.h"
#include "cli/job/replay.h"
#include "report/answer.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"

enum { DRAW_STREAM = 0x61756469 }; /* "audi" */

/* Steps between two kept checkpoints, and what their replay found. */
struct part {
    struct weft_replay_segment steps;
    bool drawn;
    struct weft_replay_outcome outcome; /* of a drawn part */
};

/* Links of the kept checkpoints to the ones before them. */
struct chain {
    int32_t whole, broken, gone; /* gone: the one before is not kept */
    int64_t broken_at;           /* step of the first checkpoint with a broken link */
};

struct audit {
    struct weft_replay replay;
    struct part *parts; /* [n] */
    int32_t n;
    struct chain chain;
    struct weft_hash config, data; /* of the text of config.json, and of the training data */
    const char *kernels;           /* of the latest checkpoint; owned */
    double share;                  /* of the steps that are to be drawn, from 0 to 1 */
    int64_t seed;
    int64_t steps, replayed; /* of all parts, and of the drawn ones */
};

static enum weft_status read_flags(const struct weft_cli *cli, struct audit *audit,
                                   struct weft_error *err)
{
    char *end = NULL;
    audit->share = 1;
    if (cli->part != NULL) {
        const double percent = strtod(cli->part, &end);
        if (*cli->part == '\0' || *end != '\0' || !(percent > 0 && percent <= 100))
            return weft_fail(err, WEFT_E_USAGE,
                             "--part %s: percent of the steps to replay, above 0 and at most 100",
                             cli->part);
        audit->share = percent / 100;
    }
    if (cli->draw == NULL) return WEFT_OK;
    audit->seed = strtoll(cli->draw, &end, 10);
    if (cli->draw[0] < '0' || cli->draw[0] > '9' || *end != '\0')
        return weft_fail(err, WEFT_E_USAGE, "--draw %s: a number from 0 on, which draws the parts",
                         cli->draw);
    return WEFT_OK;
}

/* Checks each kept manifest against the hash that the next one has of it. */
static enum weft_status check_chain(struct audit *audit, struct weft_error *err)
{
    const struct weft_replay *r = &audit->replay;
    for (int32_t i = 0; i < r->n_kept; i++) {
        struct weft_checkpoint *checkpoint = NULL;
        struct weft_manifest_link before = {0};
        WEFT_TRY(weft_replay_kept(r, r->kept[i], &checkpoint, err));
        const struct weft_manifest *manifest = checkpoint->manifest;
        const struct weft_manifest_link link = manifest->previous;
        audit->data = manifest->progress.data;
        if (i + 1 == r->n_kept) audit->kernels = strdup(manifest->kernels);
        weft_checkpoint_close(checkpoint);
        if (link.step == 0) continue; /* the first one */
        weft_checkpoint_link(r->checkpoints, link.step, &before);
        if (before.step == 0) {
            audit->chain.gone++;
        } else if (weft_hash_equal(before.text, link.text)) {
            audit->chain.whole++;
        } else if (audit->chain.broken++ == 0) {
            audit->chain.broken_at = r->kept[i];
        }
    }
    return WEFT_OK;
}

static void add_part(struct audit *audit, int64_t from, int64_t last)
{
    if (last <= from) return;
    audit->parts[audit->n++] = (struct part){.steps = {from, from + 1, last}};
    audit->steps += last - from;
}

/* Cuts the recorded steps at the kept checkpoints. */
static enum weft_status cut_parts(struct audit *audit, struct weft_error *err)
{
    const struct weft_replay *r = &audit->replay;
    const int64_t last = r->recorded.last;
    audit->parts = calloc((size_t)r->n_kept + 1, sizeof *audit->parts);
    if (audit->parts == NULL) return weft_fail_memory(err, "the parts of a run");
    /* A run that began with another run's checkpoint has no first parameters of its own. */
    int64_t from = r->recorded.first == 1 ? 0 : -1;
    for (int32_t i = 0; i < r->n_kept && r->kept[i] <= last; i++) {
        if (from >= 0) add_part(audit, from, r->kept[i]);
        from = r->kept[i];
    }
    if (from >= 0) add_part(audit, from, last);
    if (audit->n > 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_NO_INPUT,
                     "%s: no recorded step comes after a kept checkpoint, so nothing can be "
                     "replayed: train.checkpoint.keep and keep_every keep more",
                     r->run);
}

/* Draws parts in an order that the seed gives, until they have the wanted share of the steps. */
static void draw_parts(struct audit *audit)
{
    int32_t left = audit->n;
    for (uint64_t i = 0; left > 0 && (double)audit->replayed < audit->share * (double)audit->steps;
         i++, left--) {
        int64_t skip =
            (int64_t)weft_rng_below((uint64_t)audit->seed, DRAW_STREAM, i, (uint64_t)left);
        int32_t p = 0;
        while (audit->parts[p].drawn || skip-- > 0)
            p++;
        audit->parts[p].drawn = true;
        audit->replayed += audit->parts[p].steps.last - audit->parts[p].steps.from;
    }
}

/* Steps of the run, also steps without a line. */
static int64_t count_recorded(const struct audit *audit)
{
    return audit->replay.recorded.last - audit->replay.recorded.first + 1;
}

static bool has_hashes(const struct audit *audit)
{
    const struct weft_hash none = {0};
    const struct weft_recorded *recorded = &audit->replay.recorded;
    for (int64_t i = 0; i < recorded->n; i++)
        if (!weft_hash_equal(recorded->steps[i].parameters, none)) return true;
    return false;
}

static enum weft_status replay_parts(struct audit *audit, struct weft_error *err)
{
    bool ends = false;
    for (int32_t p = 0; p < audit->n; p++) {
        struct part *part = &audit->parts[p];
        if (!part->drawn) continue;
        weft_log(WEFT_LOG_INFO, "replays steps %lld to %lld", (long long)part->steps.first,
                 (long long)part->steps.last);
        WEFT_TRY(weft_replay_run(&audit->replay, &part->steps, &part->outcome, err));
        ends = ends || part->outcome.ends;
    }
    if (ends || has_hashes(audit)) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_NO_INPUT,
        "%s: neither its checkpoints nor its metrics have a hash of the parameters, so "
        "an audit proves nothing: `weft replay` compares its losses, and new runs set "
        "train.fingerprint.every",
        audit->replay.run);
}

static const struct part *first_other(const struct audit *audit)
{
    for (int32_t p = 0; p < audit->n; p++)
        if (audit->parts[p].drawn && audit->parts[p].outcome.differs > 0) return &audit->parts[p];
    return NULL;
}

static int64_t count_missing(const struct audit *audit)
{
    int64_t missing = 0;
    for (int32_t p = 0; p < audit->n; p++)
        missing += audit->parts[p].outcome.missing;
    return missing;
}

static bool is_equal(const struct audit *audit)
{
    return first_other(audit) == NULL && audit->chain.broken == 0 && count_missing(audit) == 0;
}

static void put_part(const struct part *part, struct weft_answer *answer)
{
    const struct weft_replay_outcome *outcome = &part->outcome;
    weft_answer_open(answer, NULL);
    weft_answer_flat(answer);
    weft_answer_integer(answer, "first_step", part->steps.first);
    weft_answer_integer(answer, "last_step", part->steps.last);
    weft_answer_bool(answer, "replayed", part->drawn);
    if (part->drawn) {
        weft_answer_integer(answer, "compared", outcome->compared);
        weft_answer_bool(answer, "equal", outcome->differs == 0);
        weft_answer_bool(answer, "ends_in_checkpoint", outcome->ends);
    }
    if (part->drawn && outcome->differs != 0) {
        weft_answer_integer(answer, "differs_at", outcome->differs);
        weft_answer_word(answer, "differs_in", weft_text_chars(&outcome->how));
        if (outcome->rank >= 0) weft_answer_integer(answer, "rank", outcome->rank);
    }
    weft_answer_close(answer);
}

static void add_parts(const struct audit *audit, struct weft_answer *answer)
{
    weft_answer_open_list(answer, "parts");
    for (int32_t p = 0; p < audit->n; p++) {
        const struct part *part = &audit->parts[p];
        put_part(part, answer);
        weft_answer_say(answer, NULL, "%-9s steps %lld to %lld%s\n",
                        !part->drawn                 ? "not drawn"
                        : part->outcome.differs == 0 ? "equal"
                                                     : "differs",
                        (long long)part->steps.first, (long long)part->steps.last,
                        part->drawn && part->outcome.ends && part->outcome.differs == 0
                            ? ", up to the checkpoint"
                            : "");
    }
    weft_answer_close_list(answer);
}

static void add_chain(const struct audit *audit, struct weft_answer *answer)
{
    static const char *const keys[] = {"checkpoints", "whole", "broken", "gone"};
    const struct chain *chain = &audit->chain;
    const int32_t counts[] = {audit->replay.n_kept, chain->whole, chain->broken, chain->gone};
    weft_answer_open(answer, "chain");
    weft_answer_flat(answer);
    for (int32_t c = 0; c < 4; c++)
        weft_answer_integer(answer, keys[c], counts[c]);
    weft_answer_close(answer);
    weft_answer_say(answer, NULL,
                    "chain     %d kept checkpoint%s: %d link%s whole, %d broken, %d to "
                    "checkpoints that are gone\n",
                    counts[0], counts[0] == 1 ? "" : "s", counts[1], counts[1] == 1 ? "" : "s",
                    counts[2], counts[3]);
}

static void fill_answer(const struct audit *audit, struct weft_answer *answer)
{
    char config[WEFT_HASH_TEXT_BYTES], data[WEFT_HASH_TEXT_BYTES];
    const struct part *other = first_other(audit);
    const int64_t steps = count_recorded(audit);
    const double chance = (double)audit->replayed / (double)steps;
    weft_hash_show(audit->config, config);
    weft_hash_show(audit->data, data);
    weft_answer_say(answer, NULL, "run       %s, config %s\ndata      %s\n", audit->replay.run,
                    config, data);
    weft_answer_word(answer, "kind", "audit");
    weft_answer_word(answer, "run", audit->replay.run);
    weft_answer_word(answer, "weft", WEFT_VERSION);
    if (audit->kernels != NULL) weft_answer_word(answer, "kernels", audit->kernels);
    weft_answer_word(answer, "config", config);
    weft_answer_word(answer, "data", data);
    add_chain(audit, answer);
    weft_answer_integer(answer, "seed", audit->seed);
    weft_answer_integer(answer, "ranks", audit->replay.session.config->cluster.ranks);
    weft_answer_word(answer, "planner", audit->replay.session.plan->planner);
    weft_answer_integer(answer, "steps", steps);
    weft_answer_integer(answer, "replayed", audit->replayed);
    weft_answer_integer(answer, "missing", count_missing(audit));
    weft_answer_real(answer, "chance", chance);
    add_parts(audit, answer);
    weft_answer_bool(answer, "equal", is_equal(audit));
    if (other != NULL)
        weft_answer_say(answer, NULL, "differs   first in step %lld: %s\n",
                        (long long)other->outcome.differs, weft_text_chars(&other->outcome.how));
    weft_answer_say(answer, NULL,
                    "chance    %.1f %%: so likely is a single wrong step among these %lld replayed "
                    "of %lld (--draw %" PRId64 ")\n",
                    100 * chance, (long long)audit->replayed, (long long)steps, audit->seed);
}

static enum weft_status judge_audit(const struct audit *audit, struct weft_error *err)
{
    const struct part *other = first_other(audit);
    const char *run = audit->replay.run;
    char rank[WEFT_REPLAY_RANK_BYTES];
    if (other != NULL)
        return weft_fail(err, WEFT_E_NUMERIC,
                         "%s: step %lld has other bits when replayed%s. %s the run or the audit "
                         "computed wrongly: `weft replay` repeats it on other hardware, to tell "
                         "which",
                         run, (long long)other->outcome.differs,
                         weft_replay_show_rank(&other->outcome, rank),
                         weft_replay_show_doubt(&other->outcome));
    if (audit->chain.broken > 0)
        return weft_fail(err, WEFT_E_NUMERIC,
                         "%s: step-%lld follows another manifest than the one that is there: a "
                         "checkpoint before it was replaced",
                         audit->replay.checkpoints, (long long)audit->chain.broken_at);
    if (count_missing(audit) > 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s/metrics.jsonl: %lld replayed steps have no whole line, so they were "
                         "not compared",
                         run, (long long)count_missing(audit));
    return WEFT_OK;
}

static enum weft_status hash_config(struct audit *audit, struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 30;
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(audit->replay.from.own_config, most_bytes, &bytes, &length, err));
    audit->config = weft_hash_bytes(bytes, length);
    free(bytes);
    return WEFT_OK;
}

static enum weft_status audit_run(struct audit *audit, struct weft_error *err)
{
    const struct weft_cli *cli = audit->replay.cli;
    struct weft_answer answer = {0};
    WEFT_TRY(hash_config(audit, err));
    WEFT_TRY(check_chain(audit, err));
    WEFT_TRY(cut_parts(audit, err));
    draw_parts(audit);
    WEFT_TRY(weft_replay_plan(&audit->replay, err));
    WEFT_TRY(replay_parts(audit, err));
    fill_answer(audit, &answer);
    WEFT_TRY(weft_cli_emit_answer(cli, &answer, err));
    return judge_audit(audit, err);
}

static void close_audit(struct audit *audit)
{
    for (int32_t p = 0; p < audit->n; p++)
        weft_replay_outcome_finish(&audit->parts[p].outcome);
    free(audit->parts);
    free((char *)audit->kernels);
    weft_replay_close(&audit->replay);
}

static enum weft_status open_audit(const struct weft_cli *cli, struct weft_error *err)
{
    struct audit audit = {0};
    WEFT_TRY(read_flags(cli, &audit, err));
    enum weft_status status = weft_replay_open(cli, &audit.replay, err);
    if (status == WEFT_OK) status = audit_run(&audit, err);
    close_audit(&audit);
    return status;
}

static enum weft_status run_audit(const struct weft_cli *cli, struct weft_error *err)
{
    return weft_hosts_run(cli, open_audit, weft_rank_work, err);
}

const struct weft_command weft_command_audit = {
    .name = "audit",
    .usage = "RUN",
    .summary = "replays drawn parts of a run, for a verdict that others can repeat",
    .details =
        "Cuts the run at its kept checkpoints, draws parts by a seed that the verdict names\n"
        "(--draw) until they have --part percent of the steps, and replays these as `weft replay`\n"
        "does. Each part must have the recorded bits, and end in the parameters of the next\n"
        "checkpoint. Each manifest has a hash of the one before it, so a replaced checkpoint\n"
        "breaks the chain. The verdict has the hashes of config and data, the chain, each part,\n"
        "and the chance that a single wrong step of the run is among the replayed ones. Exit 79\n"
        "if a step differs or the chain is broken. It writes no file.\n"
        "train.checkpoint.keep_every keeps the checkpoints that parts begin with.",
    .flags = "--part --draw --set --layers --ranks --memory-limit --planner --work-limit --profile "
             "--plan --poison",
    .least_operands = 1,
    .most_operands = 1,
    .starts_ranks = true,
    .serves_hosts = true,
    .run = run_audit,
};
