/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/digest/infeasible.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "memory_model/life.h"

static void add_bytes(struct weft_text *text, int64_t bytes)
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    weft_text_addf(text, "%s (%lld bytes)", weft_units_show_bytes(bytes, shown), (long long)bytes);
}

static void add_holds(const struct weft_hold *holds, int32_t n, int32_t tier, int32_t slot,
                      int64_t bytes[WEFT_CATEGORY_COUNT])
{
    for (int32_t i = 0; i < n; i++) {
        struct weft_life life = {holds[i].first, holds[i].last};
        if (holds[i].tier == tier && weft_life_has(life, slot))
            bytes[holds[i].category] += holds[i].bytes;
    }
}

/* Bytes of a row by category, for the leanest placement of the leanest strategies. */
static void lean_categories(const struct weft_digest *table, int32_t row,
                            int64_t bytes[WEFT_CATEGORY_COUNT])
{
    const struct weft_problem *problem = table->problem;
    int32_t tier = row / problem->n_slots, slot = row % problem->n_slots;
    add_holds(problem->common, problem->n_common, tier, slot, bytes);
    for (int32_t u = 0; u < table->n_decisions; u++) {
        const struct weft_problem_strategy *of = weft_problem_chosen(problem, table->leanest, u);
        add_holds(of->holds, of->n_holds, tier, slot, bytes);
    }
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        bool held = !item->may_block && (item->acquires ? item->last : item->first) == slot;
        if (held && item->stair_tier == tier && weft_item_active(item, table->leanest))
            bytes[item->stair_category] += item->n_blocks * item->stair_bytes;
    }
}

/* The change of a config that makes a category smaller. */
static const char *remedy_of(enum weft_category category)
{
    switch (category) {
    case WEFT_CATEGORY_SHARDED_PARAMETERS:
    case WEFT_CATEGORY_SHARDED_GRADIENTS:
    case WEFT_CATEGORY_OPTIMIZER_STATE:
        return "more ranks";
    case WEFT_CATEGORY_GATHERED_PARAMETERS:
    case WEFT_CATEGORY_FULL_GRADIENTS:
        return "narrower dtypes in precision, or the largest layer cut into smaller ones";
    case WEFT_CATEGORY_ACTIVATIONS:
    case WEFT_CATEGORY_TEMPORARY:
        return "a smaller micro_batch or a shorter seq_len";
    case WEFT_CATEGORY_STAGING:
        return "smaller units, or a profile of a disk that needs fewer requests at once";
    case WEFT_CATEGORY_COMMUNICATION:
    case WEFT_CATEGORY_BASE:
    case WEFT_CATEGORY_CHECKPOINTS:
    case WEFT_CATEGORY_COUNT:
        break;
    }
    return "a device with more memory";
}

static void add_peak(struct weft_text *text, const struct weft_digest *table)
{
    int64_t bytes[WEFT_CATEGORY_COUNT] = {0};
    bool told[WEFT_CATEGORY_COUNT] = {false};
    const char *remedies[2] = {NULL, NULL};
    lean_categories(table, table->least_row, bytes);
    weft_text_addf(text, " The peak of that plan is in slot %s:",
                   table->problem->slot_names[table->least_row % table->n_slots]);
    for (int n = 0; n < WEFT_CATEGORY_COUNT; n++) {
        int most = -1;
        for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
            if (!told[c] && bytes[c] > 0 && (most < 0 || bytes[c] > bytes[most])) most = c;
        if (most < 0) break;
        char shown[WEFT_UNITS_TEXT_BYTES];
        told[most] = true;
        weft_text_addf(text, "%s %s %s", n > 0 ? "," : "",
                       weft_category_text((enum weft_category)most),
                       weft_units_show_bytes(bytes[most], shown));
        const char *what = remedy_of((enum weft_category)most);
        if (!remedies[0]) {
            remedies[0] = what;
        } else if (!remedies[1] && strcmp(what, remedies[0]) != 0) {
            remedies[1] = what;
        }
    }
    weft_text_addf(text, ". What would help: the limit raised to that, or %s",
                   remedies[0] ? remedies[0] : "a smaller model");
    if (remedies[1]) weft_text_addf(text, ", or %s", remedies[1]);
    weft_text_add(text, ".");
}

static void add_limit(struct weft_text *text, const struct weft_problem_tier *tier)
{
    weft_text_addf(text, "tier %s (limit ", tier->name);
    if (tier->limit_bytes == INT64_MAX)
        weft_text_add(text, "none");
    else
        add_bytes(text, tier->limit_bytes);
    weft_text_add(text, ")");
}

/* Adds the least limit of each tier, the device's `device_bytes`, while the others keep theirs; the
 * device's in pages, if known. If no limit of a tier helps, the text names the tier that is too
 * small. A rule may be refused where other plans fit. */
static void add_tiers(struct weft_text *text, const struct weft_problem *problem,
                      int64_t device_bytes, int64_t paged_bytes)
{
    bool device_alone = false;
    const bool fits = device_bytes <= problem->tiers[0].limit_bytes &&
                      paged_bytes <= problem->tiers[0].limit_bytes;
    weft_text_add(text, fits ? "Planner ilp can go lower"
                             : "no plan fits the memory limits of all tiers");
    weft_text_add(text, ". With the others as they are");
    for (int32_t tier = 0; tier < problem->n_tiers; tier++) {
        int64_t least_bytes = tier == 0 ? device_bytes : weft_least_limit(problem, tier, NULL);
        const bool helps = least_bytes != INT64_MAX;
        if (tier == 0 && helps && paged_bytes > least_bytes) least_bytes = paged_bytes;
        if (tier == 0) device_alone = helps;
        weft_text_add(text, tier > 0 ? "; " : ", ");
        if (!helps) weft_text_add(text, "no limit would do for ");
        add_limit(text, &problem->tiers[tier]);
        if (helps) {
            weft_text_add(text, " would have to have at least ");
            add_bytes(text, least_bytes);
        } else if (device_alone) {
            weft_text_add(text, ": the device's limit is too small");
        } else {
            weft_text_add(text, ": another tier's limit is too small");
        }
    }
    weft_text_add(text, ".");
}

/* Adds the least limit, and whether it is proven. */
static void add_least(struct weft_text *text, const struct weft_digest *table, int64_t paged_bytes)
{
    if (paged_bytes > 0) {
        add_bytes(text, paged_bytes);
        if (paged_bytes > table->least_bytes) {
            weft_text_add(text, ", of which ");
            add_bytes(text, paged_bytes - table->least_bytes);
            weft_text_add(text, " are what whole pages round up");
        }
    } else {
        add_bytes(text, table->least_bytes);
        weft_text_add(text, " without pages");
    }
    if (table->least_proven_bytes < table->least_bytes) {
        weft_text_add(text, "; that is the least found, and no plan can need less than ");
        add_bytes(text, table->least_proven_bytes);
    }
    weft_text_add(text, ".");
}

/* The least limit of the device with which a plan fits; 0 if none does, or if a rule alone has no
 * plan at the limit. */
static int64_t needs_bytes(const struct weft_digest *table, int64_t bytes, int64_t paged_bytes)
{
    const int64_t needs = paged_bytes > bytes ? paged_bytes : bytes;
    return bytes < 0 || bytes == INT64_MAX || needs <= table->problem->tiers[0].limit_bytes ? 0
                                                                                            : needs;
}

enum weft_status weft_fail_infeasible(const struct weft_digest *table, const char *planner,
                                      const char *refusal, int64_t paged_bytes,
                                      struct weft_error *err)
{
    struct weft_text text = {0};
    int64_t limit_bytes = table->problem->tiers[0].limit_bytes;
    const bool moves = weft_problem_moves(table->problem);
    const int64_t device_bytes =
        moves ? weft_least_limit(table->problem, 0, NULL) : table->least_bytes;
    if (moves) {
        if (*refusal) weft_text_addf(&text, "%s. ", refusal);
        add_tiers(&text, table->problem, device_bytes, paged_bytes);
    } else if (*refusal) {
        weft_text_addf(&text, "%s. Planner ilp can go down to ", refusal);
    } else if (paged_bytes > limit_bytes && table->least_bytes <= limit_bytes) {
        weft_text_addf(&text, "planner %s found no pages within the memory limit of ", planner);
        add_bytes(&text, limit_bytes);
        weft_text_add(&text, ": the live bytes fit, their pages do not. The least limit that "
                             "fits is ");
    } else {
        weft_text_add(&text, "no plan fits the memory limit of ");
        add_bytes(&text, limit_bytes);
        weft_text_add(&text, ": the least limit that fits is ");
    }
    if (!moves) add_least(&text, table, paged_bytes);
    add_peak(&text, table);
    enum weft_status status = weft_fail_lacking(
        err, WEFT_E_INFEASIBLE, WEFT_LACK_MEMORY, needs_bytes(table, device_bytes, paged_bytes),
        "%s", weft_text_ok(&text) ? weft_text_chars(&text) : "no plan fits the memory limit");
    weft_text_finish(&text);
    return status;
}
