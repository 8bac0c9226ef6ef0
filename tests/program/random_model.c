/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/program/random_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "problem/stages.h"
#include "program/lifetime.h"
#include "program/predict.h"
#include "program/trace.h"
#include "spec/config_batch.h"
#include "tests/program/dice.h"
#include "tests/program/random_config.h"

static void fill_curve(struct weft_pool *pool, struct dice *dice, struct weft_curve *curve)
{
    enum { POINTS = 3 };
    int64_t *x = weft_pool_array(pool, POINTS, sizeof *x);
    int64_t *ns = weft_pool_array(pool, POINTS, sizeof *ns);
    cr_assert(x != NULL && ns != NULL);
    for (int i = 0; i < POINTS; i++) {
        x[i] = (i > 0 ? x[i - 1] : 0) + roll(dice, 1, 20000);
        ns[i] = (i > 0 ? ns[i - 1] : 0) + roll(dice, 0, 30000);
    }
    *curve = (struct weft_curve){POINTS, x, ns};
}

/* Times at levels of recomputation, with draws of their own. A level may even be faster. */
static void random_levels(uint64_t seed, struct weft_layer_times *times)
{
    struct dice dice = dice_of(seed, "levels");
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        times->recomputes |= 1 << level;
        times->levels[level].forward_ns =
            chance(&dice, 50) ? times->forward_ns : roll(&dice, 0, 50000);
        times->levels[level].backward_ns =
            times->backward_ns + roll(&dice, chance(&dice, 20) ? -times->backward_ns : 0, 50000);
    }
}

/* Half of the layers have times of passes, at some of their levels. */
static void random_passes(uint64_t seed, struct weft_layer_times *times)
{
    struct dice dice = dice_of(seed, "passes");
    if (chance(&dice, 50)) return;
    for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++) {
        if (chance(&dice, 30)) continue;
        times->levels[level].pass_first =
            (struct weft_pass_times){roll(&dice, 1, 50000), roll(&dice, 1, 100000)};
        times->levels[level].pass_later =
            (struct weft_pass_times){roll(&dice, 1, 50000), roll(&dice, 1, 100000)};
    }
}

struct weft_profile *random_profile(const struct weft_config *config, uint64_t seed)
{
    struct dice dice = dice_of(seed, "profile");
    struct weft_profile *profile = calloc(1, sizeof *profile);
    struct weft_batch batch = weft_config_batch(config);
    cr_assert(profile != NULL);
    profile->source = "random";
    profile->machine = "none";
    profile->ranks = config->cluster.ranks;
    profile->layers =
        weft_pool_array(&profile->pool, (size_t)config->model->n_layers, sizeof *profile->layers);
    cr_assert(profile->layers != NULL);
    for (int32_t l = 0; l < config->model->n_layers; l++) {
        const char *key = weft_layer_key(&profile->pool, &config->model->layers[l], &batch);
        cr_assert(key != NULL);
        if (weft_profile_layer(profile, key) != NULL) continue;
        int64_t forward_ns = roll(&dice, 0, 50000), backward_ns = roll(&dice, 0, 100000);
        struct weft_layer_times *times = &profile->layers[profile->n_layers++];
        *times = (struct weft_layer_times){
            .key = key, .forward_ns = forward_ns, .backward_ns = backward_ns};
        random_levels(seed + (uint64_t)l, times);
        random_passes(seed + (uint64_t)l, times);
    }
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        fill_curve(&profile->pool, &dice, &profile->collectives[kind]);
    fill_curve(&profile->pool, &dice, &profile->update);
    fill_curve(&profile->pool, &dice, &profile->norm);
    bool contend = chance(&dice, 50);
    profile->rates = (struct weft_rates){WEFT_RATE_ONE, WEFT_RATE_ONE};
    if (contend) {
        profile->rates.compute = (int32_t)roll(&dice, WEFT_RATE_ONE / 2, WEFT_RATE_ONE);
        profile->rates.own = (int32_t)roll(&dice, WEFT_RATE_ONE / 2, WEFT_RATE_ONE);
    }
    profile->agree_ns = roll(&dice, 0, 5000);
    profile->base_bytes = roll(&dice, 0, 100) * WEFT_ARENA_ALIGN_BYTES;
    profile->hash = weft_hash_bytes(&seed, sizeof seed);
    return profile;
}

static void fill_stages(struct random_case *random)
{
    struct weft_error err = {0};
    enum weft_status status =
        weft_stages_create(random->config, random->profile, &random->stages, &err);
    cr_assert_eq(status, WEFT_OK, "seed %d: %s", (int)random->seed, err.text);
    random->inputs = weft_lower_inputs_of(random->config, random->profile, &random->stages);
    random->inputs.page_bytes = WEFT_PAGE_LEAST_BYTES;
}

static void parse_case(struct random_case *random, uint64_t seed, bool plain)
{
    struct weft_error err = {0};
    struct weft_text text;
    *random = (struct random_case){.seed = seed};
    weft_text_init(&text);
    random_config(seed, plain, &text);
    enum weft_status status = weft_config_parse(weft_text_chars(&text), text.length, "random.json",
                                                ".", NULL, 0, &random->config, &err);
    cr_assert_eq(status, WEFT_OK, "seed %d: %s\n%s", (int)seed, err.text, weft_text_chars(&text));
    weft_text_finish(&text);
    random->profile = random_profile(random->config, seed);
}

void random_case_init(struct random_case *random, uint64_t seed)
{
    parse_case(random, seed, false);
    fill_stages(random);
}

void random_case_init_plain(struct random_case *random, uint64_t seed)
{
    parse_case(random, seed, true);
    fill_stages(random);
}

void random_case_init_delayed(struct random_case *random, uint64_t seed)
{
    parse_case(random, seed, false);
    random->config->train.delay = 1;
    random->config->train.cadence = WEFT_CADENCE_STEP;
    random->config->train.optimizer.type = WEFT_ADAMW;
    fill_stages(random);
}

static void add_host(struct random_case *random, struct dice *dice)
{
    struct weft_profile_host *host = &random->profile->tiers.host;
    host->given = true;
    fill_curve(&random->profile->pool, dice, &host->down);
    fill_curve(&random->profile->pool, dice, &host->up);
    host->update_bytes_per_s = chance(dice, 70) ? roll(dice, 1, 1000) * 1000000 : 0;
    random->config->cluster.host =
        (struct weft_host_spec){.given = true, .memory_limit_bytes = INT64_C(1) << 50};
    if (chance(dice, 30)) random->config->plan.offload.activations = 1 << WEFT_LOCATION_DEVICE;
}

static void add_disk(struct random_case *random, struct dice *dice)
{
    struct weft_profile_disk *disk = &random->profile->tiers.disk;
    *disk = (struct weft_profile_disk){
        .given = true, .duplex = chance(dice, 50) ? WEFT_DUPLEX_HALF : WEFT_DUPLEX_FULL};
    fill_curve(&random->profile->pool, dice, &disk->read);
    fill_curve(&random->profile->pool, dice, &disk->write);
    random->config->cluster.disk = (struct weft_disk_spec){
        .given = true, .path = ".", .limit_bytes = INT64_C(1) << 50, .duplex = (int)disk->duplex};
}

/* Some configs let all layers recompute, and some of these force it. */
static void add_recompute(struct random_case *random, uint64_t seed)
{
    enum { MOST_LAYERS = 64, ALL = (1 << WEFT_RECOMPUTE_COUNT) - 1 };
    struct dice dice = dice_of(seed, "recompute");
    if (chance(&dice, 50)) return;
    uint8_t *levels = weft_pool_array(&random->config->pool, MOST_LAYERS, sizeof *levels);
    cr_assert(levels != NULL && random->config->model->n_layers <= MOST_LAYERS);
    memset(levels, chance(&dice, 80) ? ALL : (int)roll(&dice, 1, ALL), MOST_LAYERS);
    random->config->recomputes = levels;
}

/* Some configs of an even number of ranks have nodes of 2, and hsdp, or nodes too. */
static void add_nodes(struct random_case *random, uint64_t seed)
{
    struct weft_cluster *cluster = &random->config->cluster;
    struct dice dice = dice_of(seed, "nodes");
    if (chance(&dice, 50) || cluster->ranks % 2 != 0 || cluster->ranks < 4) return;
    cluster->ranks_per_node = 2;
    random->profile->staging_bytes = roll(&dice, 0, 2) * WEFT_ARENA_ALIGN_BYTES;
    cluster->link.intra = (struct weft_link){.alpha_ns = 1000, .bytes_per_s = 1e9};
    cluster->link.inter = (struct weft_link){.alpha_ns = 9000, .bytes_per_s = 1e8};
    random->config->plan.policies =
        chance(&dice, 50)
            ? "hsdp"
            : weft_pool_format(&random->config->pool, "%s,hsdp", random->config->plan.policies);
    struct dice of_nodes = dice_of(seed, "crossing");
    if (chance(&of_nodes, 50))
        random->config->plan.policies =
            weft_pool_format(&random->config->pool, "%s,nodes", random->config->plan.policies);
    cr_assert_not_null(random->config->plan.policies);
}

/* Some configs may have central, next to policies that are not always better. */
static void add_central(struct random_case *random, uint64_t seed)
{
    struct dice dice = dice_of(seed, "central");
    if (!chance(&dice, 30)) return;
    random->config->plan.policies = chance(&dice, 50) ? "dp,sdp,central" : "sdp,fsdp,central";
}

void random_case_init_tiers(struct random_case *random, uint64_t seed)
{
    struct dice dice = dice_of(seed, "tiers");
    const int which = (int)roll(&dice, 1, 3);
    random_case_init(random, seed);
    weft_stages_finish(&random->stages);
    random->config->plan.update_ahead = roll(&dice, 0, 3);
    if ((which & 1) != 0) add_host(random, &dice);
    struct dice of_parameters = dice_of(seed, "parameters");
    if ((which & 1) != 0 && roll(&of_parameters, 0, 1) > 0)
        random->config->plan.offload.parameters =
            1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    struct dice of_inputs = dice_of(seed, "inputs");
    if ((which & 1) != 0 && chance(&of_inputs, 50))
        random->config->plan.offload.inputs =
            1 << WEFT_LOCATION_HOST | (chance(&of_inputs, 70) ? 1 << WEFT_LOCATION_DEVICE : 0);
    if ((which & 2) != 0) add_disk(random, &dice);
    add_recompute(random, seed);
    fill_stages(random);
}

void random_case_init_nodes(struct random_case *random, uint64_t seed)
{
    random_case_init_tiers(random, seed);
    weft_stages_finish(&random->stages);
    add_nodes(random, seed);
    add_central(random, seed);
    fill_stages(random);
}

void random_case_init_turns(struct random_case *random, uint64_t seed)
{
    struct dice dice = dice_of(seed, "turns");
    if (chance(&dice, 20))
        random_case_init_delayed(random, seed);
    else
        random_case_init_nodes(random, seed);
    weft_stages_finish(&random->stages);
    struct weft_train *train = &random->config->train;
    const int32_t n_layers = random->config->model->n_layers;
    train->grad_accum = train->asked.grad_accum = roll(&dice, 2, 4);
    train->cadence = WEFT_CADENCE_STEP;
    train->group = train->idle = 0;
    random->config->plan.micro_step_order =
        n_layers < 3 || chance(&dice, 50) ? WEFT_ORDER_BY_LAYER : roll(&dice, 1, n_layers - 1);
    fill_stages(random);
}

/* Whether units could be updated in backward without clipping. */
static bool may_update_in_backward(const struct weft_config *config)
{
    const struct weft_train *train = &config->train;
    return config->model->n_layers > 1 && train->delay == 0 && train->every == 0 &&
           train->precision.compute != WEFT_F16 &&
           !weft_optimizer_row(train->optimizer.type)->agrees && !weft_config_means(config) &&
           !weft_config_target(config)->is_foreign && !weft_config_target(config)->updates_first;
}

void random_case_init_backward(struct random_case *random, uint64_t seed)
{
    enum { DRAWS = 1000 };
    struct dice dice = dice_of(seed, "backward");
    const bool turns = chance(&dice, 30);
    for (uint64_t draw = seed * DRAWS;; draw++) {
        random_case_init(random, draw);
        const bool found = may_update_in_backward(random->config);
        random_case_finish(random);
        if (!found) continue;
        turns ? random_case_init_turns(random, draw) : random_case_init_nodes(random, draw);
        if (may_update_in_backward(random->config)) break;
        random_case_finish(random);
    }
    weft_stages_finish(&random->stages);
    random->config->train.clip_norm = 0;
    const int64_t after = roll(&dice, 1, random->config->model->n_layers - 1);
    random->config->plan.update_in = chance(&dice, 30) ? WEFT_UPDATE_IN_BACKWARD : after;
    fill_stages(random);
}

void random_case_read(struct random_case *random, const char *path)
{
    struct weft_error err = {0};
    *random = (struct random_case){0};
    enum weft_status status = weft_config_read(path, NULL, 0, &random->config, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    status = weft_profile_analytic(random->config, &random->profile, &err);
    cr_assert_eq(status, WEFT_OK, "%s: %s", path, err.text);
    fill_stages(random);
}

void random_case_finish(struct random_case *random)
{
    weft_stages_finish(&random->stages);
    weft_profile_destroy(random->profile);
    weft_config_destroy(random->config);
}

/* A move and a random moment within its flight. Moves sorted by moment launch before the deadline
 * of every later move. */
struct draw {
    struct weft_move move;
    int32_t moment;
    int32_t depth; /* position in its chain: predecessors come first */
    uint32_t tie;
};

static int by_moment(const void *a, const void *b)
{
    const struct draw *x = a, *y = b;
    if (x->moment != y->moment) return x->moment < y->moment ? -1 : 1;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    return (x->tie > y->tie) - (x->tie < y->tie);
}

/* Draws a block of an item with a moment of at least `least`, the end of its predecessor. */
static struct draw draw_block(struct dice *dice, const struct weft_item *item, int32_t i,
                              int32_t least)
{
    const int32_t first = item->first > least ? item->first : least;
    struct draw draw = {.move.item = i};
    if (item->acquires) {
        const int32_t end = item->last + item->may_block;
        int32_t slot = (int32_t)roll(dice, item->first, end);
        if (first > item->last) slot = end;
        const int32_t from = slot > least ? slot : least;
        draw.moment = (int32_t)roll(dice, from, slot > item->last ? end : item->last);
        draw.move.slot = slot;
    } else {
        draw.move.slot = (int32_t)roll(dice, first, item->last);
        draw.moment = (int32_t)roll(dice, first, draw.move.slot);
        draw.move.launch = (int32_t)roll(dice, item->first, draw.moment);
    }
    draw.tie = (uint32_t)roll(dice, 0, 1 << 30);
    return draw;
}

struct weft_plan *random_placements(const struct random_case *random, const int32_t *strategies,
                                    uint64_t seed)
{
    const struct weft_problem *problem = random->stages.problem;
    struct dice dice = {random->seed, weft_hash_string("placements") + seed, 0};
    int32_t n = 0;
    size_t most = 1;
    for (int32_t i = 0; i < problem->n_items; i++)
        most += (size_t)problem->items[i].item.n_blocks;
    struct draw *draws = calloc(most, sizeof *draws);
    struct weft_move *moves = calloc(most, sizeof *moves);
    cr_assert(draws != NULL && moves != NULL);
    int32_t *moments = calloc(most * (size_t)problem->n_items, sizeof *moments);
    cr_assert_not_null(moments);
    for (int32_t depth = 0, left = 1; left > 0; depth++) {
        left = 0;
        for (int32_t i = 0; i < problem->n_items; i++) {
            const int32_t own = weft_problem_depth(problem, i);
            left += own > depth;
            if (own != depth || !weft_problem_needs(problem, strategies, i)) continue;
            const int32_t after = problem->items[i].after;
            for (int32_t k = 0; k < problem->items[i].item.n_blocks; k++) {
                const int32_t least = after < 0 ? 0 : moments[(size_t)after * most + (size_t)k];
                draws[n] = draw_block(&dice, &problem->items[i].item, i, least);
                draws[n].depth = depth;
                moments[(size_t)i * most + (size_t)k] = draws[n++].moment;
            }
        }
    }
    free(moments);
    qsort(draws, (size_t)n, sizeof *draws, by_moment);
    for (int32_t i = 0; i < n; i++)
        moves[i] = draws[i].move;
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status =
        weft_plan_create(problem, "random", strategies, moves, n, &plan, &err);
    cr_assert_eq(status, WEFT_OK, "seed %d: %s", (int)random->seed, err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    free(draws);
    free(moves);
    return plan;
}

/* Every second unit that may have a policy of few configs has it. Draws of their own, so that other
 * plans do not depend on them. -1: it has not. */
static int32_t draw_rare(const struct weft_problem_decision *unit, enum weft_policy policy,
                         struct dice *dice)
{
    const int32_t k = weft_decision_of_policy(unit, policy);
    return k >= 0 && unit->n_strategies > 1 && chance(dice, 50) ? -1 : k;
}

struct weft_plan *random_plan(const struct random_case *random, uint64_t seed)
{
    const struct weft_problem *problem = random->stages.problem;
    struct dice dice = {random->seed, weft_hash_string("policies") + seed, 0};
    struct dice of_central = {random->seed, weft_hash_string("central units") + seed, 0};
    struct dice of_nodes = {random->seed, weft_hash_string("units of nodes") + seed, 0};
    int32_t *strategies = calloc((size_t)problem->n_decisions + 1, sizeof *strategies);
    cr_assert(strategies != NULL);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *unit = &problem->decisions[u];
        if (problem->n_tiers > 1 || unit->is_of_layer) {
            strategies[u] = (int32_t)roll(&dice, 0, unit->n_strategies - 1);
            continue;
        }
        strategies[u] = draw_rare(unit, WEFT_POLICY_CENTRAL, &of_central);
        if (strategies[u] < 0) strategies[u] = draw_rare(unit, WEFT_POLICY_NODES, &of_nodes);
        while (strategies[u] < 0)
            strategies[u] =
                weft_decision_of_policy(unit, (enum weft_policy)roll(&dice, 0, WEFT_POLICY_HSDP));
    }
    struct weft_plan *plan = random_placements(random, strategies, seed);
    free(strategies);
    return plan;
}

struct weft_program *random_program(const struct random_case *random, const struct weft_plan *plan)
{
    struct weft_program *program = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_program_lower(plan, &random->inputs, &program, &err);
    cr_assert_eq(status, WEFT_OK, "seed %d: %s", (int)random->seed, err.text);
    return program;
}

void tiers_case_init(struct tiers_case *c, uint64_t seed)
{
    random_case_init_nodes(&c->random, seed);
    c->plan = random_plan(&c->random, seed);
    c->program = random_program(&c->random, c->plan);
}

/* Whether parameters of nodes of 2 ranks may be cached. */
static bool may_cache(const struct weft_config *config)
{
    return config->cluster.ranks % 2 == 0 && config->cluster.ranks >= 4 &&
           config->train.precision.compute != WEFT_F32 &&
           !weft_optimizer_row(config->train.optimizer.type)->agrees;
}

void cached_case_init(struct tiers_case *c, uint64_t seed)
{
    enum { DRAWS = 1000 };
    struct random_case *random = &c->random;
    struct dice dice = dice_of(seed, "cached");
    uint64_t draw = seed * DRAWS;
    for (random_case_init(random, draw); !may_cache(random->config);
         random_case_init(random, draw)) {
        random_case_finish(random);
        draw++;
    }
    weft_stages_finish(&random->stages);
    add_host(random, &dice);
    random->config->cluster.ranks_per_node = 2;
    random->config->cluster.link.intra = (struct weft_link){.alpha_ns = 1000, .bytes_per_s = 1e9};
    random->config->cluster.link.inter = (struct weft_link){.alpha_ns = 9000, .bytes_per_s = 1e8};
    random->config->plan.policies = chance(&dice, 50) ? "nodes" : "fsdp,hsdp,nodes";
    random->config->plan.update_ahead = roll(&dice, 0, 3);
    random->config->plan.offload.parameters = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    fill_stages(random);
    c->plan = random_plan(random, seed);
    c->program = random_program(random, c->plan);
}

static bool may_average(const struct weft_config *config)
{
    return config->cluster.ranks % 2 == 0 && config->cluster.ranks >= 4 &&
           config->train.precision.compute != WEFT_F16;
}

void averaged_case_init(struct tiers_case *c, uint64_t seed)
{
    enum { DRAWS = 1000 };
    struct random_case *random = &c->random;
    struct dice dice = dice_of(seed, "averaged");
    const bool delayed = chance(&dice, 20);
    uint64_t draw = seed * DRAWS;
    for (;; draw++) {
        delayed ? random_case_init_delayed(random, draw) : random_case_init(random, draw);
        if (may_average(random->config)) break;
        random_case_finish(random);
    }
    weft_stages_finish(&random->stages);
    struct weft_train *train = &random->config->train;
    train->every = roll(&dice, 1, 5);
    train->fragments = roll(&dice, 1, train->every);
    train->across_rule = chance(&dice, 30) ? WEFT_AVERAGE_GOSSIP : WEFT_AVERAGE_ALL;
    train->across_momentum = chance(&dice, 50) ? 0.9 : 0;
    random->config->cluster.ranks_per_node = 2;
    random->config->cluster.link.inter = (struct weft_link){.alpha_ns = 9000, .bytes_per_s = 1e8};
    random->config->plan.update_ahead = roll(&dice, 0, 3);
    random->profile->ranks = 2;
    fill_stages(random);
    c->plan = random_plan(random, seed);
    c->program = random_program(random, c->plan);
}

void tiers_case_finish(struct tiers_case *c)
{
    weft_program_destroy(c->program);
    weft_plan_destroy(c->plan);
    random_case_finish(&c->random);
}

static void check_rows(const struct tiers_case *c)
{
    const struct weft_problem *problem = c->plan->problem;
    const size_t n = (size_t)problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows), *live = calloc(n, sizeof *live);
    cr_assert(rows != NULL && live != NULL);
    weft_plan_rows(c->plan, 0, rows);
    weft_program_live(c->program, live);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(rows[i], live[i], "seed %d, slot %s, %s: planned %lld, live %lld",
                     (int)c->random.seed, problem->slot_names[i / WEFT_CATEGORY_COUNT],
                     weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)),
                     (long long)rows[i], (long long)live[i]);
    free(rows);
    free(live);
}

void tiers_case_check(const struct tiers_case *c)
{
    const int64_t every = c->plan->problem->period.every, n = every > 0 ? every : 1;
    struct weft_prediction share;
    struct weft_error err = {0};
    int64_t sum_ns = 0;
    check_rows(c);
    int64_t *scratch = calloc(weft_simulate_words(c->plan->problem), sizeof *scratch);
    cr_assert_not_null(scratch);
    for (int64_t step = 0; step < n; step++) {
        struct weft_trace *trace = NULL;
        struct weft_trace_summary summary;
        struct weft_prediction planned;
        cr_assert_eq(weft_simulate_step(c->program, step, &trace, &err), WEFT_OK);
        weft_trace_summarise(c->program, trace, &summary);
        weft_simulate_plan_step(c->plan, step, scratch, &planned);
        cr_assert_eq(summary.step_ns, planned.step_ns);
        cr_assert_eq(summary.exposed_ns, planned.exposed_ns);
        cr_assert(every > 0 || planned.exposed_ns == c->plan->prediction.exposed_ns);
        sum_ns += planned.step_ns;
        weft_trace_destroy(trace);
    }
    cr_assert_eq(c->plan->prediction.step_ns, (sum_ns + n - 1) / n);
    weft_simulate_plan(c->plan, scratch, &share);
    cr_assert(weft_problem_contends(c->plan->problem) ||
              share.step_ns <= c->plan->prediction.step_ns);
    free(scratch);
}
