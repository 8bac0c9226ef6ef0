/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/others.h"

#define HEAD_KEYS(of)                                                                              \
    WEFT_KEY_PART(WEFT_KEY_CONST, "format", "weft-export", "the kind of file"),                    \
        WEFT_KEY_PART_RANGE(WEFT_KEY_INT32, "version", 0, FORMAT_VERSION, FORMAT_VERSION, NULL,    \
                            "of the format"),                                                      \
        WEFT_KEY_PART(WEFT_KEY_SHOWN, "weft", NULL, "the program that wrote it"),                  \
        WEFT_KEY_PART(WEFT_KEY_CONST, "target", of, "the runtime"),                                \
        WEFT_KEY_PART(WEFT_KEY_CONST, "tested", untested, "no run of Weft's has tested it"),       \
        WEFT_KEY_PART(WEFT_KEY_HASH, "plan", NULL, "hash of the plan"),                            \
        WEFT_KEY_PART(WEFT_KEY_INT64, "ranks", NULL, "world size"),                                \
        WEFT_KEY_PART(WEFT_KEY_OBJECT, "predicted", &predicted_table, "figures")

enum { FORMAT_VERSION = 1 };
static const char untested[] = "from documentation, not run here";

static const struct weft_key_table predicted_table = WEFT_KEY_TABLE(
    "Figures of the simulator.", WEFT_KEY_PART(WEFT_KEY_INT64, "step_ns", NULL, "a step"),
    WEFT_KEY_PART(WEFT_KEY_INT64, "peak_bytes", NULL, "of the fullest slot of a rank"),
    WEFT_KEY_PART(WEFT_KEY_INT64, "bound_ns", NULL, "no plan is faster; 0: nothing is proven"),
    WEFT_KEY_PART(WEFT_KEY_NUMBER, "gap", NULL, "(step - bound) / bound; 0 without a bound"));

#define COUNT_KEY(name, text) WEFT_KEY_PART(WEFT_KEY_INT64, name, NULL, text)
static const struct weft_key_table zero_table = WEFT_KEY_TABLE(
    "The part zero_optimization of DeepSpeed's config.", COUNT_KEY("stage", "of ZeRO"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "overlap_comm", NULL, "communication next to compute"),
    COUNT_KEY("stage3_prefetch_bucket_size", "elements to gather ahead"),
    COUNT_KEY("stage3_param_persistence_threshold", "smaller parameters are never released"),
    COUNT_KEY("stage3_max_live_parameters", "elements that may be gathered at once"),
    COUNT_KEY("stage3_max_reuse_distance", "parameters used again within it are kept"),
    COUNT_KEY("reduce_bucket_size", "elements of a reduction"));

const struct weft_key_table weft_deepspeed_export_keys = WEFT_KEY_TABLE(
    "The best setting of DeepSpeed's rule within the plan's limit.", HEAD_KEYS("deepspeed"),
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "setting", NULL, "its name in `weft help planners`"),
    WEFT_KEY_PART(WEFT_KEY_OBJECT, "zero_optimization", &zero_table, "for DeepSpeed's config"));

static const char *const placement_names[] = {"dp", "zero1", "zero2", "zero3", NULL};

static const struct weft_key_table module_table = WEFT_KEY_TABLE(
    "A unit's Placements and SchedulePolicy.",
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "name", NULL, "of the plan"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "modules", NULL, "in forward order"),
    WEFT_KEY_PART(WEFT_KEY_ONE_OF, "placement", placement_names, "sharded parts"),
    COUNT_KEY("forward_prefetch_elements", "to gather ahead in its forward"),
    COUNT_KEY("backward_prefetch_elements", "to gather ahead in its backward"),
    WEFT_KEY_PART(WEFT_KEY_BOOL, "reduce_at_end", NULL, "its reduction waits for backward's end"));

const struct weft_key_table weft_megatron_keys =
    WEFT_KEY_TABLE("A plan in the terms of Megatron-FSDP v2.", HEAD_KEYS("megatron-fsdp"),
                   WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "units", &module_table,
                                    "in order of first use"),
                   WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "order", NULL,
                                    "for a driver without hooks: \"gather h.0\", \"reduce h.0\""),
                   WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_SHOWN, "not_expressed", NULL,
                                    "a sentence for each difference from the plan"));

/* The figures of the plan that was found for a target. A bound holds for its own problem alone. */
static void put_predicted(const struct weft_plan *plan, const struct weft_plan *found,
                          struct weft_answer *out)
{
    const int64_t step_ns = found->prediction.step_ns;
    const int64_t bound_ns = found->problem == plan->problem ? plan->bound_ns : 0;
    weft_answer_open(out, "predicted");
    weft_answer_integer(out, "step_ns", step_ns);
    weft_answer_integer(out, "peak_bytes", found->prediction.peak_bytes);
    weft_answer_integer(out, "bound_ns", bound_ns);
    weft_answer_real(out, "gap",
                     bound_ns > 0 ? (double)(step_ns - bound_ns) / (double)bound_ns : 0);
    weft_answer_close(out);
}

void weft_deepspeed_put(const struct weft_plan *plan, const struct weft_deepspeed_export *deepspeed,
                        struct weft_answer *out)
{
    weft_export_put_head(plan, "deepspeed", untested, out);
    put_predicted(plan, deepspeed->found, out);
    weft_answer_word(out, "setting", deepspeed->setting);
    weft_answer_open(out, "zero_optimization");
    weft_answer_integer(out, "stage", 3);
    weft_answer_bool(out, "overlap_comm", true);
    weft_answer_integer(out, "stage3_prefetch_bucket_size", deepspeed->prefetch_elements);
    weft_answer_integer(out, "stage3_param_persistence_threshold", deepspeed->persistent_elements);
    weft_answer_integer(out, "stage3_max_live_parameters", deepspeed->live_elements);
    weft_answer_integer(out, "stage3_max_reuse_distance", deepspeed->reuse_elements);
    weft_answer_integer(out, "reduce_bucket_size", deepspeed->bucket_elements);
    weft_answer_close(out);
}

static int64_t sum_elements(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_list *list)
{
    int64_t elements = 0;
    for (int32_t i = 0; i < list->n; i++)
        elements += fsdp2->plan->problem->decisions[list->units[i]].elements;
    return elements;
}

/* The placement of a policy, or the nearest one: sentences tell the difference. */
static const char *name_placement(enum weft_policy policy)
{
    const bool is_named = (size_t)policy < sizeof placement_names / sizeof *placement_names - 1;
    return placement_names[is_named ? policy : WEFT_POLICY_FSDP];
}

void weft_megatron_put(const struct weft_fsdp2 *fsdp2, struct weft_answer *out)
{
    weft_export_put_head(fsdp2->plan, "megatron-fsdp", untested, out);
    put_predicted(fsdp2->plan, fsdp2->plan, out);
    weft_answer_open_list(out, "units");
    for (int32_t u = 0; u < fsdp2->n_units; u++) {
        const struct weft_fsdp2_unit *unit = &fsdp2->units[u];
        weft_answer_open(out, NULL);
        weft_answer_word(out, "name", unit->name);
        weft_fsdp2_put_modules(fsdp2, unit, out);
        weft_answer_word(out, "placement", name_placement(unit->policy));
        weft_answer_integer(out, "forward_prefetch_elements", sum_elements(fsdp2, &unit->forward));
        weft_answer_integer(out, "backward_prefetch_elements",
                            sum_elements(fsdp2, &unit->backward));
        weft_answer_bool(out, "reduce_at_end", unit->ends_late);
        weft_answer_close(out);
    }
    weft_answer_close_list(out);
    weft_fsdp2_put_order(fsdp2, out);
    weft_fsdp2_put_sentences(fsdp2, out);
}
