/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/rent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/study/crew.h"
#include "plan/plan.h"
#include "report/answer.h"
#include "report/study/first_line.h"
#include "scheduler/digest/digest.h"
#include "spec/config_batch.h"
#include "spec/config_recompute.h"
#include "spec/target.h"

enum { MOST_CLUSTERS = 16, WAYS_BYTES = 192 };

/* A cluster with its plan. Costs are of a billion tokens. */
struct offer {
    char name[WEFT_LIST_BYTES];
    struct weft_cli cli; /* the command line for this cluster alone */
    double price;        /* of an hour */
    int64_t ranks, samples, tokens;
    bool recomputes;                        /* the plan may recompute */
    int64_t step_ns, bound_ns, total_bytes; /* step_ns 0: no plan */
    char ways[WAYS_BYTES];
    enum weft_status status; /* without a plan */
    int64_t needs_bytes;     /* then: the least limit; 0: not known */
    bool never_fits;         /* proven: its limits are below the least of each planned variant */
    const char *reason;
    double cost, least_cost; /* no planned variant costs less than least_cost; 0: not proven */
};

struct rent {
    const struct weft_cli *cli;
    struct weft_pool pool;
    struct weft_kept kept; /* nothing is kept */
    struct weft_crew crew;
    int64_t samples; /* of a step, on all clusters */
    int32_t n;
    struct offer offers[MOST_CLUSTERS];
};

/* The cost of a billion tokens at this time of a step. */
static double cost_of(const struct offer *offer, int64_t step_ns)
{
    const double tokens_per_s = (double)offer->tokens * 1e9 / (double)step_ns;
    return offer->price / 3600 * 1e9 / tokens_per_s;
}

/* Without times of its own, each plan would measure this machine. */
static enum weft_status check_offer(const struct weft_session *session, const char *name,
                                    struct weft_error *err)
{
    if (session->config->cluster.price <= 0)
        return weft_fail(err, WEFT_E_DATA,
                         "--clusters: %s has no price: give it \"price\", of an hour of all its "
                         "ranks, as in \"price\": 24.5",
                         name);
    if (weft_session_must_measure(session))
        return weft_fail(err, WEFT_E_DATA,
                         "--clusters: %s has no times of its ranks: give it figures, \"device\" "
                         "and \"link\", or a \"profile\" of these ranks",
                         name);
    return WEFT_OK;
}

static enum weft_status read_offer(struct rent *rent, const char *name, struct weft_error *err)
{
    const struct weft_place nowhere = {0};
    struct weft_session session = {0};
    struct offer *offer = &rent->offers[rent->n++];
    snprintf(offer->name, sizeof offer->name, "%s", name);
    offer->cli = *rent->cli;
    offer->cli.cluster = offer->name;
    enum weft_status status = weft_place_open(&offer->cli, &nowhere, &session, err);
    if (status == WEFT_OK) status = check_offer(&session, name, err);
    if (status == WEFT_OK) {
        const struct weft_config *config = session.config;
        offer->price = config->cluster.price;
        offer->ranks = config->cluster.ranks;
        offer->samples = weft_config_samples(config);
        offer->tokens = config->train.seq_len;
        offer->recomputes = config->recomputes == NULL && weft_config_target(config)->recomputes &&
                            weft_config_recomputes_if_needed(config);
        if (offer->samples > rent->samples) rent->samples = offer->samples;
    }
    weft_session_close(&session);
    return status;
}

/* A price is of the ranks in the cluster's file, and times are of its devices. */
static enum weft_status check_flags(const struct weft_cli *cli, struct weft_error *err)
{
    static const char *const keys[] = {"cluster.ranks=", "cluster.profile="};
    const char *of_file = cli->ranks > 0 ? "-n" : cli->profile != NULL ? "--profile" : NULL;
    if (cli->cluster != NULL || cli->output != NULL)
        return weft_fail(err, WEFT_E_USAGE, "--clusters: leave out %s",
                         cli->cluster != NULL ? "--cluster" : "-o");
    if (of_file != NULL)
        return weft_fail(err, WEFT_E_USAGE,
                         "--clusters: leave out %s, since each file has its own ranks, price and "
                         "times: change the file",
                         of_file);
    for (int32_t i = 0; i < cli->n_overrides; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (strncmp(cli->overrides[i], keys[k], strlen(keys[k])) == 0)
                return weft_fail(err, WEFT_E_USAGE,
                                 "--clusters: leave out --set %s, since each file has its own "
                                 "ranks, price and times: change the file",
                                 cli->overrides[i]);
    return WEFT_OK;
}

static enum weft_status read_offers(struct rent *rent, struct weft_error *err)
{
    const struct weft_cli *cli = rent->cli;
    struct weft_list list = {.rest = cli->clusters};
    WEFT_TRY(check_flags(cli, err));
    while (weft_list_next(&list)) {
        if (list.item[0] == '\0' || list.cut)
            return weft_fail(err, WEFT_E_USAGE, "--clusters %s: an empty or over-long name",
                             cli->clusters);
        if (rent->n == MOST_CLUSTERS)
            return weft_fail(err, WEFT_E_USAGE, "--clusters: at most %d", MOST_CLUSTERS);
        WEFT_TRY(read_offer(rent, list.item, err));
    }
    for (int32_t i = 0; i < rent->n; i++)
        rent->offers[i].tokens *= rent->samples;
    return WEFT_OK;
}

static void place_offer(const struct rent *rent, const struct offer *offer,
                        struct weft_place *place)
{
    if (offer->samples > 0) {
        weft_place_add(place, "train.batch=%lld", (long long)rent->samples);
        weft_place_add(place, "train.micro_batch=auto");
    }
    if (offer->recomputes) weft_place_add(place, "plan.recompute=auto");
}

static int fill_arguments(void *context, int32_t index, struct weft_place *place, const char **argv)
{
    const struct rent *rent = context;
    place_offer(rent, &rent->offers[index], place);
    return weft_place_plan(&rent->offers[index].cli, place, false, argv);
}

static struct weft_hash hash_row(void *context, int32_t index)
{
    return weft_kept_key(&((struct rent *)context)->kept, "rent %d", (int)index);
}

static void name_row(void *context, int32_t index, char out[WEFT_ROW_NAME_BYTES])
{
    snprintf(out, WEFT_ROW_NAME_BYTES, "%.150s",
             ((const struct rent *)context)->offers[index].name);
}

static enum weft_status take_plan(struct offer *offer, const struct weft_text *text,
                                  struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_text ways;
    WEFT_TRY(weft_plan_parse(weft_text_chars(text), text->length, offer->name, &plan, err));
    weft_text_init(&ways);
    weft_answer_ways(plan, &ways);
    snprintf(offer->ways, sizeof offer->ways, "%s", weft_text_chars(&ways));
    weft_text_finish(&ways);
    offer->step_ns = plan->prediction.step_ns;
    offer->total_bytes = plan->prediction.total_bytes;
    offer->bound_ns = weft_plan_least_bound_ns(plan);
    weft_plan_destroy(plan);
    if (offer->step_ns > 0) offer->cost = cost_of(offer, offer->step_ns);
    if (offer->bound_ns > 0) offer->least_cost = cost_of(offer, offer->bound_ns);
    return WEFT_OK;
}

static bool never_fits(const struct weft_problem *problem)
{
    struct weft_digest *table = NULL;
    if (weft_digest_create(problem, &table, NULL) != WEFT_OK) return false;
    const bool is_proven = table->least_proven_bytes > weft_digest_limit_bytes(table);
    weft_digest_destroy(table);
    return is_proven;
}

/* Whether no planned variant of a cluster fits. An end without a plan is no proof: there may be no
 * pages, or a rule as planner. */
static bool proves_that_none_fits(const struct rent *rent, const struct offer *offer)
{
    struct weft_place place = {0};
    struct weft_session session = {0};
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    struct weft_error ignored = {0};
    int32_t n = 0;
    place_offer(rent, offer, &place);
    if (weft_place_open(&offer->cli, &place, &session, &ignored) == WEFT_OK &&
        weft_session_stage(&session, NULL, &ignored) == WEFT_OK)
        n = weft_variants_list(session.config, variants);
    bool is_proven = n > 0;
    for (int32_t v = 0; v < n && is_proven; v++)
        is_proven = weft_session_stage_variant(&session, &variants[v], &ignored) == WEFT_OK &&
                    never_fits(session.stages.problem);
    weft_session_close(&session);
    return is_proven;
}

static enum weft_status take_end(void *context, int32_t index, const struct weft_row_end *end,
                                 struct weft_error *err)
{
    struct rent *rent = context;
    struct offer *offer = &rent->offers[index];
    offer->status = end->status;
    offer->needs_bytes = end->needs_bytes;
    if (end->plan != NULL) {
        WEFT_TRY(take_plan(offer, end->plan, err));
        weft_log(WEFT_LOG_INFO, "best: %d of %d: %s: %.2f for a billion tokens", rent->crew.n_done,
                 rent->n, offer->name, offer->cost);
        return WEFT_OK;
    }
    if (end->status == WEFT_E_INFEASIBLE) offer->never_fits = proves_that_none_fits(rent, offer);
    offer->reason = weft_pool_string(&rent->pool, end->reason);
    return offer->reason != NULL ? WEFT_OK : weft_fail_memory(err, "a reason");
}

static enum weft_status plan_offers(struct rent *rent, struct weft_error *err)
{
    int32_t rows[MOST_CLUSTERS];
    for (int32_t i = 0; i < rent->n; i++)
        rows[i] = i;
    weft_crew_begin(&rent->crew);
    return weft_crew_end(&rent->crew, weft_crew_plan(&rent->crew, rows, rent->n, err), err);
}

/* The cheapest comes first, and rows without a plan come last. */
static int compare_offers(const void *a, const void *b)
{
    const struct offer *x = a, *y = b;
    if ((x->step_ns > 0) != (y->step_ns > 0)) return x->step_ns > 0 ? -1 : 1;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

/* The first cluster without a proof: it has neither a bound nor a proof that nothing fits. NULL:
 * all have one. */
static const struct offer *find_unproven(const struct rent *rent)
{
    for (int32_t i = 0; i < rent->n; i++) {
        const struct offer *offer = &rent->offers[i];
        if (!offer->never_fits && offer->least_cost <= 0) return offer;
    }
    return NULL;
}

/* No planned variant on any of the clusters costs less; 0: not proven. */
static double least_cost(const struct rent *rent)
{
    double least = 0;
    if (find_unproven(rent) != NULL) return 0;
    for (int32_t i = 0; i < rent->n; i++) {
        const struct offer *offer = &rent->offers[i];
        if (!offer->never_fits && (least <= 0 || offer->least_cost < least))
            least = offer->least_cost;
    }
    return least;
}

/* The first line: the cheapest plan, and the distance from the least cost. */
static void say_answer(const struct rent *rent, struct weft_answer *answer)
{
    const struct offer *first = &rent->offers[0];
    const double least = least_cost(rent);
    struct weft_text step;
    char proof[WEFT_LIST_BYTES + 96] = "";
    if (first->step_ns == 0) {
        weft_answer_say(answer, "answer", "no cluster has a plan\n");
        return;
    }
    const double percent = least > 0 ? 100 * (1 - least / first->cost) : 0;
    if (least > 0 && percent < 0.005)
        snprintf(proof, sizeof proof, "; no planned variant on these machines is cheaper");
    else if (least > 0)
        snprintf(proof, sizeof proof,
                 "; no planned variant on these machines is more than %.2f %% cheaper", percent);
    else
        snprintf(proof, sizeof proof, "; %s has no proven least cost", find_unproven(rent)->name);
    weft_text_init(&step);
    weft_answer_step(first->step_ns, (double)first->tokens * 1e9 / (double)first->step_ns,
                     first->total_bytes, &step);
    weft_answer_say(answer, "answer", "%s: %.2f for a billion tokens, %s: %s%s\n", first->name,
                    first->cost, first->ways, weft_text_chars(&step), proof);
    weft_text_finish(&step);
    if (least > 0) weft_answer_real(answer, "least_cost", least);
}

enum { NAME, RANKS, PRICE, STEP, RATE, MEMORY, HOURS, COST, LEAST, GAP, REASON, NEEDS, NOTE };

static void add_offer(struct weft_rows *rows, const struct offer *offer, bool is_first)
{
    char bytes[WEFT_UNITS_TEXT_BYTES];
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, NAME, offer->name);
    weft_rows_integer(rows, RANKS, offer->ranks);
    weft_rows_real(rows, PRICE, offer->price);
    weft_rows_word(rows, NOTE, "");
    if (offer->step_ns == 0) {
        weft_rows_word(rows, REASON, offer->reason);
        if (offer->needs_bytes > 0) {
            weft_rows_integer(rows, NEEDS, offer->needs_bytes);
            weft_rows_show(rows, NOTE, WEFT_PAINT_NONE, "no plan fits below %s",
                           weft_units_show_bytes(offer->needs_bytes, bytes));
        } else {
            weft_rows_word(rows, NOTE,
                           offer->status == WEFT_E_INFEASIBLE ? "no plan fits" : "not planned");
        }
        return;
    }
    const double rate = (double)offer->tokens * 1e9 / (double)offer->step_ns;
    weft_rows_integer(rows, STEP, offer->step_ns);
    weft_rows_real(rows, RATE, rate);
    weft_rows_integer(rows, MEMORY, offer->total_bytes);
    weft_rows_real(rows, HOURS, 1e9 / rate / 3600);
    weft_rows_real(rows, COST, offer->cost);
    if (is_first) weft_rows_show(rows, COST, WEFT_PAINT_GOOD, "%.2f", offer->cost);
    if (offer->bound_ns == 0) return;
    weft_rows_real(rows, LEAST, offer->least_cost);
    weft_rows_real(rows, GAP, (double)(offer->step_ns - offer->bound_ns) / (double)offer->bound_ns);
}

static void fill_answer(const struct rent *rent, struct weft_answer *answer)
{
    static const struct weft_column columns[] = {
        [NAME] = {"cluster", "cluster", 'l', WEFT_FIGURE_WORD, 0},
        [RANKS] = {"ranks", "ranks", 'r', WEFT_FIGURE_INTEGER, 0},
        [PRICE] = {"price", "an hour", 'r', WEFT_FIGURE_REAL, 0},
        [STEP] = {"step_ns", "step", 'r', WEFT_FIGURE_NS, 0},
        [RATE] = {"tokens_per_s", "tokens/s", 'r', WEFT_FIGURE_SHORT, 0},
        [MEMORY] = {"total_bytes", "memory", 'r', WEFT_FIGURE_BYTES, 0},
        [HOURS] = {"hours", "hours", 'r', WEFT_FIGURE_REAL, 0},
        [COST] = {"cost", "cost", 'r', WEFT_FIGURE_REAL, 0},
        [LEAST] = {"least_cost", "at least", 'r', WEFT_FIGURE_REAL, 0},
        [GAP] = {"gap", "gap", 'r', WEFT_FIGURE_PERCENT, 0},
        [REASON] = {"reason", NULL, 'l', WEFT_FIGURE_WORD, 0},
        [NEEDS] = {"needs_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
        [NOTE] = {NULL, "", 'l', WEFT_FIGURE_WORD, 0}};
    say_answer(rent, answer);
    weft_answer_integer(answer, "samples", rent->samples);
    struct weft_rows *rows = weft_answer_table(answer, "clusters", columns, NOTE + 1);
    if (rows != NULL) rows->indent = 2;
    for (int32_t i = 0; i < rent->n; i++)
        add_offer(rows, &rent->offers[i], i == 0);
    for (int32_t i = 0; i < rent->n; i++)
        if (rent->offers[i].step_ns == 0 && rent->offers[i].needs_bytes == 0)
            weft_answer_say(answer, NULL, "%s: %s\n", rent->offers[i].name, rent->offers[i].reason);
    weft_answer_say(answer, NULL,
                    "hours, cost: of a billion tokens, in steps of %lld samples; at least: no "
                    "planned variant on the cluster costs less in this model of time\n",
                    (long long)rent->samples);
}

/* Fails with the row that lacks memory, if there is one, and otherwise as the first row was
 * refused. */
static enum weft_status refuse_all(const struct rent *rent, struct weft_error *err)
{
    const struct offer *told = &rent->offers[0];
    for (int32_t i = rent->n - 1; i >= 0; i--)
        if (rent->offers[i].status == WEFT_E_INFEASIBLE) told = &rent->offers[i];
    return weft_fail(err, told->status, "no cluster has a plan: %s: %s", told->name, told->reason);
}

static enum weft_status find_offers(struct rent *rent, struct weft_error *err)
{
    struct weft_answer answer = {0};
    WEFT_TRY(weft_crew_read_jobs(rent->cli->jobs, &rent->crew.jobs, err));
    WEFT_TRY(read_offers(rent, err));
    rent->crew.n_rows = rent->n;
    WEFT_TRY(plan_offers(rent, err));
    qsort(rent->offers, (size_t)rent->n, sizeof *rent->offers, compare_offers);
    fill_answer(rent, &answer);
    WEFT_TRY(weft_cli_emit_answer(rent->cli, &answer, err));
    return rent->offers[0].step_ns > 0 ? WEFT_OK : refuse_all(rent, err);
}

enum weft_status weft_rent_run(const struct weft_cli *cli, struct weft_error *err)
{
    struct rent *rent = calloc(1, sizeof *rent);
    if (rent == NULL) return weft_fail_memory(err, "clusters");
    rent->cli = cli;
    rent->crew = (struct weft_crew){.cli = cli,
                                    .kept = &rent->kept,
                                    .study = rent,
                                    .arguments = fill_arguments,
                                    .key = hash_row,
                                    .name = name_row,
                                    .take = take_end};
    const enum weft_status status = find_offers(rent, err);
    weft_pool_finish(&rent->pool);
    free(rent);
    return status;
}
