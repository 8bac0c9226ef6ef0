/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/fsdp2.h"

/* Rows of units share lines, so that the snippet stays below 80 lines. */
enum { ROW_LINES = 26, CHECKPOINT_LINES = 6, LEAST_COLUMNS = 100 };

static const char snippet_head[] =
    "# %s\n"
    "# Step %.3f ms and %lld bytes a rank predicted, %lld ranks. Made by weft %s.\n";

static const char snippet_over[] =
    "# FSDP2 needs %lld bytes a rank in slot %s. The plan's limit is %lld.\n";

static const char snippet_units[] =
    "from torch.distributed.fsdp import fully_shard\n"
    "\n"
    "# name, modules, reshard_after_forward, unshard_in_backward, replicate, late, forward, "
    "backward\n"
    "UNITS = [\n";

static const char snippet_apply[] =
    "\n"
    "def wrap(model, mesh=None, **options):\n"
    "    \"\"\"Call this instead of fully_shard. Options, such as mp_policy, go to it.\"\"\"\n"
    "    modules = dict(model.named_modules())\n"
    "    heads = {\"\": model}\n"
    "    for name, names, reshard, _, replicated, *_ in UNITS:\n"
    "        parts = [modules[n] for n in names]\n"
    "        heads[name] = parts[0]\n"
    "        parts = parts if len(parts) > 1 else parts[0]\n"
    "        if replicated:\n"
    "            from torch.distributed._composable.replicate_with_fsdp import replicate\n"
    "            replicate(parts, mesh=mesh, **options)\n"
    "        else:\n"
    "            fully_shard(parts, mesh=mesh, reshard_after_forward=reshard, **options)\n"
    "    fully_shard(model, mesh=mesh, reshard_after_forward=False, **options)\n"
    "    for name, _, _, unshard, _, _, forward, backward in UNITS + [ROOT]:\n"
    "        heads[name].set_modules_to_forward_prefetch([heads[n] for n in forward])\n"
    "        heads[name].set_modules_to_backward_prefetch([heads[n] for n in backward])\n"
    "        if not unshard:\n"
    "            heads[name].set_unshard_in_backward(False)\n";

static const char snippet_checkpoints[] =
    "    from functools import partial\n"
    "    from torch.utils.checkpoint import checkpoint\n"
    "    for n in CHECKPOINTS:  # inside the hooks of fully_shard\n"
    "        run = modules[n].forward\n"
    "        modules[n].forward = partial(checkpoint, run, use_reentrant=False)\n";

static const char snippet_cap[] =
    "    model.set_reduce_scatter_max_input_buffers(%d)  # before the first forward\n";

static const char snippet_late[] =
    "    model.set_manual_backward_finalization(True)\n"
    "    delay(model)\n"
    "    return model\n"
    "\n"
    "\n"
    "def delay(model, sync=False):\n"
    "    modules = dict(model.named_modules())\n"
    "    for _, names, _, _, _, late, *_ in UNITS:\n"
    "        if late:\n"
    "            modules[names[0]].set_requires_gradient_sync(sync, recurse=False)\n"
    "\n"
    "\n"
    "def finish(model):\n"
    "    \"\"\"Call this after backward and before clipping. Late units do not train without it."
    "\"\"\"\n"
    "    delay(model, sync=True)\n"
    "    model.finalize_backward(async_op=False)\n"
    "    delay(model)\n";

static const char *python_bool(bool value)
{
    return value ? "True" : "False";
}

/* Names of modules have no quotes. */
static void add_names(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_list *list,
                      const char *alone, struct weft_text *out)
{
    weft_text_add(out, "[");
    for (int32_t i = 0; i < list->n; i++)
        weft_text_addf(out, "%s\"%s\"", i > 0 ? ", " : "", fsdp2->units[list->units[i]].name);
    if (list->n == 0 && alone) weft_text_addf(out, "\"%s\"", alone);
    weft_text_add(out, "]");
}

static void add_row(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_unit *unit,
                    struct weft_text *out)
{
    weft_text_addf(out, "(\"%s\", [", unit->name);
    const char *comma = "";
    for (struct weft_fsdp2_module module = {0}; weft_fsdp2_next_module(fsdp2, unit, &module);
         comma = ", ")
        weft_text_addf(out, "%s\"%.*s\"", comma, (int)module.length, module.name);
    weft_text_addf(out, "], %s, %s, %s, %s, ", python_bool(unit->reshards),
                   python_bool(unit->unshards), python_bool(unit->policy == WEFT_POLICY_DP),
                   python_bool(unit->ends_late));
    add_names(fsdp2, &unit->forward, NULL, out);
    weft_text_add(out, ", ");
    add_names(fsdp2, &unit->backward, unit->name, out);
    weft_text_add(out, "),");
}

/* Names of modules that recompute. */
static void add_checkpoints(const struct weft_fsdp2 *fsdp2, struct weft_text *out)
{
    const char *comma = "";
    weft_text_add(out, "CHECKPOINTS = [");
    for (int32_t u = 0; u < fsdp2->n_units; u++)
        for (struct weft_fsdp2_module module = {.checkpoints = true};
             weft_fsdp2_next_module(fsdp2, &fsdp2->units[u], &module); comma = ", ")
            weft_text_addf(out, "%s\"%.*s\"", comma, (int)module.length, module.name);
    weft_text_add(out, "]\n");
}

/* Length of all rows in characters. */
static size_t measure_rows(const struct weft_fsdp2 *fsdp2)
{
    struct weft_text text;
    weft_text_init(&text);
    for (int32_t u = 0; u < fsdp2->n_units; u++)
        add_row(fsdp2, &fsdp2->units[u], &text);
    size_t length = text.length;
    weft_text_finish(&text);
    return length;
}

static void add_rows(const struct weft_fsdp2 *fsdp2, struct weft_text *out)
{
    const int32_t lines = ROW_LINES - (weft_fsdp2_recomputes(fsdp2) ? CHECKPOINT_LINES : 0);
    const bool one_a_line = fsdp2->n_units <= lines;
    size_t columns = measure_rows(fsdp2) / (size_t)(lines - 1) + 1;
    if (columns < LEAST_COLUMNS) columns = LEAST_COLUMNS;
    for (int32_t u = 0; u < fsdp2->n_units;) {
        const size_t begin = out->length;
        weft_text_add(out, "    ");
        do
            add_row(fsdp2, &fsdp2->units[u++], out);
        while (!one_a_line && u < fsdp2->n_units && out->length - begin < columns);
        weft_text_add(out, "\n");
    }
    weft_text_add(out, "]\n");
    if (weft_fsdp2_recomputes(fsdp2)) add_checkpoints(fsdp2, out);
    weft_text_add(out, "ROOT = (\"\", [\"\"], False, True, False, False, ");
    add_names(fsdp2, &fsdp2->root_forward, NULL, out);
    weft_text_add(out, ", [\"\"])\n\n");
}

void weft_fsdp2_snippet(const struct weft_fsdp2 *fsdp2, struct weft_text *out)
{
    const struct weft_plan *plan = fsdp2->plan, *run = fsdp2->run;
    weft_text_addf(out, snippet_head,
                   fsdp2->n_sentences > 0 ? "FSDP2 does not follow this plan in all: see "
                                            "not_expressed of the JSON."
                                          : "A plan for FSDP2.",
                   (double)(run ? run : plan)->prediction.step_ns / 1e6,
                   (long long)(run ? run : plan)->prediction.peak_bytes,
                   (long long)plan->problem->ranks, WEFT_VERSION);
    if (run && run->prediction.peak_bytes > run->problem->tiers[0].limit_bytes)
        weft_text_addf(out, snippet_over, (long long)run->prediction.peak_bytes,
                       run->problem->slot_names[run->prediction.peak_slot],
                       (long long)run->problem->tiers[0].limit_bytes);
    weft_text_add(out, snippet_units);
    add_rows(fsdp2, out);
    weft_text_add(out, snippet_apply);
    if (weft_fsdp2_recomputes(fsdp2)) weft_text_add(out, snippet_checkpoints);
    if (fsdp2->most_inputs > 1) weft_text_addf(out, snippet_cap, fsdp2->most_inputs);
    weft_text_add(out, weft_fsdp2_finishes(fsdp2) ? snippet_late : "    return model\n");
}
