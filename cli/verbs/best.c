#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/machine/cores.h"
#include "cli/process/children.h"
#include "cli/study/sweep.h"
#include "cli/terminal.h"
#include "library/foreign.h"
#include "problem/variants.h"
#include "report/study/best.h"

enum {
    MOST_ROWS = WEFT_POLICY_COUNT * WEFT_RECOMPUTE_COUNT * 4 + 1,
    /* Combinations by hand leave few choices, so each gets this part of the work. */
    HAND_PART = 10
};

/* The work of `weft best`. */
struct choice {
    const struct weft_cli *cli;
    struct weft_pool pool;
    struct weft_session session;
    bool splits;                          /* the rows may split the batch anew */
    char profile[WEFT_SHARED_PATH_BYTES]; /* path of the profile measured here; "": none */
    int profile_fd;                       /* -1: none */
    int32_t jobs;
    struct weft_best best;
    struct weft_best_row rows[MOST_ROWS];
    struct weft_child children[WEFT_CHILDREN_MOST];
    struct weft_best_row *planned[WEFT_CHILDREN_MOST]; /* row of each child */
};

static enum weft_status read_jobs(struct choice *choice, struct weft_error *err)
{
    const int32_t cores = weft_cores();
    const char *text = choice->cli->jobs;
    char *end;
    choice->jobs = cores < WEFT_CHILDREN_MOST ? cores : WEFT_CHILDREN_MOST;
    if (text == NULL) return WEFT_OK;
    const long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 1 || value > WEFT_CHILDREN_MOST)
        return weft_fail(err, WEFT_E_USAGE, "--jobs %s: a number from 1 to %d", text,
                         WEFT_CHILDREN_MOST);
    choice->jobs = (int32_t)value;
    return WEFT_OK;
}

/* Adds the settings of all rows. */
static void add_common(const struct choice *choice, struct weft_place *place)
{
    if (choice->splits) {
        weft_place_add(place, "train.batch=%lld", (long long)choice->best.samples);
        weft_place_add(place, "train.micro_batch=auto");
    }
    if (choice->profile[0] != '\0') weft_place_add(place, "cluster.profile=%s", choice->profile);
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

/* Measures this machine if the times need it. Children read the profile. */
static enum weft_status measure_machine(struct choice *choice, struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    struct weft_place place = {0};
    struct weft_text text;
    add_common(choice, &place);
    weft_session_close(&choice->session);
    WEFT_TRY(weft_place_open(choice->cli, &place, &choice->session, err));
    if (!weft_cli_measures(&choice->session)) return WEFT_OK;
    WEFT_TRY(weft_cli_measure(&choice->session, &profile, err));
    weft_text_init(&text);
    weft_profile_write(profile, &text);
    weft_profile_destroy(profile);
    enum weft_status status =
        weft_study_share(&text, "profile", choice->profile, &choice->profile_fd, err);
    weft_text_finish(&text);
    return status;
}

/* The config names one split, and no flag asks for it: others have the same batch, if their times
 * are known. */
static enum weft_status stage_splits(struct choice *choice, struct weft_error *err)
{
    const struct weft_config *config = choice->session.config;
    const struct weft_train *train = &config->train;
    struct weft_error why = {0};
    choice->best.samples = train->micro_batch * train->grad_accum * config->cluster.ranks;
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
    weft_config_restorable(config, levels);
    *out = 0;
    for (size_t l = 0; l < n; l++)
        *out |= levels[l];
    return WEFT_OK;
}

static const char *const offloads[] = {"none", "state", "activations", "both"};

/* Whether the config's tiers allow the way to offload; bit 0 is state, bit 1 activations. */
static bool may_offload(const struct weft_config *config, int way)
{
    const int elsewhere = ~(1 << WEFT_HOME_DEVICE);
    const bool state = (weft_config_state_homes(config) & elsewhere) != 0;
    const bool saved = weft_config_moves_activations(config);
    return ((way & 1) == 0 || state) && ((way & 2) == 0 || saved);
}

/* Lists every combination that the config allows, and the joint plan. */
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
                if ((policies >> p & 1) != 0 && (levels >> level & 1) != 0 &&
                    may_offload(config, way))
                    add_row(choice, weft_policy_name((enum weft_policy)p),
                            weft_recompute_names[level], offloads[way]);
    add_row(choice, "joint", "auto",
            may_offload(config, 1) || may_offload(config, 2) ? "auto" : "none");
    return WEFT_OK;
}

static bool is_joint(const struct choice *choice, const struct weft_best_row *row)
{
    return row == &choice->rows[choice->best.n_rows - 1];
}

/* Adds ["host","disk"]: the locations without the device, or the device alone. */
static void add_homes(struct weft_place *place, const char *key, int homes, bool elsewhere)
{
    char list[64] = "";
    for (int home = 0; home < WEFT_HOME_COUNT; home++) {
        const bool wanted = elsewhere ? home != WEFT_HOME_DEVICE : home == WEFT_HOME_DEVICE;
        if (!wanted || (elsewhere && (homes >> home & 1) == 0)) continue;
        const size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s\"%s\"", length > 0 ? "," : "",
                 weft_home_names[home]);
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
    if (is_joint(choice, row)) return place;
    weft_place_add(&place, "plan.policies=%s", row->policy);
    weft_place_add(&place, "plan.work_limit=%.0fM", config->plan.work_limit / 1e6 / HAND_PART + 1);
    if (weft_config_moves_parameters(config))
        add_homes(&place, "parameters", weft_config_parameter_homes(config), false);
    if (!may_offload(config, 1) && !may_offload(config, 2)) return place;
    const int way = strcmp(row->offload, "state") == 0         ? 1
                    : strcmp(row->offload, "activations") == 0 ? 2
                    : strcmp(row->offload, "both") == 0        ? 3
                                                               : 0;
    add_homes(&place, "state", weft_config_state_homes(config), (way & 1) != 0);
    add_homes(&place, "activations", weft_config_activation_homes(config), (way & 2) != 0);
    return place;
}

static enum weft_status start_row(struct choice *choice, int32_t child, struct weft_best_row *row,
                                  struct weft_error *err)
{
    const char *argv[WEFT_PLACE_ARGUMENTS] = {NULL};
    struct weft_place place = place_row(choice, row);
    (void)weft_place_plan(choice->cli, &place, choice->profile[0] != '\0', argv);
    WEFT_TRY(weft_child_start(&choice->children[child], argv, err));
    choice->planned[child] = row;
    return WEFT_OK;
}

static enum weft_status read_plan(struct choice *choice, struct weft_best_row *row,
                                  const struct weft_text *text, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    if (!weft_text_ok(text)) return weft_fail_memory(err, "a plan");
    WEFT_TRY(weft_plan_parse(weft_text_chars(text), text->length, row->policy, &plan, err));
    weft_best_take(row, plan, choice->session.config->train.micro_batch);
    weft_plan_destroy(plan);
    return WEFT_OK;
}

/* Takes the plan of an ended child, or the reason that there is none. The config is valid, so
 * WEFT_E_DATA means that the combination is not possible. */
static enum weft_status take_row(struct choice *choice, struct weft_error *err)
{
    int32_t ended;
    WEFT_TRY(weft_children_wait(choice->children, choice->jobs, &ended, choice->cli->watch, err));
    struct weft_child *child = &choice->children[ended];
    struct weft_best_row *row = choice->planned[ended];
    enum weft_status status = weft_status_of_exit_code(child->exit_code);
    if (child->exit_code == 0) {
        status = read_plan(choice, row, &child->said, err);
    } else if (child->exit_code < 128 && (status == WEFT_E_DATA || status == WEFT_E_INFEASIBLE)) {
        row->reason = weft_pool_string(&choice->pool, weft_child_error(child));
        status = row->reason != NULL ? WEFT_OK : weft_fail_memory(err, "a reason");
    } else if (child->exit_code > 128) {
        status = weft_fail(err, WEFT_E_INTERNAL, "%s, recompute %s: its process ended by signal %d",
                           row->policy, row->recompute, child->exit_code - 128);
    } else {
        status = weft_fail(err, status, "%s, recompute %s: %s", row->policy, row->recompute,
                           weft_child_error(child));
    }
    weft_child_finish(child);
    return status;
}

/* Plans the joint row first, as it takes longest. */
static enum weft_status plan_rows(struct choice *choice, struct weft_error *err)
{
    const int32_t n = choice->best.n_rows;
    int32_t begun = 0;
    weft_watch_begin(choice->cli->watch, "best");
    for (int32_t done = 0; done < n; done++) {
        weft_watch_count(choice->cli->watch, "plan", done, n);
        for (int32_t c = 0; c < choice->jobs && begun < n; c++) {
            if (choice->children[c].pid != 0) continue;
            WEFT_TRY(start_row(choice, c, &choice->rows[begun == 0 ? n - 1 : begun - 1], err));
            begun++;
        }
        WEFT_TRY(take_row(choice, err));
    }
    return WEFT_OK;
}

static enum weft_status plan_all(struct choice *choice, struct weft_error *err)
{
    weft_children_begin();
    enum weft_status status = plan_rows(choice, err);
    for (int32_t c = 0; c < choice->jobs; c++)
        weft_child_finish(&choice->children[c]);
    status = weft_children_end(status, err);
    weft_watch_end(choice->cli->watch);
    return status;
}

static enum weft_status print_rows(const struct choice *choice, struct weft_error *err)
{
    const struct weft_cli *cli = choice->cli;
    struct weft_text out;
    weft_cli_report_init(cli, cli->output, &out);
    if (cli->json) {
        struct weft_json_writer writer;
        weft_json_writer_init(&writer, &out, 2);
        weft_best_json(&choice->best, &writer);
        weft_text_add(&out, "\n");
    } else {
        weft_best_table(&choice->best, &out);
    }
    enum weft_status status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

static enum weft_status choose_best(struct choice *choice, struct weft_error *err)
{
    const struct weft_place nowhere = {0};
    WEFT_TRY(read_jobs(choice, err));
    WEFT_TRY(weft_place_open(choice->cli, &nowhere, &choice->session, err));
    WEFT_TRY(stage_splits(choice, err));
    weft_session_tell_inputs(&choice->session, false, choice->profile[0] != '\0');
    choice->best.config = choice->cli->operands[0];
    choice->best.times = choice->session.stages.problem->profile_source;
    choice->best.ranks = choice->session.config->cluster.ranks;
    choice->best.limit_bytes = choice->session.config->cluster.memory_limit_bytes;
    WEFT_TRY(list_rows(choice, err));
    WEFT_TRY(plan_all(choice, err));
    WEFT_TRY(print_rows(choice, err));
    if (weft_best_fastest(&choice->best) != NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE, "no combination has a plan within the limit: %s",
                     choice->rows[choice->best.n_rows - 1].reason);
}

static enum weft_status run_best(const struct weft_cli *cli, struct weft_error *err)
{
    static struct choice choice;
    choice = (struct choice){.cli = cli, .profile_fd = -1};
    const enum weft_status status = choose_best(&choice, err);
    if (choice.profile_fd >= 0) close(choice.profile_fd);
    weft_session_close(&choice.session);
    weft_pool_finish(&choice.pool);
    return status;
}

const struct weft_command weft_command_best = {
    .name = "best",
    .usage = "CONFIG",
    .summary = "the best of batch split, policy, recomputation and offloading",
    .details =
        "Plans every combination that a user would try by hand within the memory limit: one "
        "policy\n"
        "for all units, one level of recomputation for all layers, and offloading of nothing, of\n"
        "state, of saved activations or of both. The last row is the joint plan, which decides "
        "all\n"
        "of these for each unit and layer. Each row has its best split of the batch, tokens/s,\n"
        "memory of a rank and the gap to its bound. The batch is the config's, and each row "
        "splits\n"
        "it anew. It keeps the config's split if --set names one, if the config has several\n"
        "micro-steps, or if the profile has no times of others. Rows by hand get a tenth of\n"
        "plan.work_limit each, since they leave few choices. Plans are made on all cores (--jobs "
        "N:\n"
        "N processes). --json prints the same, with the reason of each row that has no plan.\n"
        "Exit 78 if no row has a plan.",
    .flags = "--set --model --layers --ranks --seed --profile --memory-limit --work-limit "
             "--time-limit --gap --jobs",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_best,
};
