/* SPDX-License-Identifier: Apache-2.0 */
/* Random whole configs, planned for PyTorch's FSDP2: every plan keeps the rules of spec/target.h.
 *
 * build/tests/library/test-library-targets [FROM TO]
 *
 * A plan has the policies, blocks and slots of FSDP2 and no program. Its file reads back as the
 * same text and proves the bound. ilp is never slower than planner fsdp2 at one limit. The events
 * of a step (launches, copies, releases, as FSDP2 makes them) are replayed one by one, and no
 * moment holds more than the row of its slot. The hooks of its export run the same step. The
 * program tells the cost of the target against Weft's own plans within the same limit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/session.h"
#include "library/target_cost.h"
#include "plan/events.h"
#include "problem/early.h"
#include "program/predict.h"
#include "report/export/fsdp2_run.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"
#include "tests/effort.h"
#include "tests/runtime/exec/job.h"
#include "tests/scheduler/random_whole.h"

static int n_late, n_more; /* plans with late reductions, and with two under way */
static int n_early;        /* gathers that begin before compute reaches their hook */
static int n_ascended;     /* bounds that ascent raised */
static int n_recomputed;   /* layers, in plans of configs that let all recompute */
static double costs[4096]; /* of the target, by config: step of its plan over that of Weft's own */
static int n_costs;

enum { USUAL_SEEDS = 21, MOST_UNITS = 4096 };

static const char *const overrides[] = {
    "plan.for=fsdp2",
    "plan.offload={\"state\": [\"device\"], \"activations\": [\"device\"]}",
    "plan.work_limit=10M",
    "train.delay=0",
    "plan.policies=dp,zero1,sdp,fsdp",
    "plan.recompute=none,selective,whole", /* the last; all levels take minutes */
};
enum { N_OVERRIDES = sizeof overrides / sizeof *overrides };

/* Opens a seed's config for FSDP2. False if its layers cannot be planned so. */
static bool open_session(uint64_t seed, bool recomputes, struct weft_session *session)
{
    struct weft_text text;
    struct weft_error why = {0};
    *session = (struct weft_session){0};
    weft_text_init(&text);
    OK(random_whole_write(seed, &text, &err));
    char *own = strstr(text.data, "adam_mini\""); /* of Weft alone */
    if (own != NULL) memcpy(own, "adamw\"    ", strlen("adam_mini\""));
    const enum weft_status status =
        weft_config_parse(weft_text_chars(&text), text.length, "random.json", ".", overrides,
                          recomputes ? N_OVERRIDES : N_OVERRIDES - 1, &session->config, &why);
    weft_text_finish(&text);
    CHECK(status == WEFT_OK || strstr(why.text, "recompute") != NULL, "%s", why.text);
    if (status != WEFT_OK) return false;
    const enum weft_status staged = weft_session_stage(session, NULL, &why);
    CHECK(staged == WEFT_OK || strstr(why.text, "one of them is frozen") != NULL, "%s", why.text);
    return staged == WEFT_OK;
}

/* A limit between the least one of all periods and the double of it. */
static int64_t choose_limit(uint64_t seed, struct weft_session *session)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    const int32_t n = weft_variants_list(session->config, variants);
    int64_t least_bytes = INT64_MAX;
    for (int32_t v = 0; v < n; v++) {
        OK(weft_session_stage_variant(session, &variants[v], &err));
        const int64_t bytes = weft_least_limit(session->stages.problem, 0, NULL);
        if (bytes < least_bytes) least_bytes = bytes;
    }
    return least_bytes + (int64_t)(seed % 5) * (least_bytes / 32);
}

static void check_unit(const struct weft_session *session, int32_t unit)
{
    const struct weft_problem_strategy *of = weft_plan_chosen(session->plan, unit);
    const struct weft_unit *at = &session->stages.shards->units[unit];
    CHECK(of->policy == WEFT_POLICY_SDP || of->policy == WEFT_POLICY_FSDP, "%s", of->name);
    CHECK(at->n_blocks == 1, "%s has %d blocks", at->name, at->n_blocks);
    CHECK(at->n_layers == 1 || of->policy == WEFT_POLICY_SDP, "%s is shared and fsdp", at->name);
}

static void check_placement(const struct weft_session *session, const struct weft_placement *at)
{
    const struct weft_problem *problem = session->plan->problem;
    const struct weft_item *item = &problem->items[at->item].item;
    const enum weft_slot_kind kind = problem->slots[at->launch].kind;
    CHECK(kind != WEFT_SLOT_UPDATE && kind != WEFT_SLOT_NORM, "a launch in slot %s",
          problem->slot_names[at->launch]);
    if (item->acquires) {
        CHECK(kind != WEFT_SLOT_DRAIN, "a gather in drain");
        return;
    }
    CHECK(problem->slots[at->launch - 1].kind == WEFT_SLOT_BACKWARD, "a reduction in %s",
          problem->slot_names[at->launch]);
}

static void check_rules(const struct weft_session *session)
{
    const struct weft_plan *plan = session->plan;
    const struct weft_prediction *said = &plan->prediction;
    CHECK(session->program == NULL && said->arena_bytes == 0, "it has a program");
    CHECK(said->total_bytes == said->peak_bytes &&
              said->total_bytes <= plan->problem->tiers[0].limit_bytes,
          "%lld bytes of %lld", (long long)said->total_bytes,
          (long long)plan->problem->tiers[0].limit_bytes);
    for (int32_t u = 0; u < session->stages.shards->n_units; u++)
        check_unit(session, u);
    for (int32_t i = 0; i < plan->n_placements; i++)
        check_placement(session, &plan->placements[i]);
}

/* Writes the plan, reads it again, and checks that both texts are equal. */
static void check_file(struct weft_session *session)
{
    struct weft_text text, again;
    weft_text_init(&text);
    weft_text_init(&again);
    weft_plan_write(session->plan, &text);
    CHECK(strstr(weft_text_chars(&text), "\"for\": \"fsdp2\"") != NULL, "the file says no target");
    OK(weft_session_take(session, weft_text_chars(&text), text.length, "its file", &err));
    OK(weft_session_check_others(session, "its file", &err));
    OK(weft_plan_check_prediction(session->plan, &err));
    OK(weft_plan_check_bounds(session->plan, &err));
    weft_plan_write(session->plan, &again);
    CHECK(weft_text_ok(&text) && strcmp(weft_text_chars(&text), weft_text_chars(&again)) == 0,
          "the file changes when it is read");
    weft_text_finish(&again);
    weft_text_finish(&text);
}

/* A step of FSDP2, event by event. */
struct replay {
    const struct weft_session *session;
    const struct weft_period *period;
    const struct weft_shards *shards;
    enum weft_dtype compute, reduce, accumulate;
    int64_t *rows;   /* [n_slots]: of parameters and gradients, by the plan */
    int64_t *common; /* [n_slots]: the rest */
    int64_t live_bytes, peak_bytes;
    int64_t gone; /* of common bytes of the slot: not there yet, or free */
    int32_t slot;
    int64_t flat[MOST_UNITS], copied[MOST_UNITS], grad[MOST_UNITS], sum[MOST_UNITS];
    int32_t retained;  /* unit with a flat buffer that is kept; -1: none */
    int64_t inputs[2]; /* of reductions; the first is the older one */
    bool reduced[MOST_UNITS];
};

static int64_t bytes_of(const struct replay *r, int32_t u, enum weft_dtype dtype, bool sliced)
{
    const int64_t elements = r->shards->units[u].padded_elements;
    return weft_arena_round((sliced ? elements / r->shards->ranks : elements) *
                            weft_dtype_bytes(dtype));
}

static void take_bytes(struct replay *r, int64_t *place, int64_t bytes)
{
    *place += bytes;
    r->live_bytes += bytes;
}

static void drop_bytes(struct replay *r, int64_t *place)
{
    r->live_bytes -= *place;
    *place = 0;
}

/* Checks a moment of the slot, or the moment between it and the slot before, when only what both
 * hold in common is there. */
static void look_at(struct replay *r, const char *what, int32_t u)
{
    const int64_t live = r->live_bytes - r->gone, all = live + r->common[r->slot];
    const bool between = strcmp(what, "gather") == 0;
    if (between && r->slot > 0 && r->live_bytes <= r->rows[r->slot - 1]) return;
    CHECK(live <= r->rows[r->slot], "%s of %s in %s: %lld bytes, row %lld", what,
          r->shards->units[u].name, r->session->plan->problem->slot_names[r->slot], (long long)live,
          (long long)r->rows[r->slot]);
    if (all > r->peak_bytes) r->peak_bytes = all;
}

static bool is_read_back(const struct weft_unit *unit)
{
    for (int32_t i = 0; i < unit->n_layers; i++)
        if (unit->reads_in_backward[i]) return true;
    return false;
}

static bool keeps_unit(const struct replay *r, int32_t u)
{
    return weft_plan_chosen(r->session->plan, u)->policy == WEFT_POLICY_SDP &&
           is_read_back(&r->shards->units[u]);
}

/* Launches the gathers that the plan puts into this slot for later ones. */
static void launch_list(struct replay *r)
{
    const struct weft_plan *plan = r->session->plan;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &plan->problem->items[at->item].item;
        if (!item->acquires || at->launch != r->slot || weft_placement_blocks(at)) continue;
        take_bytes(r, &r->flat[item->decision], bytes_of(r, item->decision, r->compute, false));
        look_at(r, "prefetch", item->decision);
    }
}

static struct weft_layer_work work_of(const struct replay *r, int32_t layer)
{
    struct weft_layer_work work;
    const struct weft_problem *problem = r->session->plan->problem;
    OK(weft_layer_work(&r->session->config->model->layers[layer], &r->session->stages.variant.batch,
                       &work, &err));
    for (int32_t d = r->shards->n_units; d < problem->n_decisions; d++) {
        const enum weft_recompute level = weft_plan_chosen(r->session->plan, d)->recompute;
        if (problem->decisions[d].layer != layer || level == WEFT_RECOMPUTE_NONE) continue;
        CHECK(level == WEFT_RECOMPUTE_WHOLE, "a part of layer %d recomputes", layer);
        work = weft_layer_work_at(&work, level);
        work.freed_bytes = 0; /* backward restores them first */
    }
    return work;
}

static void gather_unit(struct replay *r, int32_t u, bool forward)
{
    if (r->copied[u] != 0) return;
    if (r->flat[u] == 0) take_bytes(r, &r->flat[u], bytes_of(r, u, r->compute, false));
    if (forward) { /* its layer has made nothing yet */
        const struct weft_layer_work work = work_of(r, r->shards->units[u].layers[0]);
        r->gone = work.output_bytes + work.saved_bytes + work.forward_temporary_bytes;
    }
    look_at(r, "gather", u);
    r->gone = 0;
    if (forward && r->retained >= 0) drop_bytes(r, &r->flat[r->retained]);
    take_bytes(r, &r->copied[u], bytes_of(r, u, r->compute, false));
    if (!forward) {
        const int32_t layer = r->shards->units[u].layers[r->shards->units[u].n_layers - 1];
        const struct weft_layer_work work = work_of(r, layer);
        r->gone = work.backward_temporary_bytes - work.freed_bytes;
        if (layer > 0) r->gone += work_of(r, layer - 1).output_bytes;
    }
    look_at(r, "copy out", u);
    r->gone = 0;
    if (forward)
        r->retained = u;
    else
        drop_bytes(r, &r->flat[u]);
}

/* Copies a gradient in and launches its reduction. */
static void reduce_unit(struct replay *r, int32_t u, bool adds)
{
    int64_t shard = 0;
    const struct weft_layer_work work = work_of(r, r->shards->units[u].layers[0]);
    if (r->session->plan->problem->slots[r->slot].kind == WEFT_SLOT_BACKWARD)
        r->gone = work.saved_bytes - work.freed_bytes + work.backward_temporary_bytes;
    if (r->period->rule.more_inputs == 0) drop_bytes(r, &r->inputs[1]);
    drop_bytes(r, &r->inputs[0]);
    r->inputs[0] = r->inputs[1];
    r->inputs[1] = 0;
    take_bytes(r, &r->inputs[1], bytes_of(r, u, r->reduce, false));
    look_at(r, "copy in", u);
    drop_bytes(r, adds || r->sum[u] > 0 ? &r->sum[u] : &r->grad[u]);
    take_bytes(r, &shard, bytes_of(r, u, r->reduce, true));
    look_at(r, "output", u);
    drop_bytes(r, &shard);
    r->gone = 0;
    if (!r->reduced[u]) r->live_bytes += bytes_of(r, u, r->accumulate, true);
    r->reduced[u] = true;
}

/* Whether backward is finalized by hand: some unit is late, besides the first one that trains. */
static bool finalizes_by_hand(const struct replay *r)
{
    int32_t n = 0;
    for (int32_t u = 0; u < r->shards->n_units; u++)
        n += r->shards->units[u].trainable;
    return r->period->rule.late && n > 1;
}

/* After the last backward of a unit: releases it, and reduces or adds up its gradient. */
static void end_backward(struct replay *r, int32_t u, int32_t micro, bool at_end, bool adds)
{
    const bool reduces = !adds || micro + 1 == r->period->rule.n_micro;
    const bool late = finalizes_by_hand(r) && r->shards->units[u].trainable;
    if (!late || !at_end || !reduces) drop_bytes(r, &r->copied[u]);
    if (!r->shards->units[u].trainable) return;
    if (adds || (late && !at_end)) {
        if (r->sum[u] == 0) {
            if (r->compute == r->reduce) drop_bytes(r, &r->grad[u]);
            take_bytes(r, &r->sum[u], bytes_of(r, u, r->reduce, false));
            look_at(r, "sum", u);
        }
        drop_bytes(r, &r->grad[u]);
    }
    if (reduces && !at_end && !late) reduce_unit(r, u, adds);
}

static bool has_trainable_before(const struct replay *r, int32_t u)
{
    for (int32_t v = 0; v < u; v++)
        if (r->shards->units[v].trainable) return true;
    return false;
}

static int32_t unit_with_layer(const struct replay *r, int32_t layer, bool last)
{
    for (int32_t u = 0; u < r->shards->n_units; u++) {
        const struct weft_unit *unit = &r->shards->units[u];
        if (unit->layers[last ? unit->n_layers - 1 : 0] == layer) return u;
    }
    return -1;
}

static void replay_forward(struct replay *r, int32_t layer)
{
    const int32_t begins = unit_with_layer(r, layer, false), ends = unit_with_layer(r, layer, true);
    if (begins >= 0) gather_unit(r, begins, true);
    launch_list(r);
    look_at(r, "compute", 0);
    if (ends >= 0 && !keeps_unit(r, ends)) drop_bytes(r, &r->copied[ends]);
    if (layer + 1 < r->period->n_layers || r->retained < 0) return;
    drop_bytes(r, &r->flat[r->retained]);
    r->retained = -1;
}

static void replay_backward(struct replay *r, int32_t layer, int32_t micro, bool adds)
{
    const int32_t begins = unit_with_layer(r, layer, true), ends = unit_with_layer(r, layer, false);
    if (begins >= 0 && is_read_back(&r->shards->units[begins])) gather_unit(r, begins, false);
    launch_list(r);
    for (int32_t u = 0; u < r->shards->n_units; u++) {
        const struct weft_unit *unit = &r->shards->units[u];
        int64_t again = 0;
        if (!unit->trainable) continue;
        if (u == begins) take_bytes(r, &r->grad[u], bytes_of(r, u, r->compute, false));
        if (u == ends && unit->n_layers > 1)
            take_bytes(r, &again, bytes_of(r, u, r->compute, false));
        look_at(r, "backward", u);
        drop_bytes(r, &again);
    }
    if (ends >= 0) end_backward(r, ends, micro, !has_trainable_before(r, ends), adds);
    if (layer > 0 || (adds && micro + 1 < r->period->rule.n_micro)) return;
    r->slot++; /* the end of backward */
    for (int32_t u = r->shards->n_units - 1; u >= 0; u--) {
        if (!r->shards->units[u].trainable) continue;
        if (!r->period->rule.late && has_trainable_before(r, u)) continue;
        drop_bytes(r, &r->copied[u]);
        reduce_unit(r, u, adds);
    }
    drop_bytes(r, &r->inputs[0]);
    drop_bytes(r, &r->inputs[1]);
}

/* Splits the plan's rows: shards of parameters and state are always there, and not replayed. */
static void fill_rows(struct replay *r)
{
    const struct weft_plan *plan = r->session->plan;
    const int32_t n_slots = plan->problem->n_slots;
    int64_t *rows = calloc((size_t)n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    CHECK(rows != NULL, "out of memory");
    weft_plan_rows(plan, 0, rows);
    for (int32_t i = 0; i < plan->problem->n_common; i++)
        weft_hold_add(&plan->problem->common[i], n_slots, r->common);
    for (int32_t s = 0; s < n_slots; s++) {
        int64_t all = 0;
        for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
            all += rows[s * WEFT_CATEGORY_COUNT + c];
        const int64_t still = rows[s * WEFT_CATEGORY_COUNT + WEFT_CATEGORY_OPTIMIZER_STATE] +
                              rows[s * WEFT_CATEGORY_COUNT + WEFT_CATEGORY_SHARDED_PARAMETERS];
        r->rows[s] = all - r->common[s] - still;
        r->common[s] += still;
    }
    free(rows);
}

/* The first update finds the reduced gradients of all units. */
static void update_units(struct replay *r)
{
    int64_t reduced = 0;
    if (r->slot > 0 && r->session->plan->problem->slots[r->slot - 1].kind == WEFT_SLOT_UPDATE)
        return;
    for (int32_t u = 0; u < r->shards->n_units; u++)
        if (r->shards->units[u].trainable)
            take_bytes(r, &reduced, bytes_of(r, u, r->accumulate, true));
    look_at(r, "update", 0);
    drop_bytes(r, &reduced);
}

/* `tight`: the limit is near the least, so rows that count too much would show. */
static void check_memory(const struct weft_session *session, bool tight)
{
    const struct weft_problem *problem = session->plan->problem;
    struct replay *r = calloc(1, sizeof *r);
    CHECK(r != NULL && session->stages.shards->n_units <= MOST_UNITS, "too many units");
    r->session = session;
    r->period = session->stages.period;
    r->shards = session->stages.shards;
    r->compute = session->stages.variant.batch.compute;
    r->reduce = (enum weft_dtype)session->config->train.precision.reduce;
    r->accumulate = (enum weft_dtype)session->config->train.precision.accumulate;
    r->retained = -1;
    r->rows = calloc(2 * (size_t)problem->n_slots, sizeof *r->rows);
    CHECK(r->rows != NULL, "out of memory");
    r->common = r->rows + problem->n_slots;
    fill_rows(r);
    const bool adds = r->period->rule.n_micro > 1 && weft_period_reductions(&r->period->rule) == 1;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const struct weft_slot slot = problem->slots[s];
        r->slot = s;
        if (slot.kind == WEFT_SLOT_UPDATE) update_units(r);
        if (slot.kind == WEFT_SLOT_FILL) launch_list(r);
        if (slot.kind == WEFT_SLOT_FORWARD) replay_forward(r, slot.index);
        if (slot.kind == WEFT_SLOT_BACKWARD) replay_backward(r, slot.index, slot.micro, adds);
    }
    const int64_t said = session->plan->prediction.peak_bytes;
    CHECK(!tight || r->period->rule.n_micro > 1 || (double)said <= 1.05 * (double)r->peak_bytes,
          "a peak of %lld bytes is said in %s, and %lld held%s", (long long)said,
          problem->slot_names[session->plan->prediction.peak_slot], (long long)r->peak_bytes,
          r->period->rule.late ? ", late" : "");
    free(r->rows);
    free(r);
}

/* Follows the hooks of the plan's export. They run the plan itself. */
static void check_run(const struct weft_session *session)
{
    struct weft_fsdp2 *fsdp2 = NULL;
    struct weft_plan *run = NULL;
    const struct weft_plan *plan = session->plan;
    OK(weft_fsdp2_create(plan, "plan", &fsdp2, &err));
    CHECK(fsdp2->n_sentences == 0, "%s", fsdp2->sentences[0]);
    OK(weft_fsdp2_run(fsdp2, "plan", plan->problem, &run, &err));
    CHECK(run->prediction.step_ns == plan->prediction.step_ns &&
              run->prediction.peak_bytes == plan->prediction.peak_bytes,
          "%lld ns and %lld bytes as run, %lld ns and %lld bytes planned",
          (long long)run->prediction.step_ns, (long long)run->prediction.peak_bytes,
          (long long)plan->prediction.step_ns, (long long)plan->prediction.peak_bytes);
    weft_plan_destroy(run);
    weft_fsdp2_destroy(fsdp2);
}

/* The plan's blocks, as events let them begin, make a plan of the early form. It is no slower, and
 * holds no more. So bounds of the early form hold for the plan. */
static void check_early(const struct weft_plan *plan)
{
    const struct weft_problem *problem = plan->problem;
    struct weft_problem *early = NULL;
    struct weft_plan *made = NULL;
    const size_t n = (size_t)plan->n_placements;
    int64_t *begins = calloc(n + 1 + weft_events_words(problem), sizeof *begins);
    struct weft_move *moves = calloc(n + 1, sizeof *moves);
    CHECK(begins != NULL && moves != NULL, "out of memory");
    weft_events_find(plan, begins + n, begins);
    for (size_t i = 0; i < n; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const bool gathers = problem->items[at->item].item.acquires;
        n_early += begins[i] < at->launch;
        CHECK(begins[i] <= at->launch && (gathers || begins[i] == at->launch), "begins late");
        moves[i] = (struct weft_move){.item = at->item,
                                      .slot = gathers ? (int32_t)begins[i] : at->deadline - 1,
                                      .launch = at->launch};
    }
    OK(weft_problem_early(problem, &early, &err));
    if (weft_problem_n_moving(problem) > 1)
        for (size_t i = 0; i < n; i++) {
            const struct weft_item *item = &early->items[moves[i].item].item;
            if (!item->acquires) moves[i].launch = item->first;
        }
    OK(weft_plan_create(early, "early", plan->strategies, moves, (int32_t)n, &made, &err));
    OK(weft_plan_predict(made, &err));
    const int64_t step_ns = made->prediction.step_ns;
    CHECK(step_ns <= plan->prediction.step_ns &&
              (weft_problem_contends(problem) || weft_problem_n_moving(problem) > 1 ||
               step_ns == plan->prediction.step_ns),
          "%lld ns by events, and %lld ns in the early form", (long long)plan->prediction.step_ns,
          (long long)step_ns);
    CHECK(made->prediction.peak_bytes <= plan->prediction.peak_bytes, "the early form holds more");
    weft_plan_destroy(made);
    weft_problem_destroy(early);
    free(moves);
    free(begins);
}

/* No random plan is below a bound of its period. */
static void check_random(struct weft_session *session, uint64_t seed)
{
    enum { N_PLANS = 5 };
    struct weft_pool pool = {0};
    struct weft_outcome proven = {.pool = &pool};
    struct weft_work work = {0};
    const struct weft_ascent ascent = {
        .target_ns = session->plan->prediction.step_ns, .units = 1000000, .work = &work};
    OK(weft_prove(session->stages.problem, &ascent, &pool, &proven, &err));
    OK(weft_certificate_check(&proven.certificate, session->stages.problem, proven.bound_ns, NULL,
                              &err));
    CHECK(session->plan->prediction.step_ns >= proven.bound_ns, "greedy's plan below a bound");
    n_ascended += strcmp(proven.bound_by, "dual ascent, weak duality") == 0;
    for (uint64_t k = 0; k < N_PLANS; k++) {
        const struct weft_schedule_options options = {
            .planner = "random", .seed = N_PLANS * seed + k, .draft = true};
        struct weft_plan *plan = NULL;
        struct weft_error why = {0};
        const enum weft_status status =
            weft_schedule(session->stages.problem, NULL, &options, &plan, NULL, &why);
        CHECK(status == WEFT_OK || status == WEFT_E_INFEASIBLE, "%s", why.text);
        if (status != WEFT_OK) continue;
        CHECK(plan->prediction.step_ns >= proven.bound_ns, "a plan below a bound");
        check_early(plan);
        weft_plan_destroy(plan);
    }
    weft_pool_finish(&pool);
}

/* Plans every period, so that each end of backward is checked; of many periods some. Greedy takes
 * minutes for a period of 900 slots. */
static void check_periods(struct weft_session *session, uint64_t seed)
{
    const struct weft_schedule_options options = {.planner = "greedy", .draft = true};
    struct weft_variant variants[2 * WEFT_MOST_VARIANTS];
    int32_t n = weft_variants_list(session->config, variants);
    for (int32_t v = n - 1; v >= 0 && n < WEFT_MOST_VARIANTS; v--)
        n += weft_variants_list_scales(session->config, &variants[v], variants + n);
    const int32_t every = TEST_CASES_OF(1, 1 + n / 6, 1 + n / 3);
    for (int32_t v = (int32_t)(seed % (uint64_t)every); v < n; v += every) {
        struct weft_error why = {0};
        OK(weft_session_stage_variant(session, &variants[v], &err));
        if (session->stages.problem->n_slots > TEST_CASES_OF(INT32_MAX, 600, 300)) continue;
        const enum weft_status status =
            weft_schedule(session->stages.problem, NULL, &options, &session->plan, NULL, &why);
        CHECK(status == WEFT_OK || status == WEFT_E_INFEASIBLE, "%s", why.text);
        if (status != WEFT_OK) continue;
        check_memory(session, false);
        check_run(session);
        check_early(session->plan);
        check_random(session, (uint64_t)v);
        n_late += variants[v].rule.late;
        n_more += variants[v].rule.more_inputs;
    }
}

static bool check_seed(uint64_t seed)
{
    struct weft_session session;
    struct weft_error why = {0};
    const bool opens = open_session(seed, false, &session);
    if (opens) {
        OK(weft_config_set_memory_limit(session.config, choose_limit(seed, &session), &err));
        OK(weft_session_stage(&session, NULL, &err));
        OK(weft_session_plan(&session, "ilp", &err));
        const int64_t step_ns = session.plan->prediction.step_ns;
        const int64_t bound_ns = weft_plan_least_bound_ns(session.plan);
        CHECK(bound_ns > 0 && bound_ns <= step_ns, "a bound of %lld", (long long)bound_ns);
        OK(weft_session_add_cost(&session, &err));
        if (session.plan->free_step_ns > 0 && n_costs < (int)(sizeof costs / sizeof *costs))
            costs[n_costs++] = (double)step_ns / (double)session.plan->free_step_ns - 1;
        check_rules(&session);
        check_memory(&session, true);
        check_run(&session);
        check_early(session.plan);
        check_file(&session);
        const enum weft_status status = weft_session_plan(&session, "fsdp2", &why);
        CHECK(status == WEFT_OK || status == WEFT_E_INFEASIBLE, "%s", why.text);
        if (status == WEFT_OK) {
            check_rules(&session);
            check_memory(&session, true);
            check_run(&session);
            /* ilp stops at its gap. */
            const double most = (1 + session.config->plan.gap) * (double)bound_ns;
            CHECK(session.plan->prediction.step_ns >= bound_ns, "fsdp2 is below the bound");
            CHECK(session.plan->prediction.step_ns >= step_ns || (double)step_ns <= most,
                  "fsdp2 %lld ns, ilp %lld", (long long)session.plan->prediction.step_ns,
                  (long long)step_ns);
        }
    }
    if (opens) {
        /* A late period holds more: twice the memory has a plan in every period. */
        OK(weft_config_set_memory_limit(session.config, 2 * choose_limit(seed, &session), &err));
        check_periods(&session, seed);
    }
    weft_session_close(&session);
    return opens;
}

/* Plans a seed at the least memory of plans that recompute. */
static void check_recomputed(uint64_t seed)
{
    struct weft_session session;
    struct weft_fsdp2 *fsdp2 = NULL;
    if (open_session(seed, true, &session)) {
        OK(weft_config_set_memory_limit(session.config, choose_limit(seed, &session), &err));
        OK(weft_session_stage(&session, NULL, &err));
        OK(weft_session_plan(&session, "ilp", &err));
        check_rules(&session);
        check_memory(&session, false);
        check_run(&session);
        OK(weft_fsdp2_create(session.plan, "plan", &fsdp2, &err));
        for (int32_t u = 0; u < fsdp2->n_units; u++)
            n_recomputed += fsdp2->units[u].n_checkpoints;
        weft_fsdp2_destroy(fsdp2);
        check_file(&session);
    }
    weft_session_close(&session);
}

static int compare_costs(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int n = 0;
    CHECK(argc == 1 || argc == 3, "use: %s [FROM TO]", argv[0]);
    const uint64_t first = argc == 3 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t last = argc == 3 ? strtoull(argv[2], NULL, 10) : USUAL_SEEDS;
    for (uint64_t seed = first; seed <= last; seed++) {
        if (argc == 1 && !test_draws(seed, 3, 10)) continue;
        printf("seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
        n += check_seed(seed);
        check_recomputed(seed);
    }
    printf("%d random configs planned for FSDP2\n", n);
    qsort(costs, (size_t)n_costs, sizeof *costs, compare_costs);
    if (n_costs > 0)
        printf("cost of the target in %d configs: median %.2f %%, 95th percentile %.2f %%\n",
               n_costs, 100 * costs[n_costs / 2], 100 * costs[n_costs * 95 / 100]);
    printf("%d layers recompute\n", n_recomputed);
    printf("%d gathers begin before their hook, and ascent raised %d bounds\n", n_early,
           n_ascended);
    /* The two or three seeds of a sanitizer may have no early gathers. */
    const bool all = argc == 1 && getenv("WEFT_TEST_ALL") != NULL;
    CHECK(TEST_SANITIZED || (n > 0 && n_early > 0 && n_ascended > 0), "nothing was checked");
    CHECK(!all || (n_late > 0 && n_more > 0 && n_recomputed > 0),
          "no late reductions, none under way, or no layer that recomputes");
    return 0;
}
