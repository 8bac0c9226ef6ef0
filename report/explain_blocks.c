/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/units.h"
#include "problem/unit_layers.h"
#include "report/explain.h"

struct cuts {
    int32_t fused;                     /* units of several layers */
    int32_t split;                     /* units of several blocks */
    int32_t least_blocks, most_blocks; /* among split units */
};

static struct cuts count_cuts(const struct weft_problem *problem)
{
    struct cuts cuts = {0};
    int32_t unit = -1;
    for (int32_t u = 0; u < weft_problem_n_units(problem); u++)
        cuts.fused += weft_problem_is_fused(problem, u);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->decision == unit || item->n_blocks < 2) continue;
        unit = item->decision;
        if (cuts.split == 0 || item->n_blocks < cuts.least_blocks)
            cuts.least_blocks = item->n_blocks;
        if (item->n_blocks > cuts.most_blocks) cuts.most_blocks = item->n_blocks;
        cuts.split++;
    }
    return cuts;
}

static void say_rule(const struct weft_problem *problem, struct weft_answer *out)
{
    const struct weft_problem_blocks *blocks = &problem->blocks;
    char bytes[WEFT_UNITS_TEXT_BYTES];
    if (blocks->count > 0) {
        weft_answer_say(out, NULL, "  every unit is cut into %lld, as plan.blocks says\n",
                        (long long)blocks->count);
        return;
    }
    weft_answer_say(out, NULL,
                    "  a block is %s or more: ", weft_units_show_bytes(blocks->least_bytes, bytes));
    if (blocks->doublings > 0)
        weft_answer_say(out, NULL,
                        "%lld times the size that plan.block_efficiency gives, as smaller blocks "
                        "are too many to be numbered\n",
                        1LL << blocks->doublings);
    else if (blocks->efficiency_ppm > 0)
        weft_answer_say(out, NULL,
                        "the smallest AllGather that reaches %.4g of the best bandwidth "
                        "in the profile (%s)\n",
                        (double)blocks->efficiency_ppm / 1e6, problem->profile_source);
    else
        weft_answer_say(out, NULL, "plan.block_size says so\n");
}

void weft_explain_blocks(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_problem *problem = plan->problem;
    if (problem->blocks.least_bytes == 0 && problem->blocks.count == 0) return;
    struct cuts cuts = count_cuts(problem);
    weft_answer_say(out, NULL, "how units are cut into blocks\n");
    say_rule(problem, out);
    const int32_t n_units = weft_problem_n_units(problem);
    weft_answer_say(out, NULL, "  %d unit%s", n_units, n_units == 1 ? "" : "s");
    if (problem->blocks.fused)
        weft_answer_say(out, NULL,
                        ", %d of several layers, each smaller than that or next to one that is",
                        cuts.fused);
    else
        weft_answer_say(out, NULL, "; small neighbours are not fused");
    if (cuts.split == 0)
        weft_answer_say(out, NULL, "; none is split");
    else if (cuts.least_blocks == cuts.most_blocks)
        weft_answer_say(out, NULL, "; %d split into %d blocks", cuts.split, cuts.most_blocks);
    else
        weft_answer_say(out, NULL, "; %d split into %d to %d blocks", cuts.split, cuts.least_blocks,
                        cuts.most_blocks);
    weft_answer_say(out, NULL, "\n\n");
}
