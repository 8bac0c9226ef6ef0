/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "problem/target.h"
#include "report/export/fsdp2.h"

enum { FORMAT_VERSION = 1, EVENT_BYTES = 512 };

/* Calls of FSDP2 with the first release that has them. */
static const struct {
    const char *call, *torch;
} fsdp2_calls[] = {
    {"fully_shard", "2.6"},
    {"set_modules_to_forward_prefetch", "2.6"},
    {"set_modules_to_backward_prefetch", "2.6"},
    {"set_unshard_in_backward", "2.6"},
    {"replicate", "2.10"},
    {"set_reduce_scatter_max_input_buffers", "2.13"},
    {"set_requires_gradient_sync", "2.6"},
    {"set_manual_backward_finalization", "2.15"},
    {"finalize_backward", "2.15"},
};
enum { UNSHARD_CALL = 3, REPLICATE_CALL, CAP_CALL, SYNC_CALL };

static const struct weft_key_table predicted_table = WEFT_KEY_TABLE(
    "The plan's figures.", WEFT_KEY_PART(WEFT_KEY_INT64, "step_ns", NULL, "the simulated step"),
    WEFT_KEY_PART(WEFT_KEY_INT64, "peak_bytes", NULL, "of the fullest slot of a rank"),
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "peak_slot", NULL, "its name"),
    WEFT_KEY_PART(WEFT_KEY_INT64, "bound_ns", NULL, "no plan is faster; 0: nothing is proven"),
    WEFT_KEY_PART(WEFT_KEY_NUMBER, "gap", NULL, "(step - bound) / bound; 0 without a bound"),
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_INT64, "default_step_ns", NULL,
                     "the step of FSDP2 as it is; null: the plan does not know it"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "runs_ahead", NULL,
                  "the step is where the host runs ahead of hooks, as on a GPU"));

static const struct weft_key_table run_table = WEFT_KEY_TABLE(
    "The plan as FSDP2 runs it: whole units, its hooks, and memory as it holds it.",
    WEFT_KEY_PART(WEFT_KEY_INT64, "step_ns", NULL, "the simulated step"),
    WEFT_KEY_PART(WEFT_KEY_INT64, "peak_bytes", NULL, "of the fullest slot of a rank"),
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "peak_slot", NULL, "its name"),
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_INT64, "limit_bytes", NULL,
                     "the plan's limit; null: none"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "fits", NULL, "false: above the limit, and forced"));

#define PREFETCH_KEYS                                                                              \
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "forward", NULL,                               \
                     "units to gather in its forward, in order of launch; empty: none"),           \
        WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "backward", NULL,                          \
                         "the same in its backward; its own name alone: none, since an empty "     \
                         "list is FSDP2's own rule")

static const struct weft_key_table root_table = WEFT_KEY_TABLE(
    "The model itself, with the parameters of no unit. Its name in lists is empty.",
    WEFT_KEY_PART(WEFT_KEY_BOOL, "reshard_after_forward", NULL, "of fully_shard"), PREFETCH_KEYS);

static const char *const finalize_names[] = {"own", "end", NULL};
static const char *const dtype_names[] = {"float32", NULL};

static const struct weft_key_table unit_table = WEFT_KEY_TABLE(
    "One call of fully_shard or replicate.",
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "name", NULL, "in lists, and of the plan"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "modules", NULL, "in forward order"),
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "policy", NULL, "of the plan"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "reshard_after_forward", NULL, "of fully_shard"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "unshard_in_backward", NULL,
                  "false: backward reads none of its parameters"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "replicate", NULL, "replicated, not sharded"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "checkpoint", NULL,
                     "its modules with an activation checkpoint around forward, which recompute"),
    PREFETCH_KEYS,
    WEFT_KEY_PART(WEFT_KEY_ONE_OF, "finalize", finalize_names,
                  "reduced after its own backward, or at the end"));

static const struct weft_key_table call_table =
    WEFT_KEY_TABLE("A call of PyTorch.", WEFT_KEY_PART(WEFT_KEY_SHOWN, "call", NULL, "its name"),
                   WEFT_KEY_PART(WEFT_KEY_SHOWN, "torch", NULL, "the first release that has it"));

const struct weft_key_table weft_fsdp2_keys = WEFT_KEY_TABLE(
    "A plan in the terms of PyTorch's FSDP2: docs/pytorch.md.",
    WEFT_KEY_PART(WEFT_KEY_CONST, "format", "weft-export", "the kind of file"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT32, "version", 0, FORMAT_VERSION, FORMAT_VERSION, NULL,
                        "of the format"),
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "weft", NULL, "the program that wrote it"),
    WEFT_KEY_PART(WEFT_KEY_CONST, "target", "fsdp2", "the runtime"),
    WEFT_KEY_PART(WEFT_KEY_HASH, "plan", NULL, "hash of the plan"),
    WEFT_KEY_PART(WEFT_KEY_INT64, "ranks", NULL, "world size"),
    WEFT_KEY_PART(WEFT_KEY_INT32, "micro_steps", NULL, "backward passes of a step"),
    WEFT_KEY_PART(WEFT_KEY_INT32, "reduce_every", NULL,
                  "micro-steps from one reduction to the next: 1, or all of the step"),
    WEFT_KEY_PART(WEFT_KEY_OBJECT, "predicted", &predicted_table, "figures"),
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_OBJECT, "as_run", &run_table,
                     "figures under FSDP2; null: not known, because FSDP2 cannot follow the plan"),
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_ONE_OF, "param_dtype", dtype_names,
                     "of gathers; null: of 2 bytes, which the caller's policy names"),
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_ONE_OF, "reduce_dtype", dtype_names,
                     "of reductions; null: of 2 bytes, which the caller's policy names"),
    WEFT_KEY_PART(WEFT_KEY_INT64, "gradient_divide_factor", NULL,
                  "the ranks: FSDP2's own factor, so no call sets it"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "force_sum_reduction", NULL, "false: FSDP2's own mean"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT32, "max_reduce_scatter_inputs", 0, 1, INT32_MAX, NULL,
                        "reductions under way at once; 1 is FSDP2's own"),
    WEFT_KEY_PART(WEFT_KEY_OBJECT, "root", &root_table, "the model"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "units", &unit_table, "in order of first use"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "order", NULL,
                     "collectives of a micro-step as FSDP2 issues them: \"gather h.0\", "
                     "\"reduce h.0\""),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "requires", &call_table,
                     "calls that this plan needs"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "not_expressed", NULL,
                     "a sentence for each difference from the plan"));

void weft_export_put_head(const struct weft_plan *plan, const char *target, const char *tested,
                          struct weft_answer *out)
{
    char hash[WEFT_HASH_TEXT_BYTES];
    weft_answer_word(out, "format", "weft-export");
    weft_answer_integer(out, "version", FORMAT_VERSION);
    weft_answer_word(out, "weft", WEFT_VERSION);
    weft_answer_word(out, "target", target);
    if (tested != NULL) weft_answer_word(out, "tested", tested);
    weft_answer_word(out, "plan", weft_hash_show(weft_plan_hash(plan), hash));
    weft_answer_integer(out, "ranks", plan->problem->ranks);
}

/* The figures that a plan and its run have. */
static void put_figures(const struct weft_plan *plan, struct weft_answer *out)
{
    weft_answer_integer(out, "step_ns", plan->prediction.step_ns);
    weft_answer_integer(out, "peak_bytes", plan->prediction.peak_bytes);
    weft_answer_word(out, "peak_slot", plan->problem->slot_names[plan->prediction.peak_slot]);
}

static void put_predicted(const struct weft_plan *plan, struct weft_answer *out)
{
    weft_answer_open(out, "predicted");
    put_figures(plan, out);
    weft_answer_integer(out, "bound_ns", plan->bound_ns);
    weft_answer_real(out, "gap", weft_plan_gap(plan));
    weft_answer_word(out, "default_step_ns", NULL);
    weft_answer_bool(out, "runs_ahead", weft_problem_target(plan->problem)->runs_ahead);
    weft_answer_close(out);
}

static void put_run(const struct weft_plan *run, struct weft_answer *out)
{
    if (run == NULL) {
        weft_answer_word(out, "as_run", NULL);
        return;
    }
    const int64_t limit_bytes = run->problem->tiers[0].limit_bytes;
    weft_answer_open(out, "as_run");
    put_figures(run, out);
    if (limit_bytes < INT64_MAX)
        weft_answer_integer(out, "limit_bytes", limit_bytes);
    else
        weft_answer_word(out, "limit_bytes", NULL);
    weft_answer_bool(out, "fits", run->prediction.peak_bytes <= limit_bytes);
    weft_answer_close(out);
}

static void put_list(const struct weft_fsdp2 *fsdp2, const char *key,
                     const struct weft_fsdp2_list *list, const char *alone, struct weft_answer *out)
{
    weft_answer_open_list(out, key);
    weft_answer_flat(out);
    for (int32_t i = 0; i < list->n; i++)
        weft_answer_word(out, NULL, fsdp2->units[list->units[i]].name);
    if (list->n == 0 && alone) weft_answer_word(out, NULL, alone);
    weft_answer_close_list(out);
}

static void put_names(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_unit *unit,
                      const char *key, bool checkpoints, struct weft_answer *out)
{
    struct weft_fsdp2_module module = {.checkpoints = checkpoints};
    weft_answer_open_list(out, key);
    weft_answer_flat(out);
    while (weft_fsdp2_next_module(fsdp2, unit, &module)) {
        struct weft_text name;
        weft_text_init(&name);
        weft_text_append(&name, module.name, module.length);
        weft_answer_word(out, NULL, weft_text_chars(&name));
        weft_text_finish(&name);
    }
    weft_answer_close_list(out);
}

void weft_fsdp2_put_modules(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_unit *unit,
                            struct weft_answer *out)
{
    put_names(fsdp2, unit, "modules", false, out);
}

static void put_unit(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_unit *unit,
                     struct weft_answer *out)
{
    weft_answer_open(out, NULL);
    weft_answer_word(out, "name", unit->name);
    weft_fsdp2_put_modules(fsdp2, unit, out);
    weft_answer_word(out, "policy", weft_policy_name(unit->policy));
    weft_answer_bool(out, "reshard_after_forward", unit->reshards);
    weft_answer_bool(out, "unshard_in_backward", unit->unshards);
    weft_answer_bool(out, "replicate", unit->policy == WEFT_POLICY_DP);
    put_names(fsdp2, unit, "checkpoint", true, out);
    put_list(fsdp2, "forward", &unit->forward, NULL, out);
    put_list(fsdp2, "backward", &unit->backward, unit->name, out);
    weft_answer_word(out, "finalize", finalize_names[unit->ends_late]);
    weft_answer_close(out);
}

static void put_units(const struct weft_fsdp2 *fsdp2, struct weft_answer *out)
{
    const struct weft_fsdp2_list none = {0};
    weft_answer_open(out, "root");
    weft_answer_bool(out, "reshard_after_forward", false);
    put_list(fsdp2, "forward", &fsdp2->root_forward, NULL, out);
    put_list(fsdp2, "backward", &none, "", out);
    weft_answer_close(out);
    weft_answer_open_list(out, "units");
    for (int32_t u = 0; u < fsdp2->n_units; u++)
        put_unit(fsdp2, &fsdp2->units[u], out);
    weft_answer_close_list(out);
}

void weft_fsdp2_put_order(const struct weft_fsdp2 *fsdp2, struct weft_answer *out)
{
    weft_answer_open_list(out, "order");
    for (int32_t e = 0; e < fsdp2->n_events; e++) {
        char text[EVENT_BYTES];
        snprintf(text, sizeof text, "%s %s", fsdp2->events[e].gathers ? "gather" : "reduce",
                 fsdp2->units[fsdp2->events[e].unit].name);
        weft_answer_word(out, NULL, text);
    }
    weft_answer_close_list(out);
}

static bool is_needed(const struct weft_fsdp2 *fsdp2, int call)
{
    if (call >= SYNC_CALL) return weft_fsdp2_finishes(fsdp2);
    if (call == CAP_CALL) return fsdp2->most_inputs > 1;
    if (call < UNSHARD_CALL) return true;
    for (int32_t u = 0; u < fsdp2->n_units; u++)
        if (call == UNSHARD_CALL ? !fsdp2->units[u].unshards
                                 : fsdp2->units[u].policy == WEFT_POLICY_DP)
            return true;
    return false;
}

static void put_requires(const struct weft_fsdp2 *fsdp2, struct weft_answer *out)
{
    weft_answer_open_list(out, "requires");
    for (int c = 0; c < (int)(sizeof fsdp2_calls / sizeof *fsdp2_calls); c++) {
        if (!is_needed(fsdp2, c)) continue;
        weft_answer_open(out, NULL);
        weft_answer_flat(out);
        weft_answer_word(out, "call", fsdp2_calls[c].call);
        weft_answer_word(out, "torch", fsdp2_calls[c].torch);
        weft_answer_close(out);
    }
    weft_answer_close_list(out);
}

void weft_fsdp2_put_sentences(const struct weft_fsdp2 *fsdp2, struct weft_answer *out)
{
    weft_answer_open_list(out, "not_expressed");
    for (int32_t i = 0; i < fsdp2->n_sentences; i++)
        weft_answer_word(out, NULL, fsdp2->sentences[i]);
    weft_answer_close_list(out);
}

void weft_fsdp2_put(const struct weft_fsdp2 *fsdp2, struct weft_answer *out)
{
    const char *float32 = dtype_names[0];
    weft_export_put_head(fsdp2->plan, "fsdp2", NULL, out);
    weft_answer_integer(out, "micro_steps", fsdp2->plan->problem->period.n_micro);
    weft_answer_integer(out, "reduce_every", fsdp2->plan->problem->period.group);
    put_predicted(fsdp2->plan, out);
    put_run(fsdp2->run, out);
    weft_answer_word(out, "param_dtype", fsdp2->parameter_bytes == 4 ? float32 : NULL);
    weft_answer_word(out, "reduce_dtype", fsdp2->gradient_bytes == 4 ? float32 : NULL);
    weft_answer_integer(out, "gradient_divide_factor", fsdp2->plan->problem->ranks);
    weft_answer_bool(out, "force_sum_reduction", false);
    weft_answer_integer(out, "max_reduce_scatter_inputs", fsdp2->most_inputs);
    put_units(fsdp2, out);
    weft_fsdp2_put_order(fsdp2, out);
    put_requires(fsdp2, out);
    weft_fsdp2_put_sentences(fsdp2, out);
}
