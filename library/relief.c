/* SPDX-License-Identifier: Apache-2.0 */
#include "library/relief.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "spec/config_batch.h"
#include "spec/config_recompute.h"
#include "spec/kind.h"
#include "spec/target.h"

enum { RELIEF_BYTES = 1024 };

/* A way to need less memory that the config does not allow. */
struct relief {
    const char *settings; /* "plan.recompute=selective" */
    int levels;           /* bits of enum weft_recompute; 0: the config's */
    bool one_sample;      /* micro-batches have one sample */
    bool fetches;         /* parameters may be on the host */
    bool inputs;          /* inputs of layers may be */
    bool backward;        /* units are updated in backward */
    bool joint;           /* told only if no part of it is enough */
};

enum {
    SELECTIVE = 1 << WEFT_RECOMPUTE_SELECTIVE,
    WHOLE = 1 << WEFT_RECOMPUTE_WHOLE,
    ANY = (1 << WEFT_RECOMPUTE_COUNT) - 1
};

static const struct relief reliefs[] = {
    {.settings = "plan.recompute=selective", .levels = SELECTIVE},
    {.settings = "plan.recompute=whole", .levels = WHOLE},
    {.settings = "plan.recompute=auto", .levels = ANY, .joint = true},
    {.settings = "train.micro_batch=auto", .one_sample = true},
    {.settings = "plan.recompute=auto and train.micro_batch=auto",
     .levels = ANY,
     .one_sample = true,
     .joint = true},
    {.settings = "plan.offload.parameters=[\"device\",\"host\"]", .fetches = true},
    {.settings = "plan.offload.inputs=[\"device\",\"host\"]", .inputs = true},
    {.settings = "plan.recompute=auto and plan.offload.inputs=[\"device\",\"host\"]",
     .levels = ANY,
     .inputs = true,
     .joint = true},
    {.settings = "plan.update_in=backward", .backward = true},
    {.settings = "plan.recompute=auto and plan.update_in=backward",
     .levels = ANY,
     .backward = true,
     .joint = true},
};

/* Whether a user could ask for it next to the config. */
static bool is_offered(const struct weft_config *config, const struct relief *relief)
{
    const struct weft_train *train = &config->train;
    const bool splits = train->asked.micro_batch > 1 && config->kept.micro_batch == 0 &&
                        train->precision.reduce == WEFT_F32 &&
                        train->micro_batch * train->grad_accum <= WEFT_MOST_MICRO_STEPS;
    const bool recomputes = config->recomputes == NULL && weft_config_target(config)->recomputes;
    const bool fetches = config->cluster.host.given && !weft_config_moves_parameters(config) &&
                         train->precision.compute != WEFT_F32 &&
                         !weft_optimizer_row(train->optimizer.type)->agrees &&
                         weft_config_target(config)->offloads;
    const bool inputs = config->cluster.host.given && !weft_config_moves_inputs(config) &&
                        weft_config_target(config)->offloads;
    const bool backward = config->plan.update_in == WEFT_UPDATE_IN_FORWARD &&
                          config->model->n_layers > 1 &&
                          weft_config_refuses_backward(config, NULL) == NULL;
    return (relief->levels == 0 || recomputes) && (!relief->one_sample || splits) &&
           (!relief->fetches || fetches) && (!relief->inputs || inputs) &&
           (!relief->backward || backward);
}

/* Gives a copy of the config and of the profile what the relief allows. */
static enum weft_status apply_relief(const struct relief *relief, struct weft_config *config,
                                     struct weft_profile *profile, struct weft_pool *pool,
                                     struct weft_error *err)
{
    const size_t n_layers = (size_t)config->model->n_layers;
    uint8_t *levels = weft_pool_array(pool, n_layers, sizeof *levels);
    struct weft_layer_times *layers =
        weft_pool_array(pool, (size_t)profile->n_layers, sizeof *layers);
    if (levels == NULL || layers == NULL) return weft_fail_memory(err, "the least limit");
    weft_config_restorable(config, levels);
    for (size_t l = 0; l < n_layers; l++)
        levels[l] &= (uint8_t)(relief->levels | 1 << WEFT_RECOMPUTE_NONE);
    if (relief->levels != 0) config->recomputes = levels;
    if (relief->fetches)
        config->plan.offload.parameters = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    if (relief->inputs)
        config->plan.offload.inputs = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    for (int32_t k = 0; k < profile->n_layers; k++) {
        layers[k] = profile->layers[k];
        layers[k].recomputes = (1 << WEFT_RECOMPUTE_COUNT) - 1;
    }
    profile->layers = layers;
    return WEFT_OK;
}

/* The period with updates in backward after the fewest layers that plans have. */
static void update_in_backward(const struct weft_config *config, struct weft_period_rule *rule)
{
    const int32_t most = config->model->n_layers - 1;
    rule->update_after = most < 2 ? most : 2;
    if (config->plan.update_ahead == 0) rule->update_ahead = most + 1 < 2 ? most + 1 : 2;
}

/* The least device limit of a period with a relief; 0 if it cannot be told. Memory needs no times,
 * so unknown ones are 0. */
static int64_t least_relieved(const struct weft_session *session,
                              const struct weft_variant *variant, const struct relief *relief)
{
    struct weft_config config = *session->config;
    struct weft_variant relieved = *variant;
    struct weft_profile *resolved = NULL, profile = *session->profile;
    struct weft_pool pool = {0};
    struct weft_stages stages = {0};
    struct weft_error ignored = {0};
    struct weft_text missing;
    enum weft_status status = WEFT_OK;
    int64_t least = 0;
    weft_text_init(&missing);
    if (relief->backward) update_in_backward(&config, &relieved.rule);
    if (relief->one_sample) {
        const bool once = variant->rule.n_micro > 1 && variant->rule.group == variant->rule.n_micro;
        relieved.rule.n_micro *= (int32_t)relieved.batch.samples;
        if (once) relieved.rule.group = relieved.rule.n_micro; /* reduced once a step */
        relieved.batch.samples = config.train.micro_batch = 1;
        config.train.grad_accum = relieved.rule.n_micro;
        status = weft_profile_resolve_for_memory(&config, &resolved, &missing, &ignored);
        if (status == WEFT_OK) profile = *resolved;
    }
    if (status == WEFT_OK) status = apply_relief(relief, &config, &profile, &pool, &ignored);
    if (status == WEFT_OK)
        status = weft_stages_create_variant(&config, &profile, &relieved, &stages, &ignored);
    if (status == WEFT_OK) least = weft_least_limit(stages.problem, 0, NULL);
    weft_stages_finish(&stages);
    weft_profile_destroy(resolved);
    weft_text_finish(&missing);
    weft_pool_finish(&pool);
    return least > 0 && least < INT64_MAX ? least : 0;
}

/* Adds text to a buffer of RELIEF_BYTES. Text that has no room is cut. */
static void add_relief(char *out, const char *format, ...) WEFT_PRINTF(2, 3);

static void add_relief(char *out, const char *format, ...)
{
    const size_t length = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + length, RELIEF_BYTES - length, format, arguments);
    va_end(arguments);
}

/* Writes the reliefs of a variant, which is staged. "" if the config allows all or none lowers the
 * least limit. */
static void tell_reliefs(const struct weft_session *session, const struct weft_variant *variant,
                         char out[RELIEF_BYTES])
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    const struct weft_problem *problem = session->stages.problem;
    const int64_t plain = weft_least_limit(problem, 0, NULL);
    const struct relief *best = NULL;
    int64_t best_bytes = plain;
    bool backward = false; /* a relief that is told updates in backward */
    int n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof reliefs / sizeof *reliefs; i++) {
        const int64_t least = is_offered(session->config, &reliefs[i])
                                  ? least_relieved(session, variant, &reliefs[i])
                                  : 0;
        if (least == 0 || least >= plain) continue;
        if (least < best_bytes) {
            best = &reliefs[i];
            best_bytes = least;
        }
        if (least > problem->tiers[0].limit_bytes || (reliefs[i].joint && n > 0)) continue;
        add_relief(out, "%s %s, least limit %s (%lld bytes)",
                   n++ == 0 ? " It would fit without pages with" : ", or", reliefs[i].settings,
                   weft_units_show_bytes(least, shown), (long long)least);
        backward |= reliefs[i].backward;
    }
    if (n > 0)
        add_relief(out, ".");
    else if (best != NULL)
        add_relief(out, " With %s the least limit is %s (%lld bytes) without pages.",
                   best->settings, weft_units_show_bytes(best_bytes, shown), (long long)best_bytes);
    if (backward || (n == 0 && best != NULL && best->backward))
        add_relief(out, " With plan.update_in=backward, %s.", weft_update_in_price);
}

/* Whether a refusal says that the period's problem does not fit. Otherwise the planner does not
 * apply there. */
static bool is_infeasible(const struct weft_error *refusal)
{
    return refusal->status == WEFT_E_INFEASIBLE;
}

/* Finds the period with the least device memory of those that the planner applies to, and leaves
 * the session with its stages. If it applies to none, finds the first period in an order of
 * micro-steps that the planner knows. */
static enum weft_status find_told(struct weft_session *session, const char *planner,
                                  const struct weft_variant *variants,
                                  const struct weft_error *refusals, int32_t n, int32_t *told,
                                  struct weft_error *err)
{
    const struct weft_planner *by = weft_planner_find(planner, NULL);
    const bool turns = by != NULL && by->turns;
    int64_t least = INT64_MAX;
    *told = 0;
    for (int32_t v = n - 1; v >= 0; v--)
        if ((variants[v].rule.layers > 0) == turns) *told = v;
    for (int32_t v = 0; v < n; v++) {
        if (!is_infeasible(&refusals[v])) continue;
        WEFT_TRY(weft_session_stage_variant(session, &variants[v], err));
        int64_t bytes = weft_least_limit(session->stages.problem, 0, NULL);
        if (bytes < 0) return weft_fail_memory(err, "the least limit");
        if (bytes >= least && is_infeasible(&refusals[*told])) continue;
        least = bytes;
        *told = v;
    }
    return weft_session_stage_variant(session, &variants[*told], err);
}

/* Tells that a resumed run keeps what the config leaves open. */
static const char *kept_text(const struct weft_session *session)
{
    const struct weft_config *config = session->config;
    const bool keeps = config->kept.micro_batch > 0 || config->train.grad_accum > 1;
    return keeps && config->kept.group > 0
               ? " A resumed run keeps its split and cadence: --set train.micro_batch=auto (with "
                 "train.batch) and --set train.reduce=auto plan them anew."
               : "";
}

enum weft_status weft_session_refuse_all(struct weft_session *session, const char *planner,
                                         const struct weft_variant *variants,
                                         const struct weft_error *refusals, int32_t n,
                                         struct weft_error *err)
{
    int32_t told;
    WEFT_TRY(find_told(session, planner, variants, refusals, n, &told, err));
    /* If any period may offload state, the first one of an order may. */
    const bool more =
        variants[0].rule.offloaded && !variants[told].rule.offloaded && is_infeasible(&refusals[0]);
    char relief[RELIEF_BYTES] = "";
    if (is_infeasible(&refusals[told]) && !session->hint)
        tell_reliefs(session, &variants[told], relief);
    char split[128] = "";
    if (is_infeasible(&refusals[told]) && session->config->train.asked.micro_batch == 0 &&
        session->config->kept.micro_batch == 0)
        snprintf(split, sizeof split,
                 " No split of train.batch fits; this one has micro-batches of %lld samples.",
                 (long long)variants[told].batch.samples);
    return weft_fail_again(err, &refusals[told], "%s%s%s%s%s%s", refusals[told].text,
                           more ? " With state offloaded: " : "", more ? refusals[0].text : "",
                           relief, split, kept_text(session));
}

enum weft_status weft_session_refuse(const struct weft_session *session,
                                     const struct weft_variant *variant,
                                     const struct weft_error *refusal, struct weft_error *err)
{
    char relief[RELIEF_BYTES] = "";
    if (is_infeasible(refusal) && !session->hint) tell_reliefs(session, variant, relief);
    return weft_fail_again(err, refusal, "%s%s%s", refusal->text, relief,
                           is_infeasible(refusal) ? kept_text(session) : "");
}
