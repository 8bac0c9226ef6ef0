/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/study/crew.h"
#include "cli/study/refusal.h"
#include "cli/study/rent.h"
#include "cli/study/sweep.h"
#include "cli/study/winner.h"
#include "cli/terminal.h"
#include "library/foreign.h"
#include "problem/variants.h"
#include "report/study/best.h"
#include "report/study/first_line.h"
#include "scheduler/digest/digest.h"
#include "spec/config_batch.h"
#include "spec/config_recompute.h"
#include "spec/target.h"

enum {
    MOST_ROWS = WEFT_POLICY_COUNT * WEFT_RECOMPUTE_COUNT * 4 + 1 + WEFT_BEST_OTHERS,
    /* Combinations by hand leave few choices, so each gets this part of the work. */
    HAND_PART = 10
};

/* The work of `weft best`. */
struct choice {
    const struct weft_cli *cli;
    struct weft_pool pool;
    struct weft_session session;
    bool splits; /* the rows may split the batch anew */
    struct weft_times times;
    struct weft_kept kept; /* of an earlier, stopped run */
    struct weft_best best;
    struct weft_best_row rows[MOST_ROWS];
    struct weft_text plans[MOST_ROWS]; /* documents of rows with a plan */
    struct weft_crew crew;
};

/* Adds the settings of all rows. */
static void add_common(const struct choice *choice, struct weft_place *place)
{
    if (choice->splits) {
        weft_place_add(place, "train.batch=%lld", (long long)choice->best.samples);
        weft_place_add(place, "train.micro_batch=auto");
    }
    weft_times_add(&choice->times, place);
}

/* Opens the session again at the settings of all rows, and stages it. */
static enum weft_status stage_rows(struct choice *choice, struct weft_error *err)
{
    struct weft_place place = {0};
    add_common(choice, &place);
    weft_session_close(&choice->session);
    WEFT_TRY(weft_place_open(choice->cli, &place, &choice->session, err));
    return weft_session_stage(&choice->session, NULL, err);
}

/* Measures this machine if the times need it, with all that the rows may plan. Children read the
 * profile. */
static enum weft_status measure_machine(struct choice *choice, struct weft_error *err)
{
    struct weft_place place = {0};
    add_common(choice, &place);
    weft_place_open_levels(&choice->session, &place);
    weft_session_close(&choice->session);
    WEFT_TRY(weft_place_open(choice->cli, &place, &choice->session, err));
    if (!weft_cli_measures(&choice->session)) return WEFT_OK;
    return weft_times_measure(choice->cli, &choice->kept, &choice->session, "before",
                              &choice->times, err);
}

/* The config names one split, and no flag asks for it: others have the same batch, if their times
 * are known. */
static enum weft_status stage_splits(struct choice *choice, struct weft_error *err)
{
    const struct weft_config *config = choice->session.config;
    const struct weft_train *train = &config->train;
    struct weft_error why = {0};
    choice->best.samples = weft_config_samples(config);
    choice->best.seq_len = train->seq_len;
    choice->splits =
        train->asked.micro_batch > 0 && train->asked.grad_accum <= 1 && !config->split_given;
    WEFT_TRY(measure_machine(choice, err));
    enum weft_status status = stage_rows(choice, choice->splits ? &why : err);
    if (status != WEFT_E_DATA || !choice->splits) {
        if (status != WEFT_OK && choice->splits) weft_fail(err, status, "%s", why.text);
        return status;
    }
    choice->splits = false;
    WEFT_TRY(stage_rows(choice, err));
    weft_log(WEFT_LOG_INFO, "best: keeps the config's micro-batch: %s", why.text);
    return WEFT_OK;
}

static struct weft_best_row *add_row(struct choice *choice, const char *policy,
                                     const char *recompute, const char *offload)
{
    struct weft_best_row *row = &choice->rows[choice->best.n_rows++];
    *row = (struct weft_best_row){.policy = policy, .recompute = recompute, .offload = offload};
    return row;
}

/* Bits of the levels of recomputation that any layer can have. */
static enum weft_status find_levels(struct choice *choice, int *out, struct weft_error *err)
{
    const struct weft_config *config = choice->session.config;
    const size_t n = (size_t)config->model->n_layers;
    uint8_t *levels = weft_pool_array(&choice->pool, n, sizeof *levels);
    if (levels == NULL) return weft_fail_memory(err, "levels of recomputation");
    *out = 1 << WEFT_RECOMPUTE_NONE;
    if (!weft_config_target(config)->recomputes) return WEFT_OK;
    weft_config_restorable(config, levels);
    for (size_t l = 0; l < n; l++)
        *out |= levels[l];
    return WEFT_OK;
}

static const char *const offloads[] = {"none", "state", "activations", "both"};

static const int on_device = 1 << WEFT_LOCATION_DEVICE;

static bool may_offload_state(const struct weft_config *config)
{
    return (weft_config_state_locations(config) & ~on_device) != 0;
}

/* Whether the config allows the way to offload; bit 0 is state, bit 1 activations. Bytes that are
 * not offloaded need a config that allows the device. */
static bool may_offload(const struct weft_config *config, int way)
{
    const bool state = (way & 1) != 0 ? may_offload_state(config)
                                      : (weft_config_state_locations(config) & on_device) != 0;
    const bool saved = (way & 2) != 0 ? weft_config_moves_activations(config)
                                      : (weft_config_activation_locations(config) & on_device) != 0;
    return state && saved;
}

/* Whether the joint plan may offload. */
static bool may_offload_any(const struct weft_config *config)
{
    return may_offload_state(config) || weft_config_moves_activations(config);
}

/* Levels that all layers can have alike; the joint plan may have every level. */
enum {
    BY_HAND = 1 << WEFT_RECOMPUTE_NONE | 1 << WEFT_RECOMPUTE_SELECTIVE | 1 << WEFT_RECOMPUTE_WHOLE
};

/* Whether micro-steps can take turns by layers in some split. */
static bool may_turn(const struct weft_config *config)
{
    int64_t splits[WEFT_MOST_SPLITS], idle;
    const int32_t n = weft_config_splits(config, splits);
    for (int32_t i = 0; i < n && config->model->n_layers > 1; i++)
        if (weft_config_refuses_turns(config, weft_config_micro_steps(config, splits[i], &idle)) ==
            NULL)
            return true;
    return false;
}

static struct weft_best_row *add_other(struct choice *choice, const struct weft_best_row *joint,
                                       int other)
{
    struct weft_best_row *row = add_row(choice, "joint", joint->recompute, joint->offload);
    row->other = &weft_best_others[other];
    return row;
}

/* Adds the joint plan in other orders of micro-steps than the config's, in both if that is open. */
static void list_orders(struct choice *choice, const struct weft_best_row *joint)
{
    const struct weft_config *config = choice->session.config;
    const int64_t asked = config->plan.micro_step_order;
    if (!may_turn(config)) return;
    if (asked != WEFT_ORDER_BY_STEP) add_other(choice, joint, WEFT_BEST_BY_STEP);
    if (asked == WEFT_ORDER_BY_STEP || asked == WEFT_ORDER_AUTO)
        add_other(choice, joint, WEFT_BEST_BY_LAYER);
}

/* Adds the joint plan with updates in other places than the config's, in both if that is open. */
static void list_updates(struct choice *choice, const struct weft_best_row *joint)
{
    const struct weft_config *config = choice->session.config;
    const int64_t asked = config->plan.update_in;
    choice->best.update_in_refused = config->model->n_layers < 2
                                         ? "the model has one layer"
                                         : weft_config_refuses_backward(config, NULL);
    if (choice->best.update_in_refused != NULL) return;
    if (asked != WEFT_UPDATE_IN_FORWARD) add_other(choice, joint, WEFT_BEST_IN_FORWARD);
    if (asked == WEFT_UPDATE_IN_AUTO) add_other(choice, joint, WEFT_BEST_IN_BACKWARD);
    if (asked == WEFT_UPDATE_IN_FORWARD)
        add_other(choice, joint, WEFT_BEST_IN_BACKWARD)->price = weft_update_in_price;
}

/* Lists every combination that the config allows, the joint plan, and that with other settings. */
static enum weft_status list_rows(struct choice *choice, struct weft_error *err)
{
    const struct weft_config *config = choice->session.config;
    uint32_t policies = 0;
    int levels = 0;
    WEFT_TRY(weft_variants_policies(config, &policies, err));
    WEFT_TRY(find_levels(choice, &levels, err));
    choice->best.rows = choice->rows;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++)
            for (int way = 0; way < 4; way++)
                if ((policies >> p & 1) != 0 && ((levels & BY_HAND) >> level & 1) != 0 &&
                    may_offload(config, way))
                    add_row(choice, weft_policy_name((enum weft_policy)p),
                            weft_recompute_names[level], offloads[way]);
    choice->best.n_hand = choice->best.n_rows;
    const struct weft_best_row *joint =
        add_row(choice, "joint", levels == 1 << WEFT_RECOMPUTE_NONE ? "none" : "auto",
                may_offload_any(config) ? "auto" : "none");
    list_orders(choice, joint);
    list_updates(choice, joint);
    return WEFT_OK;
}

/* The joint plan, with any settings. */
static bool is_joint(const struct choice *choice, const struct weft_best_row *row)
{
    return row >= &choice->rows[choice->best.n_hand];
}

/* Adds ["host","disk"]: the locations without the device, or the device alone. */
static void add_locations(struct weft_place *place, const char *key, int locations, bool elsewhere)
{
    char list[64] = "";
    for (int location = 0; location < WEFT_LOCATION_COUNT; location++) {
        const bool wanted =
            elsewhere ? location != WEFT_LOCATION_DEVICE : location == WEFT_LOCATION_DEVICE;
        if (!wanted || (elsewhere && (locations >> location & 1) == 0)) continue;
        const size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s\"%s\"", length > 0 ? "," : "",
                 weft_location_names[location]);
    }
    weft_place_add(place, "plan.offload.%s=[%s]", key, list);
}

/* The settings of a row. */
static struct weft_place place_row(const struct choice *choice, const struct weft_best_row *row)
{
    const struct weft_config *config = choice->session.config;
    struct weft_place place = {0};
    add_common(choice, &place);
    weft_place_add(&place, "plan.recompute=%s", row->recompute);
    if (row->other != NULL)
        weft_place_add(&place, "plan.%s=%s", row->other->key, row->other->value);
    if (is_joint(choice, row)) return place;
    weft_place_add(&place, "plan.policies=%s", row->policy);
    weft_place_add(&place, "plan.work_limit=%.0fM", config->plan.work_limit / 1e6 / HAND_PART + 1);
    if (weft_config_moves_inputs(config) && (weft_config_input_locations(config) & on_device) != 0)
        add_locations(&place, "inputs", on_device, false);
    if (weft_config_moves_parameters(config) &&
        (weft_config_parameter_locations(config) & on_device) != 0)
        add_locations(&place, "parameters", on_device, false);
    if (!may_offload_any(config)) return place;
    const int way = strcmp(row->offload, "state") == 0         ? 1
                    : strcmp(row->offload, "activations") == 0 ? 2
                    : strcmp(row->offload, "both") == 0        ? 3
                                                               : 0;
    add_locations(&place, "state", weft_config_state_locations(config), (way & 1) != 0);
    add_locations(&place, "activations", weft_config_activation_locations(config), (way & 2) != 0);
    return place;
}

/* Shows a row as soon as it is known. */
static void tell_row(const struct choice *choice, const struct weft_best_row *row)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_addf(&text, "best: %d of %d: %s", choice->crew.n_done, choice->best.n_rows,
                   row->policy);
    if (row->other != NULL) weft_text_addf(&text, ", %s %s", row->other->key, row->other->value);
    weft_text_addf(&text, ", recompute %s, offload %s: ", row->recompute, row->offload);
    if (row->mark == WEFT_BEST_FITS)
        weft_answer_step(row->step_ns, 0, row->total_bytes, &text);
    else
        weft_text_add(&text, weft_best_mark_name(row->mark));
    weft_log(WEFT_LOG_INFO, "%s", weft_text_chars(&text));
    weft_text_finish(&text);
}

static enum weft_status read_plan(struct choice *choice, struct weft_best_row *row,
                                  const struct weft_text *text, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    WEFT_TRY(weft_plan_parse(weft_text_chars(text), text->length, row->policy, &plan, err));
    weft_best_take(row, plan, choice->session.config->train.micro_batch);
    weft_plan_destroy(plan);
    weft_text_append(&choice->plans[row - choice->rows], weft_text_chars(text), text->length);
    return WEFT_OK;
}

static int fill_arguments(void *context, int32_t index, struct weft_place *place, const char **argv)
{
    const struct choice *choice = context;
    *place = place_row(choice, &choice->rows[index]);
    return weft_place_plan(choice->cli, place, choice->times.path[0] != '\0', argv);
}

/* Hashes all settings of the row's place but the profile's path. */
static struct weft_hash hash_row(void *context, int32_t index)
{
    const struct choice *choice = context;
    const struct weft_best_row *row = &choice->rows[index];
    return weft_kept_key(&choice->kept, "best %s, %s, %s of %d%s%s", row->policy, row->recompute,
                         row->offload, choice->splits, row->other ? " with " : "",
                         row->other ? row->other->member : "");
}

static void name_row(void *context, int32_t index, char out[WEFT_ROW_NAME_BYTES])
{
    const struct weft_best_row *row = &((const struct choice *)context)->rows[index];
    snprintf(out, WEFT_ROW_NAME_BYTES, "%s%s%s, recompute %s", row->policy, row->other ? ", " : "",
             row->other ? row->other->label : "", row->recompute);
}

static enum weft_status take_end(void *context, int32_t index, const struct weft_row_end *end,
                                 struct weft_error *err)
{
    struct choice *choice = context;
    struct weft_best_row *row = &choice->rows[index];
    if (end->plan != NULL) {
        WEFT_TRY(read_plan(choice, row, end->plan, err));
    } else {
        row->reason = weft_pool_string(&choice->pool, end->reason);
        if (row->reason == NULL) return weft_fail_memory(err, "a reason");
        row->mark = end->lacks == WEFT_LACK_MEMORY  ? WEFT_BEST_ABOVE
                    : end->lacks == WEFT_LACK_TIMES ? WEFT_BEST_NO_TIMES
                                                    : WEFT_BEST_NOT_ALLOWED;
        row->least_bytes = end->needs_bytes;
    }
    tell_row(choice, row);
    return WEFT_OK;
}

/* Joint rows come first, as they take longest. */
static enum weft_status plan_all(struct choice *choice, struct weft_error *err)
{
    const int32_t n = choice->best.n_rows;
    int32_t rows[MOST_ROWS];
    for (int32_t i = 0; i < n; i++)
        rows[i] = (choice->best.n_hand + i) % n;
    choice->crew.cli = choice->cli;
    choice->crew.kept = &choice->kept;
    choice->crew.n_rows = n;
    choice->crew.study = choice;
    choice->crew.arguments = fill_arguments;
    choice->crew.key = hash_row;
    choice->crew.name = name_row;
    choice->crew.take = take_end;
    weft_crew_begin(&choice->crew);
    return weft_crew_end(&choice->crew, weft_crew_plan(&choice->crew, rows, n, err), err);
}

/* Writes the winner's files with -o, and tells the commands to type next. */
static enum weft_status end_with_winner(struct choice *choice, const struct weft_cli *cli,
                                        struct weft_error *err)
{
    const struct weft_best_row *row = weft_best_fastest(&choice->best);
    struct weft_text out;
    if (row == NULL) return WEFT_OK;
    struct weft_winner winner = {
        .cli = choice->cli,
        .place = place_row(choice, row),
        .plan = &choice->plans[row - choice->rows],
        .measured = choice->times.path[0] != '\0' ? &choice->times.profile : NULL,
    };
    if (choice->cli->output != NULL) WEFT_TRY(weft_winner_write(&winner, err));
    if (cli->json) return WEFT_OK;
    weft_cli_report_init(cli, NULL, &out);
    weft_winner_tell_next(&winner, &out);
    const enum weft_status status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

/* No row fits: adds the changes with which the joint plan would. */
static enum weft_status add_changes(struct choice *choice, struct weft_answer *answer,
                                    struct weft_error *err)
{
    const struct weft_place joint = place_row(choice, &choice->rows[choice->best.n_hand]);
    struct weft_session session = {0};
    enum weft_status status = weft_place_open(choice->cli, &joint, &session, err);
    session.watch = NULL; /* no progress of its own */
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK)
        status = weft_refusal_add(choice->cli, &session, &joint, NULL, answer, err);
    weft_session_close(&session);
    return status;
}

/* Rows are long work, so they are printed before any file is written. */
static enum weft_status print_rows(struct choice *choice, struct weft_error *err)
{
    struct weft_cli cli = *choice->cli;
    struct weft_answer answer = {0};
    struct weft_error why = {0};
    cli.output = NULL; /* a folder */
    weft_best_report(&choice->best, &answer);
    if (weft_best_fastest(&choice->best) == NULL && add_changes(choice, &answer, &why) != WEFT_OK)
        weft_log(WEFT_LOG_WARNING, "no table of changes: %s", why.text);
    const enum weft_status status = weft_cli_emit_answer(&cli, &answer, err);
    weft_answer_finish(&answer);
    return status == WEFT_OK ? end_with_winner(choice, &cli, err) : status;
}

static enum weft_status choose_best(struct choice *choice, struct weft_error *err)
{
    const struct weft_place nowhere = {0};
    char hash[WEFT_HASH_TEXT_BYTES];
    WEFT_TRY(weft_crew_read_jobs(choice->cli->jobs, &choice->crew.jobs, err));
    if (choice->cli->output != NULL) WEFT_TRY(weft_winner_check(choice->cli->output, err));
    WEFT_TRY(weft_place_open(choice->cli, &nowhere, &choice->session, err));
    weft_study_keep(choice->cli, choice->session.config, choice->cli->output, &choice->kept);
    WEFT_TRY(stage_splits(choice, err));
    choice->kept.base = weft_kept_key(&choice->kept, "profile %s",
                                      weft_hash_show(choice->session.profile->hash, hash));
    weft_session_tell_inputs(&choice->session, false, choice->times.path[0] != '\0');
    choice->best.config = choice->cli->operands[0];
    choice->best.times = choice->session.stages.problem->profile_source;
    choice->best.ranks = choice->session.config->cluster.ranks;
    choice->best.limit_bytes = choice->session.config->cluster.memory_limit_bytes;
    WEFT_TRY(list_rows(choice, err));
    WEFT_TRY(plan_all(choice, err));
    WEFT_TRY(print_rows(choice, err));
    weft_kept_remove(&choice->kept);
    if (weft_best_fastest(&choice->best) != NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE, "no combination has a plan within the limit: %s",
                     choice->rows[choice->best.n_hand].reason);
}

static enum weft_status run_best(const struct weft_cli *given, struct weft_error *err)
{
    static struct choice choice;
    struct weft_cli line;
    struct weft_error why = {0};
    WEFT_TRY(weft_cli_make_config(given, &line, err));
    if (line.output != NULL && strcmp(line.output, "-") == 0) line.output = NULL;
    if (line.clusters != NULL) return weft_rent_run(&line, err);
    choice = (struct choice){.cli = &line, .times.fd = -1};
    for (int i = 0; i < MOST_ROWS; i++)
        weft_text_init(&choice.plans[i]);
    const enum weft_status status = choose_best(&choice, &why);
    if (status == WEFT_E_STOPPED)
        weft_study_tell_stop(&choice.kept, "-o DIR", &why, err);
    else if (status != WEFT_OK)
        *err = why;
    for (int i = 0; i < MOST_ROWS; i++)
        weft_text_finish(&choice.plans[i]);
    weft_times_finish(&choice.times);
    weft_session_close(&choice.session);
    weft_pool_finish(&choice.pool);
    return status;
}

const struct weft_command weft_command_best = {
    .name = "best",
    .usage = "[CONFIG]",
    .summary = "the best of batch split, policy, recomputation and offloading",
    .details =
        "Plans every combination that a user would try by hand within the memory limit: one "
        "policy for all units, one level of recomputation for all layers, and offloading of "
        "nothing, of state, of saved activations or of both. The row joint is the joint plan, "
        "which decides all of these for each unit and layer. Where micro-steps can take turns by "
        "layers, a further row is the joint plan in the other order (plan.micro_step_order), with "
        "its gain. Another row has the other place of updates (plan.update_in), unless a setting "
        "excludes it. Updates in backward give up a promise (docs/planning.md), so their row is "
        "the "
        "best only if nothing else fits. Each row has its best split of the "
        "batch, tokens/s, memory of a rank and the gap to its bound. The batch is the config's, "
        "and each row splits it anew. It keeps the config's split if --set names one, if the "
        "config has several micro-steps, or if the profile has no times of others. Rows by hand "
        "get a tenth of plan.work_limit each, since they leave few choices. Plans are made on all "
        "cores (--jobs N: N processes). --json prints the same, with the reason of each row that "
        "has no plan. Without a CONFIG, --hf config.json or --model NAME is the model, on "
        "--cluster NAME. -o DIR writes the best plan with its config, and with --for fsdp2 its "
        "export. Rows are kept in DIR.sweep until then, so that the same command goes on after a "
        "stop. --clusters FILE,FILE plans a step of one batch on each cluster. Each has a "
        "\"price\", of an hour of all its ranks. Rows have the cost and the hours of a billion "
        "tokens, and a cost that no planned variant is below, by the bound of the plan. If no row "
        "has a plan, a table has the changes with which one would, as in `weft plan`. Exit 78 "
        "then.",
    .flags = "--set --model --cluster --clusters --hf --layers --ranks --seed --profile "
             "--memory-limit --for --work-limit --time-limit --gap --jobs",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_best,
};
