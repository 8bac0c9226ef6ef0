/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "problem/problem.h"
#include "problem/stages.h"
#include "spec/config_batch.h"
#include "tests/program/random_model.h"

Test(stages, times_are_the_profiles)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        const struct weft_problem *problem = random.stages.problem;
        const struct weft_shards *shards = random.stages.shards;
        const struct weft_profile *profile = random.profile;
        int64_t owned = 0;
        for (int32_t u = 0; u < problem->n_decisions; u++) {
            const struct weft_unit *unit = &shards->units[u];
            int64_t slice = unit->padded_elements / shards->ranks;
            const struct weft_problem_decision *decision = &problem->decisions[u];
            owned += unit->trainable ? slice : 0;
            for (int32_t k = 0; k < decision->n_strategies; k++) {
                const struct weft_problem_strategy *of = &decision->strategies[k];
                int64_t elements = of->policy == WEFT_POLICY_DP ? unit->padded_elements : slice;
                cr_assert_str_eq(of->name, weft_policy_name(of->policy));
                cr_assert_eq(of->n_times, unit->trainable ? 1 : 0);
                if (!unit->trainable) continue;
                cr_assert_eq(of->times[0].slot, decision->update_slot);
                cr_assert_eq(of->times[0].ns, weft_curve_at(&profile->update, elements));
            }
        }
        cr_assert_eq(problem->slot_ns[random.stages.period->norm],
                     problem->period.rotated ? 0 : weft_curve_at(&profile->norm, owned));
        for (int32_t i = 0; i < problem->n_items; i++) {
            const struct weft_item *item = &problem->items[i].item;
            cr_assert_eq(problem->items[i].block_ns,
                         weft_curve_at(&profile->collectives[item->kind], item->block_bytes));
        }
        cr_assert_eq(problem->agree_ns, profile->agree_ns);
        cr_assert(weft_hash_equal(problem->config_hash, random.config->hash));
        random_case_finish(&random);
    }
}

Test(stages, slots_are_named)
{
    struct random_case random;
    random_case_init_plain(&random, 5);
    const struct weft_problem *problem = random.stages.problem;
    const struct weft_period *period = random.stages.period;
    cr_assert_str_eq(problem->slot_names[period->fill], "fill");
    cr_assert_str_eq(problem->slot_names[period->forward[0]], "F:wte");
    cr_assert_str_eq(problem->slot_names[period->backward[0]], "B:wte");
    cr_assert(strncmp(problem->slot_names[0], "U:", 2) == 0);
    cr_assert_str_eq(problem->slot_names[0] + 2, problem->decisions[problem->slots[0].index].name);
    random_case_finish(&random);
}

Test(stages, missing_layer_is_named)
{
    struct random_case random;
    struct weft_error err = {0};
    struct weft_stages stages = {0};
    random_case_init(&random, 5);
    random.profile->layers[0].key = "something else";
    cr_assert_eq(weft_stages_create(random.config, random.profile, &stages, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "no times for layer wte") != NULL, "%s", err.text);
    cr_assert(strstr(err.text, "weft profile") != NULL, "%s", err.text);
    cr_assert_null(stages.problem);
    weft_stages_finish(&stages);
    random_case_finish(&random);
}

Test(stages, other_ranks_are_refused)
{
    struct random_case random;
    struct weft_error err = {0};
    struct weft_stages stages = {0};
    random_case_init(&random, 5);
    random.profile->ranks = 17;
    cr_assert_eq(weft_stages_create(random.config, random.profile, &stages, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "17 ranks") != NULL, "%s", err.text);
    random_case_finish(&random);
}

/* Each lane has a communicator. hsdp, nodes and averages need further ones. */
Test(stages, each_communicator_has_staging_memory)
{
    enum { STAGING = 4096 };
    struct random_case random;
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    random_case_init_plain(&random, 5);
    struct weft_config *config = random.config;
    cr_assert_geq(weft_variants_list(config, variants), 1);
    const struct {
        int64_t channels, every, communicators;
        const char *policies;
    } cases[] = {{1, 0, 1, "fsdp"},  {2, 0, 2, "fsdp"}, {1, 0, 4, "fsdp,hsdp"}, {2, 0, 6, "hsdp"},
                 {2, 0, 6, "nodes"}, {1, 8, 3, "fsdp"}, {2, 8, 4, "fsdp"}};
    random.profile->staging_bytes = STAGING;
    config->cluster.ranks = 4;
    config->cluster.ranks_per_node = 2;
    config->cluster.link.intra = (struct weft_link){.alpha_ns = 1000, .bytes_per_s = 1e9};
    config->cluster.link.inter = config->cluster.link.intra;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config->cluster.channels = cases[i].channels;
        config->train.every = cases[i].every;
        config->plan.policies = cases[i].policies;
        cr_assert_eq(weft_stages_weigh_options(config, random.profile, &variants[0]).staging_bytes,
                     STAGING * cases[i].communicators, "case %zu", i);
    }
    random_case_finish(&random);
}

Test(stages, variants_are_what_the_config_leaves_open)
{
    struct random_case random;
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    random_case_init_plain(&random, 5);
    struct weft_train *train = &random.config->train;
    cr_assert_eq(weft_variants_list(random.config, variants), 1);
    cr_assert_eq(variants[0].rule.group, 1);
    cr_assert_not(variants[0].rule.rotated);
    train->grad_accum = 3;
    cr_assert_eq(weft_variants_list(random.config, variants), 2);
    cr_assert_eq(variants[0].rule.group, 1, "which holds less");
    cr_assert_eq(variants[0].rule.n_micro, 3);
    /* dp alone cannot be reduced every micro-step. */
    random.config->plan.policies = "dp";
    cr_assert_eq(weft_variants_list(random.config, variants), 1);
    cr_assert_eq(variants[0].rule.group, 3);
    train->cadence = WEFT_CADENCE_MICRO_STEP;
    cr_assert_eq(weft_variants_list(random.config, variants), 1);
    cr_assert_eq(variants[0].rule.group, 1);
    struct weft_stages stages;
    struct weft_error err = {0};
    cr_assert_eq(weft_stages_create(random.config, random.profile, &stages, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "set train.reduce to \"step\"") != NULL, "%s", err.text);
    train->clip_norm = 0;
    int32_t n = weft_variants_list(random.config, variants);
    cr_assert_geq(n, 1);
    for (int32_t v = 0; v < n; v++) {
        cr_assert(variants[v].rule.rotated && variants[v].rule.update_ahead >= 1 &&
                  variants[v].rule.update_ahead <= random.config->model->n_layers);
    }
    random.config->plan.update_ahead = 1;
    cr_assert_eq(weft_variants_list(random.config, variants), 1);
    cr_assert_eq(variants[0].rule.update_ahead, 1);
    random_case_finish(&random);
}

/* Makes a plain case with so many layers or more, and returns its config. */
static struct weft_config *init_with_layers(struct random_case *random, int32_t n_layers)
{
    for (uint64_t seed = 1;; seed++) {
        random_case_init_plain(random, seed);
        if (random->config->model->n_layers >= n_layers) return random->config;
        random_case_finish(random);
    }
}

Test(stages, the_order_of_micro_steps_may_be_open)
{
    struct random_case random;
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    struct weft_config *config = init_with_layers(&random, 3);
    config->train.grad_accum = 3;
    config->plan.micro_step_order = WEFT_ORDER_AUTO;
    cr_assert_eq(weft_variants_list(config, variants), 3);
    cr_assert(variants[0].rule.layers == 0 && variants[1].rule.layers == 0);
    cr_assert(variants[2].rule.layers == 1 && variants[2].rule.group == 3);
    config->train.cadence = WEFT_CADENCE_MICRO_STEP;
    cr_assert_eq(weft_variants_list(config, variants), 1, "turns add up one gradient");
    config->train.cadence = WEFT_CADENCE_AUTO;
    config->train.clip_norm = 0;
    const int32_t n = weft_variants_list(config, variants);
    cr_assert(n % 3 == 0 && n <= WEFT_MOST_VARIANTS, "%d", n);
    config->kept.turns = true; /* by a checkpoint */
    cr_assert_eq(weft_variants_list(config, variants), n / 3 * 2);
    config->kept.layers = 1;
    config->train.cadence = WEFT_CADENCE_MICRO_STEP; /* the config asks for other sums */
    const int32_t n_other = weft_variants_list(config, variants);
    for (int32_t v = 0; v < n_other; v++)
        cr_assert(variants[v].rule.layers == 0 && variants[v].rule.group == 1);
    config->train.cadence = WEFT_CADENCE_AUTO;
    config->plan.micro_step_order = 2;
    cr_assert_eq(weft_variants_list(config, variants), n / 3);
    cr_assert(variants[0].rule.layers == 2 && variants[0].rule.group == 3);
    config->train.grad_accum = 1;
    cr_assert(weft_variants_list(config, variants) > 0 && variants[0].rule.layers == 0);
    random_case_finish(&random);
}

/* Checks the times of all slots of layers: those of passes set by the test below, or plain ones. */
static void expect_layer_times(const struct weft_config *config, const struct weft_profile *profile,
                               bool in_passes)
{
    struct weft_error err = {0};
    struct weft_stages stages = {0};
    const struct weft_batch batch = weft_config_batch(config);
    cr_assert_eq(weft_stages_create(config, profile, &stages, &err), WEFT_OK, "%s", err.text);
    for (int32_t s = 0; s < stages.problem->n_slots; s++) {
        const struct weft_slot slot = stages.problem->slots[s];
        const bool backward = slot.kind == WEFT_SLOT_BACKWARD;
        struct weft_pool pool = {0};
        if (slot.kind != WEFT_SLOT_FORWARD && !backward) continue;
        const char *key = weft_layer_key(&pool, &config->model->layers[slot.index], &batch);
        const struct weft_layer_times *plain = weft_profile_layer(profile, key);
        const int64_t in_pass = (slot.micro > 0 ? 701 : 1001) + 1000 * backward;
        const int64_t in_step = backward ? plain->backward_ns : plain->forward_ns;
        cr_assert_eq(stages.problem->slot_ns[s], in_passes ? in_pass : in_step, "slot %d", s);
        weft_pool_finish(&pool);
    }
    weft_stages_finish(&stages);
}

/* In turns, by any number of layers, a slot has the time of its place in the pass. By step it has
 * the plain time, and in turns too without times of passes. */
Test(stages, passes_have_their_own_times)
{
    struct random_case random;
    struct weft_config *config = init_with_layers(&random, 4);
    struct weft_profile *profile = random.profile;
    const int64_t orders[] = {WEFT_ORDER_BY_STEP, WEFT_ORDER_BY_LAYER, 2,
                              config->model->n_layers - 1};
    config->train.grad_accum = 3;
    for (int timed = 0; timed < 2; timed++) {
        for (int32_t k = 0; k < profile->n_layers; k++) {
            struct weft_level_times *at = &profile->layers[k].levels[WEFT_RECOMPUTE_NONE];
            at->pass_first = (struct weft_pass_times){1001 * timed, 2001 * timed};
            at->pass_later = (struct weft_pass_times){701 * timed, 1701 * timed};
        }
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
            config->plan.micro_step_order = orders[i];
            expect_layer_times(config, profile, timed && orders[i] != WEFT_ORDER_BY_STEP);
        }
    }
    random_case_finish(&random);
}

static const char updated_there[] =
    "{\"version\":1,\"model\":{\"layers\":["
    "{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":64,\"hidden\":32},"
    "{\"name\":\"h.{i}\",\"type\":\"transformer_block\",\"repeat\":3,\"hidden\":32,\"heads\":2,"
    "\"ffn\":64},{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":64,\"hidden\":32}]},"
    "\"cluster\":{\"ranks\":2,\"device\":{\"flops\":{\"f32\":\"50G\"},"
    "\"memory_bandwidth\":\"10GB/s\"},\"link\":{\"intra\":{\"alpha\":\"20us\",\"bandwidth\":"
    "\"1GB/s\"}},\"host\":{\"memory_limit\":\"1GB\",\"update\":\"1GB/s\",\"down\":{\"bandwidth\":"
    "\"1GB/s\"},\"up\":{\"bandwidth\":\"1GB/s\"}}},\"train\":{\"micro_batch\":2,\"seq_len\":16},"
    "\"plan\":{\"fuse\":false,\"offload\":{\"state\":[\"host\"],\"update\":[\"host\"],"
    "\"activations\":[\"device\"]}}}";

/* Checks the problem with the first item of a kind moved by so many slots at one end. */
static void check_moved(struct weft_problem *problem, int32_t kind, int32_t first, int32_t last,
                        const char *fault)
{
    struct weft_error err = {0};
    int32_t i = 0;
    while (problem->items[i].item.kind != kind)
        cr_assert_lt(++i, problem->n_items);
    struct weft_item *item = &problem->items[i].item;
    const struct weft_item good = *item;
    const int32_t update = problem->decisions[good.decision].update_slot;
    if (first != INT32_MIN) item->first = update + first;
    if (last != INT32_MIN) item->last = update + last;
    cr_assert_eq(weft_problem_check(problem, "it", &err), fault == NULL ? WEFT_OK : WEFT_E_DATA,
                 "kind %d, %s", kind, err.text);
    cr_assert(fault == NULL || strstr(err.text, fault) != NULL, "%s", err.text);
    *item = good;
}

/* The stages of a config for state on the host. */
struct hosted {
    struct weft_config *config;
    struct weft_profile *profile;
    struct weft_stages stages;
};

static void open_hosted(struct hosted *it, const char *const *settings, int n_settings)
{
    struct weft_error err = {0};
    *it = (struct hosted){0};
    enum weft_status status = weft_config_parse(updated_there, sizeof updated_there - 1, "it", "/",
                                                settings, n_settings, &it->config, &err);
    if (status == WEFT_OK) status = weft_profile_resolve(it->config, &it->profile, &err);
    if (status == WEFT_OK) status = weft_stages_create(it->config, it->profile, &it->stages, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
}

static void close_hosted(struct hosted *it)
{
    weft_stages_finish(&it->stages);
    weft_profile_destroy(it->profile);
    weft_config_destroy(it->config);
}

/* A session has room for the bounds of all variants that it may plan. */
Test(stages, a_config_has_no_more_variants_than_a_session_keeps)
{
    static const char *const settings[] = {"train.clip_norm=0",
                                           "train.grad_accum=4",
                                           "plan.micro_step_order=auto",
                                           "plan.update_in=auto",
                                           "plan.block_scale=auto",
                                           "plan.offload.state=[\"device\",\"host\"]",
                                           "plan.offload.update=[\"device\"]"};
    struct hosted it;
    struct weft_variant first[WEFT_MOST_VARIANTS], more[WEFT_MOST_VARIANTS];
    open_hosted(&it, settings, sizeof settings / sizeof *settings);
    const int32_t n = weft_variants_list(it.config, first);
    int32_t most_alike = 0;
    cr_assert_eq(n, WEFT_MOST_VARIANTS);
    for (int32_t v = 0; v < n; v++) {
        cr_assert_eq(weft_variants_list_scales(it.config, &first[v], more), WEFT_MOST_SCALED);
        struct weft_variant chosen = first[v];
        chosen.scale = WEFT_BLOCKS_WHOLE;
        const int32_t n_alike = weft_variants_list_more(it.config, &chosen, more);
        if (n_alike > most_alike) most_alike = n_alike;
    }
    cr_assert_eq(most_alike, WEFT_MOST_ALIKE);
    cr_assert_eq(n + 2 * (WEFT_MOST_SCALED + most_alike + 2), WEFT_MOST_PLANNED); /* both orders */
    close_hosted(&it);
}

/* In both periods a gradient is down before its update on the host, which begins after that. */
Test(stages, windows_of_updates_on_the_host_are_on_their_side_of_them)
{
    enum { AS_IT_IS = INT32_MIN };
    for (int rotated = 0; rotated < 2; rotated++) {
        struct hosted it;
        open_hosted(&it, &(const char *){rotated ? "train.clip_norm=0" : "train.clip_norm=1"}, 1);
        struct weft_problem *problem = it.stages.problem;
        cr_assert_eq(problem->period.rotated, rotated == 1);
        check_moved(problem, WEFT_GRADIENT_DOWN, AS_IT_IS, AS_IT_IS, NULL);
        if (rotated) {
            check_moved(problem, WEFT_GRADIENT_DOWN, AS_IT_IS, 0, "not on its side of");
            check_moved(problem, WEFT_HOST_UPDATE, -1, AS_IT_IS, "not on its side of");
        } else {
            check_moved(problem, WEFT_GRADIENT_DOWN, 0, AS_IT_IS, "goes down before the update");
        }
        close_hosted(&it);
    }
}

/* State that arrives earlier would lie on the device for longer than its hold says. */
Test(stages, state_comes_until_the_slot_before_its_update)
{
    static const char *const settings[] = {"train.clip_norm=0", "plan.offload.update=[\"device\"]"};
    struct hosted it;
    open_hosted(&it, settings, 2);
    check_moved(it.stages.problem, WEFT_STATE_UP, -3, -1, NULL);
    check_moved(it.stages.problem, WEFT_STATE_UP, -3, -2, "no update of its unit is in the slot");
    check_moved(it.stages.problem, WEFT_STATE_UP, -3, 0, "no update of its unit is in the slot");
    close_hosted(&it);
}

/* Copies of one micro-step's activations in the windows of another's. */
Test(stages, saved_activations_move_in_their_own_micro_step)
{
    static const char *const settings[] = {"train.grad_accum=2",
                                           "plan.offload.activations=[\"host\"]"};
    static const int32_t kinds[] = {WEFT_SAVED_DOWN, WEFT_SAVED_UP};
    struct hosted it;
    open_hosted(&it, settings, 2);
    struct weft_problem *problem = it.stages.problem;
    for (int k = 0; k < 2; k++) {
        struct weft_error err = {0};
        int32_t i = 0;
        while (problem->items[i].item.kind != kinds[k])
            cr_assert_lt(++i, problem->n_items);
        struct weft_item *first = &problem->items[i].item, *second = first;
        while ((second = &problem->items[++i].item)->gather != 1)
            cr_assert_lt(i, problem->n_items);
        cr_assert(second->kind == kinds[k] && second->decision == first->decision);
        const struct weft_item good = *first;
        cr_assert_eq(weft_problem_check(problem, "it", &err), WEFT_OK, "%s", err.text);
        first->first = second->first;
        first->last = second->last;
        cr_assert_eq(weft_problem_check(problem, "it", &err), WEFT_E_DATA, "kind %d", kinds[k]);
        cr_assert(strstr(err.text, "its layer's forward or backward") != NULL, "%s", err.text);
        *first = good;
    }
    close_hosted(&it);
}
