/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plan_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "problem/names.h"
#include "problem/target.h"
#include "program/mappings.h"
#include "program/predict.h"
#include "report/offloaded.h"

static double percent_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Lists the strategies of decisions [begin, end). */
static void report_strategies(const struct weft_plan *plan, int32_t begin, int32_t end,
                              struct weft_text *out)
{
    const struct weft_problem *problem = plan->problem;
    for (int32_t first = begin; first < end;) {
        int32_t last = first;
        while (last + 1 < end &&
               weft_plan_chosen(plan, last + 1)->kind == weft_plan_chosen(plan, first)->kind)
            last++;
        if (first > begin) weft_text_add(out, ", ");
        weft_problem_show_names(problem, first, last, out);
        weft_text_addf(out, " %s", weft_plan_chosen(plan, first)->name);
        first = last + 1;
    }
}

void weft_report_policies(const struct weft_plan *plan, struct weft_text *out)
{
    report_strategies(plan, 0, weft_problem_n_units(plan->problem), out);
}

/* Locations of layers' saved activations until their backward: "h.0..h.3 host, h.4 device". Nothing
 * if the plan decides none. */
static void report_saved(const struct weft_plan *plan, struct weft_text *out)
{
    report_strategies(plan, weft_problem_n_units(plan->problem), plan->problem->n_decisions, out);
}

/* The rows of one slot; false if memory runs out. */
static bool slot_rows(const struct weft_plan *plan, int32_t slot, int64_t out[WEFT_CATEGORY_COUNT])
{
    size_t n = (size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows);
    if (!rows) return false;
    weft_plan_rows(plan, 0, rows);
    for (int i = 0; i < WEFT_CATEGORY_COUNT; i++)
        out[i] = rows[(size_t)slot * WEFT_CATEGORY_COUNT + (size_t)i];
    free(rows);
    return true;
}

void weft_report_memory(const struct weft_plan *plan, int32_t slot, struct weft_answer *out)
{
    static const struct weft_column columns[] = {{NULL, "", 'l', WEFT_FIGURE_WORD, 0},
                                                 {NULL, "", 'r', WEFT_FIGURE_BYTES, 0}};
    int64_t bytes[WEFT_CATEGORY_COUNT], sum = 0;
    if (!slot_rows(plan, slot, bytes)) {
        out->failed = true;
        return;
    }
    struct weft_rows *rows = weft_answer_table(out, NULL, columns, 2);
    weft_rows_title(rows, "  memory %s slot %s",
                    slot == plan->prediction.peak_slot ? "at the peak," : "in",
                    plan->problem->slot_names[slot]);
    for (int i = 0; i < WEFT_CATEGORY_OF_DEVICE; i++) {
        if (i == WEFT_CATEGORY_STAGING && bytes[i] == 0) continue;
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, 0, weft_category_text((enum weft_category)i));
        weft_rows_integer(rows, 1, bytes[i]);
        sum += bytes[i];
    }
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, 0, "in all");
    weft_rows_integer(rows, 1, sum);
}

static void report_limit(const struct weft_plan *plan, struct weft_answer *out)
{
    char total[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES], peak[WEFT_UNITS_TEXT_BYTES];
    const struct weft_prediction *p = &plan->prediction;
    weft_units_show_bytes(p->total_bytes, total);
    weft_units_show_bytes(p->peak_bytes, peak);
    bool limited = plan->problem->tiers[0].limit_bytes != INT64_MAX;
    weft_units_show_bytes(plan->problem->tiers[0].limit_bytes, limit);
    if (p->total_bytes == 0) {
        weft_answer_say(out, NULL, "memory    largest row %s a rank, without pages; %s%s\n", peak,
                        limited ? "limit " : "no limit given", limited ? limit : "");
        return;
    }
    if (!limited) {
        weft_answer_say(out, NULL, "memory    %s a rank (largest row %s), no limit given\n", total,
                        peak);
        return;
    }
    char page[WEFT_UNITS_TEXT_BYTES];
    if (plan->pages.page_bytes == 0) {
        weft_answer_say(out, NULL, "memory    %s a rank of %s, the largest row\n", total, limit);
        return;
    }
    weft_answer_say(out, NULL,
                    "memory    %s a rank of %s; largest row %s, pages of %s round up %.2f %%\n",
                    total, limit, peak, weft_units_show_bytes(plan->pages.page_bytes, page),
                    percent_of(p->total_bytes - p->peak_bytes, p->peak_bytes));
}

/* Bytes of a tier other than the device, and the bytes moved there in a step. */
struct tier_use {
    int64_t peak_bytes, read_bytes, written_bytes; /* of state */
    int64_t gradient_bytes, parameter_bytes;       /* with updates on the host: down; up */
    int64_t shard_bytes, fetched_bytes;            /* with shards on the host: down; up */
    int64_t saved_bytes, input_bytes;              /* of layers: down, and as many up */
    int32_t n_units, n_updated, n_fetched, n_layers, n_inputs;
};

static struct tier_use use_of_tier(const struct weft_plan *plan, int32_t tier)
{
    const struct weft_problem *problem = plan->problem;
    struct tier_use use = {.peak_bytes = weft_plan_peak(plan, tier, NULL)};
    for (int32_t d = 0; d < problem->n_decisions; d++)
        *(problem->decisions[d].is_of_layer ? &use.n_layers : &use.n_units) +=
            weft_plan_chosen(plan, d)->location == problem->tiers[tier].kind;
    for (int32_t d = 0; d < problem->n_decisions; d++)
        use.n_updated += weft_plan_chosen(plan, d)->updates_on_host &&
                         problem->tiers[tier].kind == WEFT_LOCATION_HOST;
    for (int32_t d = weft_problem_n_units(problem); d < problem->n_decisions; d++)
        use.n_inputs += weft_plan_chosen(plan, d)->input == problem->tiers[tier].kind;
    for (int32_t u = 0; u < weft_problem_n_units(problem); u++)
        use.n_fetched += weft_plan_chosen(plan, u)->parameters == WEFT_LOCATION_HOST &&
                         problem->tiers[tier].kind == WEFT_LOCATION_HOST;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        const int64_t bytes = item->n_blocks * item->block_bytes;
        if (!weft_problem_needs(problem, plan->strategies, i) || weft_item_is_collective(item) ||
            weft_item_kind_of(item)->other_tier != problem->tiers[tier].kind)
            continue;
        if (item->kind == WEFT_SAVED_DOWN) use.saved_bytes += bytes;
        if (item->kind == WEFT_INPUT_DOWN) use.input_bytes += bytes;
        if (item->kind == WEFT_GRADIENT_DOWN) use.gradient_bytes += bytes;
        if (item->kind == WEFT_PARAMETERS_UP) use.parameter_bytes += bytes;
        if (item->kind == WEFT_PARAMETERS_DOWN) use.shard_bytes += bytes;
        if (item->kind == WEFT_PARAMETERS_FETCH) use.fetched_bytes += bytes;
        if (weft_item_moves_state(item))
            *(item->acquires ? &use.read_bytes : &use.written_bytes) += bytes;
    }
    return use;
}

static void report_ring(const struct weft_plan *plan, struct weft_answer *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES];
    const struct weft_hold *ring = weft_problem_ring(plan->problem);
    if (ring != NULL)
        weft_answer_say(
            out, NULL, "%-9s through a ring of %s in the %s's memory, held throughout\n", "",
            weft_units_show_bytes(ring->bytes, bytes), plan->problem->tiers[ring->tier].name);
    /* State could have been on a disk, but stays elsewhere. */
    bool told = ring != NULL;
    for (int32_t i = 0; i < plan->n_others && !told; i++) {
        told = plan->others[i].ring_bytes > 0;
        if (told)
            weft_answer_say(out, NULL, "%-9s no state is there, so no ring of %s is held\n", "disk",
                            weft_units_show_bytes(plan->others[i].ring_bytes, bytes));
    }
}

/* Bytes of the checkpoints that a rank keeps in host memory; 0: none. */
static int64_t kept_bytes(const struct weft_problem *problem)
{
    for (int32_t i = 0; i < problem->n_common; i++)
        if (problem->common[i].category == WEFT_CATEGORY_CHECKPOINTS)
            return problem->common[i].bytes;
    return 0;
}

static void report_kept(const struct weft_plan *plan, struct weft_answer *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES];
    const int64_t kept = kept_bytes(plan->problem);
    if (kept > 0)
        weft_answer_say(out, NULL,
                        "          checkpoints of two steps take %s a rank, held throughout "
                        "(train.checkpoint.host)\n",
                        weft_units_show_bytes(kept, bytes));
}

/* A line of a tier. */
static void say_tier(const struct weft_problem *problem, int32_t tier, const struct tier_use *use,
                     struct weft_answer *out)
{
    char held[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
    char read[WEFT_UNITS_TEXT_BYTES], written[WEFT_UNITS_TEXT_BYTES];
    const int32_t n_units = weft_problem_n_units(problem);
    const bool moves = weft_problem_moves(problem);
    weft_answer_say(out, NULL, "%-9s %s a rank of %s%s", problem->tiers[tier].name,
                    weft_units_show_bytes(use->peak_bytes, held),
                    weft_units_show_bytes(problem->tiers[tier].limit_bytes, limit),
                    moves ? "" : "\n");
    if (!moves) return;
    weft_answer_say(out, NULL, ": state of %d of %d units", use->n_units, n_units);
    if (use->n_updated == 0 || use->read_bytes > 0)
        weft_answer_say(out, NULL, "; a step reads %s of it and writes %s",
                        weft_units_show_bytes(use->read_bytes, read),
                        weft_units_show_bytes(use->written_bytes, written));
    weft_answer_say(out, NULL, "\n");
    if (use->n_updated > 0)
        weft_answer_say(out, NULL,
                        "          %d of them are updated there: a step copies %s of gradients "
                        "down and %s of parameters up\n",
                        use->n_updated, weft_units_show_bytes(use->gradient_bytes, written),
                        weft_units_show_bytes(use->parameter_bytes, read));
    if (use->n_fetched > 0)
        weft_answer_say(out, NULL,
                        "          parameters of %d units; a step copies %s of them down and %s "
                        "up\n",
                        use->n_fetched, weft_units_show_bytes(use->shard_bytes, written),
                        weft_units_show_bytes(use->fetched_bytes, read));
    if (problem->tiers[tier].kind == WEFT_LOCATION_HOST && n_units < problem->n_decisions)
        weft_answer_say(
            out, NULL,
            "          what %d of %d layers saved; a step copies %s of it down, and up\n",
            use->n_layers, problem->n_decisions - n_units,
            weft_units_show_bytes(use->saved_bytes, read));
    if (use->n_inputs > 0)
        weft_answer_say(
            out, NULL,
            "          inputs of %d of %d layers; a step copies %s of them down, and up\n",
            use->n_inputs, problem->n_decisions - n_units,
            weft_units_show_bytes(use->input_bytes, read));
}

/* The facts of a tier; those of units on the host and of layers only if there are any. */
static void put_tier(const struct weft_problem *problem, int32_t tier, const struct tier_use *use,
                     struct weft_answer *out)
{
    const int64_t kept = problem->tiers[tier].kind == WEFT_LOCATION_HOST ? kept_bytes(problem) : 0;
    const struct {
        const char *key;
        bool known;
        int64_t value;
    } facts[] = {
        {"peak_bytes", true, use->peak_bytes},
        {"limit_bytes", true, problem->tiers[tier].limit_bytes},
        {"checkpoint_bytes", kept > 0, kept},
        {"units", true, use->n_units},
        {"read_bytes", true, use->read_bytes},
        {"written_bytes", true, use->written_bytes},
        {"updated_units", use->n_updated > 0, use->n_updated},
        {"gradient_bytes", use->n_updated > 0, use->gradient_bytes},
        {"parameter_bytes", use->n_updated > 0, use->parameter_bytes},
        {"layers", use->n_layers > 0, use->n_layers},
        {"saved_bytes", use->n_layers > 0, use->saved_bytes},
        {"input_layers", use->n_inputs > 0, use->n_inputs},
        {"input_bytes", use->n_inputs > 0, use->input_bytes},
    };
    weft_answer_open(out, NULL);
    weft_answer_word(out, "name", problem->tiers[tier].name);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].known) weft_answer_integer(out, facts[i].key, facts[i].value);
    weft_answer_close(out);
}

static void report_tiers(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_problem *problem = plan->problem;
    if (problem->n_tiers > 1) weft_answer_open_list(out, "tiers");
    for (int32_t tier = 1; tier < problem->n_tiers; tier++) {
        const struct tier_use use = use_of_tier(plan, tier);
        put_tier(problem, tier, &use, out);
        say_tier(problem, tier, &use, out);
    }
    if (problem->n_tiers > 1) weft_answer_close_list(out);
    report_kept(plan, out);
    report_ring(plan, out);
}

void weft_report_mappings(const struct weft_program *program, struct weft_answer *out)
{
    struct weft_mappings count;
    struct weft_error unsaid = {0};
    if (weft_program_count_mappings(program, program->paging, 1, &count, &unsaid) != WEFT_OK)
        return;
    weft_answer_say(out, NULL,
                    "mappings  %lld of a rank's arena, and %lld of each other's on its machine\n",
                    (long long)count.own, (long long)count.of_peer);
}

/* Base memory comes from the config or the profile. Without either the limit binds the arena
 * alone. */
static bool counts_base(const struct weft_problem *problem)
{
    for (int32_t i = 0; i < problem->n_common; i++)
        if (problem->common[i].category == WEFT_CATEGORY_BASE) return true;
    return false;
}

/* A function's list with its head. */
static void report_list(const struct weft_plan *plan, const char *head,
                        void list_function(const struct weft_plan *plan, struct weft_text *list),
                        struct weft_answer *out)
{
    struct weft_text list;
    weft_text_init(&list);
    list_function(plan, &list);
    weft_answer_list(out, head, weft_text_chars(&list));
    if (!weft_text_ok(&list)) out->failed = true;
    weft_text_finish(&list);
}

static int64_t samples_of_step(const struct weft_problem *problem)
{
    const struct weft_period_rule *rule = &problem->period;
    return problem->micro_batch * (problem->ranks * rule->n_micro - rule->idle * rule->group);
}

/* The split of the batch, if the planner chose it. */
static void report_split(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_problem *problem = plan->problem;
    const int32_t n_micro = problem->period.n_micro;
    if (problem->micro_batch == 0) return;
    weft_answer_say(out, NULL,
                    "batch     %lld samples a step, by rank in %d micro-step%s of %lld\n",
                    (long long)samples_of_step(problem), n_micro, n_micro == 1 ? "" : "s",
                    (long long)problem->micro_batch);
}

/* Counts the updates that follow a slot of a kind. */
static int32_t count_updates_after(const struct weft_problem *problem, enum weft_slot_kind kind)
{
    int32_t n = 0;
    bool follows = false;
    for (int32_t t = 0; t < problem->n_slots; t++) {
        follows = follows || problem->slots[t].kind == kind;
        n += follows && problem->slots[t].kind == WEFT_SLOT_UPDATE;
    }
    return n;
}

/* A unit of the first layers, such as a fused one, has no backward left after its own. */
static void report_updates(const struct weft_problem *problem, struct weft_answer *out)
{
    const struct weft_period_rule *rule = &problem->period;
    const bool in_backward =
        rule->update_after > 0 && count_updates_after(problem, WEFT_SLOT_BACKWARD) >
                                      count_updates_after(problem, WEFT_SLOT_DRAIN);
    weft_answer_say(out, NULL, "%sunits updated ", rule->rotated ? "without clipping, " : "");
    if (in_backward)
        weft_answer_say(out, NULL, "%d layer%s after their backward, the first ones ",
                        rule->update_after, rule->update_after == 1 ? "" : "s");
    if (count_updates_after(problem, WEFT_SLOT_FORWARD) > 0)
        weft_answer_say(out, NULL, "%d layer%s before their first use", rule->update_ahead,
                        rule->update_ahead == 1 ? "" : "s");
    else
        weft_answer_say(out, NULL, "before the first forward");
}

/* Nothing in the usual case: one micro-step with all updates before it. */
static void report_period(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_period_rule *rule = &plan->problem->period;
    const bool ahead = rule->update_ahead > 0 && !rule->delayed;
    if (rule->n_micro == 1 && !ahead && !rule->delayed) return;
    weft_answer_say(out, NULL, "period    ");
    if (rule->n_micro > 1)
        weft_answer_say(out, NULL, "%d micro-steps, gradients reduced ", rule->n_micro);
    if (rule->n_micro > 1 && rule->group > 1 && rule->group < rule->n_micro)
        weft_answer_say(out, NULL, "every %d micro-steps", rule->group);
    else if (rule->n_micro > 1)
        weft_answer_say(out, NULL, rule->group == 1 ? "every micro-step" : "once a step");
    if (rule->layers == 1) weft_answer_say(out, NULL, "; all run through each layer in turn");
    if (rule->layers > 1)
        weft_answer_say(out, NULL, "; all run through each %d layers in turn", rule->layers);
    if (rule->idle > 0)
        weft_answer_say(out, NULL, "; %d rank%s no group in the last round", rule->idle,
                        rule->idle == 1 ? " has" : "s have");
    if (rule->n_micro > 1 && (ahead || rule->delayed)) weft_answer_say(out, NULL, "; ");
    if (rule->delayed) weft_answer_say(out, NULL, "updates delayed by a step");
    if (ahead) report_updates(plan->problem, out);
    weft_answer_say(out, NULL, "\n");
}

static bool leaves_offload_open(const struct weft_plan *plan)
{
    const struct weft_period_rule *own = &plan->problem->period;
    bool open = own->offloaded || own->whole_copies;
    for (int32_t i = 0; i < plan->n_others; i++)
        open |= plan->others[i].problem->period.offloaded ||
                plan->others[i].problem->period.whole_copies;
    return open;
}

static bool leaves_order_open(const struct weft_plan *plan)
{
    for (int32_t i = 0; i < plan->n_others; i++)
        if (plan->others[i].problem->period.layers != plan->problem->period.layers) return true;
    return false;
}

static bool leaves_updates_open(const struct weft_plan *plan)
{
    for (int32_t i = 0; i < plan->n_others; i++)
        if (plan->others[i].problem->period.update_after != plan->problem->period.update_after)
            return true;
    return false;
}

/* The choices that make the periods of a plan, for its target. */
static const char *choices_of_periods(const struct weft_plan *plan)
{
    if (weft_problem_target(plan->problem)->finalizes) return "reductions late or two under way";
    const bool order = leaves_order_open(plan);
    if (leaves_updates_open(plan))
        return order ? "train.reduce, update_ahead, update_in, micro_step_order"
                     : "train.reduce, update_ahead, update_in";
    return order ? "train.reduce, update_ahead, micro_step_order" : "train.reduce, update_ahead";
}

static bool leaves_scale_open(const struct weft_plan *plan)
{
    for (int32_t i = 0; i < plan->n_others; i++)
        if (plan->others[i].problem->blocks.scale != plan->problem->blocks.scale) return true;
    return false;
}

/* The bounds of the plan's period. One in pages is the better one, so it comes first. */
static void report_bounds(const struct weft_plan *plan, struct weft_answer *out)
{
    char page[WEFT_UNITS_TEXT_BYTES], bound[WEFT_UNITS_TEXT_BYTES];
    const bool has_pages = plan->paged_bound_ns > 0;
    if (has_pages)
        weft_answer_say(
            out, NULL, "proven    in pages of %s no plan is faster than %s: gap %.3f %%\n",
            weft_units_show_bytes(plan->pages.page_bytes, page),
            weft_units_show_ns(plan->paged_bound_ns, bound), 100.0 * weft_plan_paged_gap(plan));
    if (plan->bound_ns > 0)
        weft_answer_say(
            out, NULL, "%s than %s (%s): gap %.3f %%\n",
            has_pages ? "          by bytes alone none is faster" : "proven    no plan is faster",
            weft_units_show_ns(plan->bound_ns, bound), plan->bound_by, 100.0 * weft_plan_gap(plan));
}

/* The plan's own period may have no gap while another period has one. */
static void report_least_bound(const struct weft_plan *plan, struct weft_answer *out)
{
    char bound[WEFT_UNITS_TEXT_BYTES];
    const int32_t n_planned = plan->n_others + 1;
    const int32_t n_open = plan->n_open > n_planned ? plan->n_open : n_planned;
    const int64_t least_ns = weft_plan_claim_of(plan).bound_ns;
    const int64_t own_ns =
        plan->paged_bound_ns > plan->bound_ns ? plan->paged_bound_ns : plan->bound_ns;
    weft_answer_say(out, NULL, "          of %d of %d periods (%s%s%s%s), none faster than %s",
                    n_planned, n_open, plan->problem->micro_batch > 0 ? "train.micro_batch, " : "",
                    choices_of_periods(plan), leaves_scale_open(plan) ? ", block_scale" : "",
                    leaves_offload_open(plan) ? ", plan.offload" : "",
                    weft_units_show_ns(least_ns, bound));
    if (least_ns > 0 && least_ns < own_ns)
        weft_answer_say(out, NULL, ": gap %.3f %%",
                        100.0 * (double)(plan->prediction.step_ns - least_ns) / (double)least_ns);
    weft_answer_say(out, NULL, "\n");
}

/* The least time of the planned periods with the other order of micro-steps. More of them may be
 * open. */
static void report_other_order(const struct weft_plan *plan, struct weft_answer *out)
{
    char bound[WEFT_UNITS_TEXT_BYTES];
    const int32_t layers = plan->problem->period.layers;
    const char *const by[] = {"one after the other", "by layer"};
    int64_t least_ns = WEFT_PROBLEM_MOST;
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_others; i++) {
        const struct weft_plan_variant *other = &plan->others[i];
        const int64_t bound_ns =
            other->paged_bound_ns > other->bound_ns ? other->paged_bound_ns : other->bound_ns;
        if (other->problem->period.layers == layers) continue;
        if (bound_ns < least_ns) least_ns = bound_ns;
        n++;
    }
    if (n == 0 || least_ns == 0) return;
    weft_answer_say(out, NULL, "order     micro-steps %s; %s, ", by[layers > 0], by[layers == 0]);
    if (least_ns == WEFT_PROBLEM_MOST)
        weft_answer_say(out, NULL, "no plan of the %d period%s planned fits\n", n,
                        n == 1 ? "" : "s");
    else
        weft_answer_say(out, NULL, "no plan of the %d period%s planned is faster than %s\n", n,
                        n == 1 ? "" : "s", weft_units_show_ns(least_ns, bound));
}

/* The plan's step next to that of Weft's own plans. These hold other buffers, so they may be slower
 * at one limit, or none may fit. */
static void report_cost(const struct weft_plan *plan, struct weft_answer *out)
{
    char ns[WEFT_UNITS_TEXT_BYTES];
    const int64_t step_ns = plan->prediction.step_ns;
    if (plan->free_never_fits)
        weft_answer_say(out, NULL,
                        "free      no plan of Weft's own fits the limit: it holds other buffers\n");
    if (plan->free_step_ns > 0)
        weft_answer_say(out, NULL,
                        "free      %s by Weft's own plan within the limit: the target %s %.2f %%\n",
                        weft_units_show_ns(plan->free_step_ns, ns),
                        step_ns < plan->free_step_ns ? "saves" : "costs",
                        percent_of(llabs(step_ns - plan->free_step_ns), plan->free_step_ns));
    if (plan->free_bound_ns > 0 && plan->free_bound_ns <= step_ns)
        weft_answer_say(out, NULL,
                        "          none is faster than %s by rows: it costs at most %.2f %%\n",
                        weft_units_show_ns(plan->free_bound_ns, ns),
                        percent_of(step_ns - plan->free_bound_ns, plan->free_bound_ns));
    if (plan->free_bound_ns > step_ns)
        weft_answer_say(out, NULL, "          none is faster than %s by rows\n",
                        weft_units_show_ns(plan->free_bound_ns, ns));
}

static void report_average(const struct weft_plan *plan, struct weft_answer *out)
{
    char average[WEFT_UNITS_TEXT_BYTES], bytes[WEFT_UNITS_TEXT_BYTES];
    char usual[WEFT_UNITS_TEXT_BYTES], with[WEFT_UNITS_TEXT_BYTES], mean[WEFT_UNITS_TEXT_BYTES];
    const long long every = (long long)plan->problem->period.every;
    struct weft_plan_averages of;
    struct weft_error unsaid = {0};
    if (every == 0) return;
    if (weft_plan_find_averages(plan, &of, &unsaid) != WEFT_OK) {
        out->failed = true;
        return;
    }
    weft_answer_say(out, NULL,
                    "across    nodes step on their own; an average every %lld steps has %s of "
                    "collectives, in which a rank sends %s to other nodes: %s for a step with it, "
                    "%s without, %s on average\n",
                    every, weft_units_show_ns(of.ns, average),
                    weft_units_show_bytes(of.sent_bytes, bytes),
                    weft_units_show_ns(of.longest_ns, with), weft_units_show_ns(of.usual_ns, usual),
                    weft_units_show_ns(plan->prediction.step_ns, mean));
}

static void report_maker(const struct weft_plan *plan, struct weft_answer *out)
{
    weft_answer_say(out, NULL, "plan      by %s, %lld ranks, times %s\n", plan->planner,
                    (long long)plan->problem->ranks, plan->problem->profile_source);
}

static void put_memory(const struct weft_plan *plan, struct weft_answer *out)
{
    int64_t bytes[WEFT_CATEGORY_COUNT];
    if (!slot_rows(plan, plan->prediction.peak_slot, bytes)) {
        out->failed = true;
        return;
    }
    weft_answer_open(out, "peak_memory_bytes");
    for (int i = 0; i < WEFT_CATEGORY_OF_DEVICE; i++)
        weft_answer_integer(out, weft_category_key((enum weft_category)i), bytes[i]);
    weft_answer_close(out);
}

/* Locations of saved activations by layer; nothing if the plan decides none. */
static void put_saved(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_problem *problem = plan->problem;
    int32_t d = weft_problem_n_units(problem);
    if (d == problem->n_decisions) return;
    weft_answer_open(out, "saved");
    for (; d < problem->n_decisions; d++)
        weft_answer_word(out, problem->decisions[d].name + sizeof WEFT_SAVED_PREFIX - 1,
                         weft_plan_chosen(plan, d)->name);
    weft_answer_close(out);
}

/* Averages over nodes; nothing without them. */
static void put_average(const struct weft_plan *plan, struct weft_answer *out)
{
    struct weft_plan_averages of;
    struct weft_error unsaid = {0};
    if (plan->problem->period.every == 0) return;
    if (weft_plan_find_averages(plan, &of, &unsaid) != WEFT_OK) {
        out->failed = true;
        return;
    }
    weft_answer_open(out, "average");
    weft_answer_integer(out, "every", plan->problem->period.every);
    weft_answer_integer(out, "ns", of.ns);
    weft_answer_integer(out, "sent_bytes", of.sent_bytes);
    weft_answer_integer(out, "longest_step_ns", of.longest_ns);
    weft_answer_integer(out, "usual_step_ns", of.usual_ns);
    weft_answer_integer(out, "mean_step_ns", plan->prediction.step_ns);
    weft_answer_close(out);
}

static void put_bound(const struct weft_plan *plan, struct weft_answer *out)
{
    weft_answer_integer(out, "claimed_bound_ns", weft_plan_claim_of(plan).bound_ns);
    weft_answer_real(out, "claimed_gap", weft_plan_claimed_gap(plan));
    weft_answer_integer(out, "bound_ns", plan->bound_ns);
    weft_answer_word(out, "bound_by", plan->bound_by ? plan->bound_by : "");
    weft_answer_integer(out, "least_bound_ns", weft_plan_least_bound_ns(plan));
    weft_answer_real(out, "gap", weft_plan_gap(plan));
    weft_answer_integer(out, "periods_planned", plan->n_others + 1);
    weft_answer_integer(out, "periods_open", plan->n_open);
    if (plan->paged_bound_ns > 0) {
        weft_answer_integer(out, "page_bytes", plan->pages.page_bytes);
        weft_answer_integer(out, "paged_bound_ns", plan->paged_bound_ns);
        weft_answer_real(out, "paged_gap", weft_plan_paged_gap(plan));
    }
    if (plan->free_step_ns > 0) weft_answer_integer(out, "free_step_ns", plan->free_step_ns);
    if (plan->free_bound_ns > 0) weft_answer_integer(out, "free_bound_ns", plan->free_bound_ns);
    if (plan->free_never_fits) weft_answer_bool(out, "free_fits", false);
    weft_answer_word(out, "solver_stop", plan->solver_stop ? plan->solver_stop : "");
    if (plan->solver_name) weft_answer_word(out, "solver", plan->solver_name);
}

static void put_plan(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_prediction *p = &plan->prediction;
    weft_answer_word(out, "planner", plan->planner);
    weft_answer_word(out, "for", weft_problem_target(plan->problem)->name);
    weft_answer_integer(out, "ranks", plan->problem->ranks);
    weft_answer_word(out, "times", plan->problem->profile_source);
    if (plan->problem->micro_batch > 0)
        weft_answer_integer(out, "micro_batch", plan->problem->micro_batch);
    weft_answer_integer(out, "micro_steps", plan->problem->period.n_micro);
    weft_answer_word(out, "reduce", weft_cadence_name(weft_period_cadence(&plan->problem->period)));
    if (plan->problem->period.layers > 0)
        weft_answer_integer(out, "layers", plan->problem->period.layers);
    weft_answer_integer(out, "update_ahead", plan->problem->period.update_ahead);
    if (plan->problem->period.update_after > 0)
        weft_answer_integer(out, "update_after", plan->problem->period.update_after);
    weft_answer_integer(out, "step_ns", p->step_ns);
    if (plan->certificate.n_nodes > 0) put_bound(plan, out);
    weft_answer_integer(out, "compute_ns", p->compute_ns);
    weft_answer_integer(out, "slowdown_ns", p->slowdown_ns);
    weft_answer_integer(out, "communication_ns", p->channel_ns);
    weft_answer_integer(out, "exposed_ns", p->exposed_ns);
    put_average(plan, out);
    weft_answer_integer(out, "peak_bytes", p->peak_bytes);
    weft_answer_word(out, "peak_slot", plan->problem->slot_names[p->peak_slot]);
    weft_answer_integer(out, "arena_bytes", p->arena_bytes);
    weft_answer_integer(out, "total_bytes", p->total_bytes);
    if (plan->problem->tiers[0].limit_bytes != INT64_MAX)
        weft_answer_integer(out, "memory_limit_bytes", plan->problem->tiers[0].limit_bytes);
    put_memory(plan, out);
}

/* Strategies of units and layers. */
static void put_choices(const struct weft_plan *plan, struct weft_answer *out)
{
    weft_answer_open(out, "policies");
    const int32_t n_units = weft_problem_n_units(plan->problem);
    for (int32_t u = 0; u < n_units; u++)
        weft_answer_word(out, plan->problem->decisions[u].name, weft_plan_chosen(plan, u)->name);
    weft_answer_close(out);
    put_saved(plan, out);
}

void weft_report_plan_briefly(const struct weft_plan *plan, struct weft_answer *out)
{
    char step[WEFT_UNITS_TEXT_BYTES];
    report_maker(plan, out);
    weft_answer_say(out, NULL, "step      %s predicted",
                    weft_units_show_ns(plan->prediction.step_ns, step));
    if (plan->bound_ns > 0)
        weft_answer_say(out, NULL, ", gap %.3f %%", 100.0 * weft_plan_claimed_gap(plan));
    weft_answer_say(out, NULL, "\n");
    report_limit(plan, out);
}

void weft_report_plan(const struct weft_plan *plan, struct weft_answer *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    const struct weft_prediction *p = &plan->prediction;
    put_plan(plan, out);
    report_maker(plan, out);
    const struct weft_target *target = weft_problem_target(plan->problem);
    if (target->is_foreign)
        weft_answer_say(out, NULL, "for       %s, which runs it; memory is as it holds it\n",
                        target->title);
    report_split(plan, out);
    report_period(plan, out);
    report_list(plan, "policies", weft_report_policies, out);
    report_list(plan, "saved", report_saved, out);
    weft_answer_say(out, NULL, "step      %s predicted; compute %s, ",
                    weft_units_show_ns(p->step_ns, a), weft_units_show_ns(p->compute_ns, b));
    const bool offloaded = weft_problem_moves(plan->problem);
    weft_answer_say(out, NULL,
                    offloaded ? "communication %s, %s waited for it or another tier"
                              : "communication %s, of which %s exposed",
                    weft_units_show_ns(p->channel_ns, a), weft_units_show_ns(p->exposed_ns, b));
    if (p->slowdown_ns > 0)
        weft_answer_say(out, NULL, "; it slows compute by %s",
                        weft_units_show_ns(p->slowdown_ns, a));
    weft_answer_say(out, NULL, "\n");
    report_average(plan, out);
    report_bounds(plan, out);
    if ((plan->n_others > 0 || plan->n_open > 1) && plan->bound_ns > 0)
        report_least_bound(plan, out);
    report_other_order(plan, out);
    if (target->is_foreign) report_cost(plan, out);
    const char *stop = plan->solver_stop ? plan->solver_stop : "";
    const char *solver = plan->solver_name ? plan->solver_name : "";
    if (stop[0] != '\0' || solver[0] != '\0')
        weft_answer_say(out, NULL, "solver    %s%s%s\n", stop,
                        stop[0] != '\0' && solver[0] != '\0' ? ", by " : "", solver);
    report_limit(plan, out);
    report_tiers(plan, out);
    weft_report_lanes(plan, out);
    put_choices(plan, out);
    if (!counts_base(plan->problem))
        weft_answer_say(out, NULL,
                        "          nothing outside the arena is counted: give cluster.base, or "
                        "a profile\n");
    weft_report_memory(plan, p->peak_slot, out);
}
