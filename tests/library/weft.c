/* SPDX-License-Identifier: Apache-2.0 */
/* The library as used by a program through weft.h alone, on one rank. It has a plain main:
 * training starts threads, and Criterion's sandbox does not support them. */
#define _XOPEN_SOURCE 700 /* mkdtemp and nftw */
#include <weft.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* A copy of Weft's relu, which must give the same bits. */
static enum weft_status twin_shape(void *context, const struct weft_layer_facts *facts,
                                   struct weft_layer_shape *out, struct weft_error *error)
{
    (void)context;
    (void)error;
    out->outputs = facts->hidden;
    return WEFT_OK;
}

static enum weft_status twin_needs(void *context, const struct weft_layer_facts *facts,
                                   struct weft_layer_needs *out, struct weft_error *error)
{
    const int64_t *more_bytes = context;
    (void)error;
    out->saved_bytes = facts->keys[0] != 0 ? facts->samples * facts->seq_len : 0;
    out->backward_reads_output = facts->keys[0] == 0;
    out->forward_temporary_bytes = *more_bytes;
    out->forward_flops = out->backward_flops = (double)(facts->samples * facts->hidden);
    return WEFT_OK;
}

static enum weft_status twin_forward(void *context, const struct weft_layer_call *call,
                                     struct weft_error *error)
{
    const float *x = call->input;
    float *y = call->output;
    unsigned char *mask = call->saved;
    (void)context;
    if ((call->facts.keys[0] != 0) != (mask != NULL))
        return weft_fail(error, WEFT_E_INTERNAL, "saved is not what was asked for");
    for (int64_t i = 0; i < call->rows * call->outputs; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
    for (int64_t t = 0; mask != NULL && t < call->rows; t++)
        mask[t] = (unsigned char)(t + 1);
    return WEFT_OK;
}

static enum weft_status twin_backward(void *context, const struct weft_layer_call *call,
                                      struct weft_error *error)
{
    const float *y = call->output, *dy = call->output_gradient;
    const unsigned char *mask = call->saved;
    float *dx = call->input_gradient;
    (void)context;
    for (int64_t t = 0; mask != NULL && t < call->rows; t++)
        if (mask[t] != (unsigned char)(t + 1))
            return weft_fail(error, WEFT_E_INTERNAL, "saved is not what forward wrote");
    if (y == NULL) return weft_fail(error, WEFT_E_NUMERIC, "backward was told to fail");
    for (int64_t i = 0; i < call->rows * call->outputs; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
    return WEFT_OK;
}

static int64_t more_bytes;
static const struct weft_kind_key twin_keys[] = {{"saves", "keeps a mark a row", 0, 1, true, 0}};
static const struct weft_layer_kind twin = {.type = "twin",
                                            .keys = twin_keys,
                                            .n_keys = 1,
                                            .dtypes = 1u << WEFT_F32,
                                            .context = &more_bytes,
                                            .shape = twin_shape,
                                            .needs = twin_needs,
                                            .forward = twin_forward,
                                            .backward = twin_backward};

#define CONFIG(activation)                                                                         \
    "{\"version\":1,\"model\":{\"layers\":["                                                       \
    "{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":32},"                       \
    "{\"name\":\"up\",\"type\":\"linear\",\"hidden\":32,\"outputs\":64},"                          \
    "{\"name\":\"act\",\"hidden\":64," activation "},"                                             \
    "{\"name\":\"down\",\"type\":\"linear\",\"hidden\":64,\"outputs\":32},"                        \
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":32}]},"                      \
    "\"cluster\":{\"ranks\":1,\"device\":{\"flops\":{\"f32\":\"50G\"},"                            \
    "\"memory_bandwidth\":\"10GB/s\"},\"link\":{\"intra\":{\"alpha\":\"20us\","                    \
    "\"bandwidth\":\"1GB/s\"}}},"                                                                  \
    "\"train\":{\"steps\":4,\"micro_batch\":2,\"seq_len\":16,"                                     \
    "\"data\":\"/usr/share/common-licenses/GPL-3\",\"grad_accum\":2,"                              \
    "\"optimizer\":{\"type\":\"adamw\",\"lr\":1e-2}}}"

static struct weft *open_run(const char *json, const char *override)
{
    struct weft *weft = NULL;
    struct weft_error error;
    CHECK(weft_open(&weft, &error) == WEFT_OK, "%s", error.text);
    CHECK(weft_add_kind(weft, &twin, &error) == WEFT_OK, "%s", error.text);
    CHECK(weft_take_config(weft, json, NULL, &override, override != NULL, &error) == WEFT_OK, "%s",
          error.text);
    return weft;
}

static struct weft_run_result train(const char *json, const char *override)
{
    struct weft *weft = open_run(json, override);
    struct weft_error error;
    struct weft_run_result result = {0};
    CHECK(weft_run(weft, NULL, &result, &error) == WEFT_OK, "%s", error.text);
    CHECK(error.status == WEFT_OK && error.text[0] == '\0', "an error that there was not");
    CHECK(result.steps_done == 4 && result.saved_step == -1, "%d steps", (int)result.steps_done);
    weft_close(weft);
    return result;
}

/* A supplied layer with the arithmetic of Weft's own gives the same bits. */
static void bits_are_those_of_weft(void)
{
    struct weft_run_result own = train(CONFIG("\"type\":\"relu\""), NULL);
    struct weft_run_result supplied = train(CONFIG("\"type\":\"twin\""), NULL);
    CHECK(own.first_loss == supplied.first_loss, "%g, %g", own.first_loss, supplied.first_loss);
    CHECK(own.last_loss == supplied.last_loss, "%g, %g", own.last_loss, supplied.last_loss);
    CHECK(strcmp(own.fingerprint, supplied.fingerprint) == 0, "%s, %s", own.fingerprint,
          supplied.fingerprint);
    CHECK(own.last_loss < own.first_loss, "%g to %g", own.first_loss, own.last_loss);
}

/* A failing callback ends the run with the layer's name, and the handle stays usable. */
static void failures_of_layers_are_values(void)
{
    struct weft *weft = open_run(CONFIG("\"type\":\"twin\",\"saves\":1"), NULL);
    struct weft_error error;
    CHECK(weft_run(weft, NULL, NULL, &error) == WEFT_E_NUMERIC, "%s", error.text);
    CHECK(error.exit_code == 79, "%d", error.exit_code);
    CHECK(strstr(error.text, "layer \"act\" (twin): backward was told to fail") != NULL, "%s",
          error.text);
    CHECK(weft_take_config(weft, CONFIG("\"type\":\"twin\""), NULL, NULL, 0, &error) == WEFT_OK,
          "%s", error.text);
    CHECK(weft_run(weft, NULL, NULL, &error) == WEFT_OK, "%s", error.text);
    more_bytes = -1;
    CHECK(weft_take_config(weft, CONFIG("\"type\":\"twin\""), NULL, NULL, 0, &error) == WEFT_E_DATA,
          "%s", error.text);
    CHECK(strstr(error.text, "less than 0 bytes") != NULL, "%s", error.text);
    more_bytes = 0;
    weft_close(weft);
}

static void plans_are_json_in_and_out(void)
{
    struct weft *weft = open_run(CONFIG("\"type\":\"twin\""), NULL);
    struct weft *other = open_run(CONFIG("\"type\":\"twin\""), NULL);
    struct weft *more = open_run(CONFIG("\"type\":\"twin\""), "train.micro_batch=4");
    struct weft_error error;
    CHECK(weft_plan_json(weft) == NULL, "a plan that nobody made");
    CHECK(weft_make_plan(weft, &error) == WEFT_OK, "%s", error.text);
    char *plan = strdup(weft_plan_json(weft));
    CHECK(strstr(plan, "\"weft-plan\"") != NULL, "%.200s", plan);
    CHECK(strstr(weft_config_json(weft), "\"twin\"") != NULL, "%s", weft_config_json(weft));
    CHECK(strstr(weft_profile_json(weft), "analytic") != NULL, "%s", weft_profile_json(weft));
    CHECK(weft_take_plan(other, plan, &error) == WEFT_OK, "%s", error.text);
    CHECK(strcmp(plan, weft_plan_json(other)) == 0, "another plan");
    CHECK(weft_take_plan(more, plan, &error) == WEFT_E_DATA, "%s", error.text);
    CHECK(error.exit_code == 65 && error.text[0] != '\0', "%d %s", error.exit_code, error.text);
    CHECK(weft_plan_json(more) == NULL, "a refused plan");
    CHECK(weft_take_plan(more, "{\"format\":", NULL) == WEFT_E_DATA, "%s", "half a plan");
    CHECK(weft_run(other, NULL, NULL, &error) == WEFT_OK, "%s", error.text);
    free(plan);
    weft_close(weft);
    weft_close(other);
    weft_close(more);
}

static void calls_out_of_order_are_refused(void)
{
    struct weft *weft = NULL;
    struct weft_error error;
    CHECK(weft_open(&weft, NULL) == WEFT_OK, "%s", "without an error");
    CHECK(weft_rank(weft) == 0 && weft_ranks(weft) == 1, "%d", (int)weft_ranks(weft));
    CHECK(weft_run(weft, NULL, NULL, &error) == WEFT_E_USAGE, "%s", error.text);
    CHECK(weft_make_plan(weft, &error) == WEFT_E_USAGE, "%s", error.text);
    CHECK(weft_measure_machine(weft, &error) == WEFT_E_USAGE, "%s", error.text);
    CHECK(weft_config_json(weft) == NULL && weft_profile_json(weft) == NULL, "%s", "nothing");
    CHECK(weft_read_config(weft, "/no/such.json", NULL, 0, &error) == WEFT_E_NO_INPUT, "%s",
          error.text);
    CHECK(weft_take_config(weft, "{", NULL, NULL, 0, &error) == WEFT_E_DATA, "%s", error.text);
    CHECK(weft_take_config(weft, "{}", NULL, NULL, -1, &error) == WEFT_E_USAGE, "%s", error.text);
    CHECK(weft_add_kind(weft, &twin, &error) == WEFT_OK, "%s", error.text);
    CHECK(weft_add_kind(weft, &twin, &error) == WEFT_E_USAGE, "%s", error.text);
    char numbers[32];
    snprintf(numbers, sizeof numbers, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
             WEFT_VERSION_PATCH);
    CHECK(strcmp(weft_version(), WEFT_VERSION) == 0, "%s", weft_version());
    CHECK(strcmp(numbers, WEFT_VERSION) == 0 && strcmp(numbers, MESON_VERSION) == 0, "%s", numbers);
    weft_close(weft);
    weft_close(NULL);
}

struct watch {
    struct weft *weft;
    int steps;
    enum weft_status ends;
};

static enum weft_status watch_step(void *context, const struct weft_step *step,
                                   struct weft_error *error)
{
    struct watch *watch = context;
    watch->steps++;
    CHECK(step->step == watch->steps && step->steps == 4, "%d", (int)step->step);
    CHECK(step->tokens == 2 * 2 * 16 && step->norm > 0, "%d %g", (int)step->tokens, step->norm);
    if (step->step == 2 && watch->weft != NULL) weft_stop(watch->weft);
    if (watch->ends != WEFT_OK) return weft_fail(error, watch->ends, "enough");
    return WEFT_OK;
}

static void runs_are_watched_and_stopped(void)
{
    struct weft *weft = open_run(CONFIG("\"type\":\"relu\""), "train.clip_norm=1");
    struct watch watch = {.weft = weft};
    struct weft_run_settings settings = {.on_step = watch_step, .context = &watch};
    struct weft_run_result result = {0};
    struct weft_error error;
    CHECK(weft_run(weft, &settings, &result, &error) == WEFT_OK, "%s", error.text);
    CHECK(result.stopped && result.steps_done == watch.steps && watch.steps < 4, "%d", watch.steps);
    watch = (struct watch){0};
    CHECK(weft_run(weft, &settings, &result, &error) == WEFT_OK, "%s", error.text);
    CHECK(!result.stopped && watch.steps == 4, "%d", watch.steps);
    watch = (struct watch){.ends = WEFT_E_USAGE};
    CHECK(weft_run(weft, &settings, &result, &error) == WEFT_E_USAGE, "%s", error.text);
    CHECK(watch.steps == 1 && strcmp(error.text, "enough") == 0, "%s", error.text);
    weft_close(weft);
}

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *place)
{
    (void)about, (void)type, (void)place;
    return remove(path);
}

static enum weft_status run_with(const char *override, struct weft_run_settings settings,
                                 struct weft_run_result *result, struct weft_error *error)
{
    struct weft *weft = open_run(CONFIG("\"type\":\"relu\""), override);
    enum weft_status status = weft_run(weft, &settings, result, error);
    weft_close(weft);
    return status;
}

/* With a rate of 0 a run keeps the parameters that it begins with. */
static void runs_begin_with_the_parameters_of_another(void)
{
    static const char still[] = "train.optimizer.lr=0";
    char folder[] = "/tmp/weft-from-XXXXXX", first[64], other[64], step[96];
    struct weft_run_result begun = {0}, result = {0};
    struct weft_error error;
    CHECK(mkdtemp(folder) != NULL, "%s", folder);
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(step, sizeof step, "%s/checkpoints/step-4", first);
    CHECK(run_with(NULL, (struct weft_run_settings){.directory = first}, &begun, &error) == WEFT_OK,
          "%s", error.text);
    const struct weft_run_settings begins[] = {
        {.from = first}, {.from = step}, {.from = first, .directory = other}};
    for (int i = 0; i < 3; i++) {
        result = (struct weft_run_result){0};
        CHECK(run_with(still, begins[i], &result, &error) == WEFT_OK, "%s", error.text);
        CHECK(result.steps_done == 4 && strcmp(result.fingerprint, begun.fingerprint) == 0,
              "%d: %d steps, %s, not %s", i, (int)result.steps_done, result.fingerprint,
              begun.fingerprint);
    }
    const struct weft_run_settings both[] = {{.from = first, .resume = step},
                                             {.from = first, .resume = step, .directory = other}};
    for (int i = 0; i < 2; i++)
        CHECK(run_with(still, both[i], NULL, &error) == WEFT_E_USAGE, "%s", error.text);
    CHECK(run_with(still, (struct weft_run_settings){.from = "/no/such"}, NULL, &error) ==
              WEFT_E_NO_INPUT,
          "%s", error.text);
    (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#define TIED                                                                                       \
    "{\"version\":1,\"model\":{\"layers\":["                                                       \
    "{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":32},"                       \
    "{\"name\":\"h.{i}\",\"type\":\"transformer_block\",\"repeat\":2,\"hidden\":32,\"heads\":2,"   \
    "\"ffn\":64},"                                                                                 \
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":32,\"bias\":false,"          \
    "\"tie\":\"wte\"}]},"                                                                          \
    "\"cluster\":{\"ranks\":1,\"device\":{\"flops\":{\"f32\":\"50G\"},"                            \
    "\"memory_bandwidth\":\"10GB/s\"},\"link\":{\"intra\":{\"alpha\":\"20us\","                    \
    "\"bandwidth\":\"1GB/s\"}}},"                                                                  \
    "\"train\":{\"steps\":4,\"micro_batch\":1,\"seq_len\":16,\"grad_accum\":4,"                    \
    "\"reduce\":\"step\",\"clip_norm\":1,"                                                         \
    "\"data\":\"/usr/share/common-licenses/GPL-3\",\"checkpoint\":{\"every\":2},"                  \
    "\"optimizer\":{\"type\":\"adamw\",\"lr\":1e-2}}}"

/* A run of the tied model. */
struct tied {
    const char *order;
    int64_t stop; /* after about that step; 0: never */
    bool staged, planned;
    struct weft_run_settings settings;
    char fingerprint[33];
    bool by_layers; /* the plan's order, in groups of 2 layers */
};

static enum weft_status stop_at(void *context, const struct weft_step *step,
                                struct weft_error *error)
{
    struct watch *watch = context;
    (void)error;
    if (step->step == watch->steps) weft_stop(watch->weft);
    return WEFT_OK;
}

static enum weft_status run_tied(struct tied *tied, struct weft_error *error)
{
    char order[64];
    const char *override = order;
    struct weft *weft = NULL;
    struct weft_run_result result = {0};
    snprintf(order, sizeof order, "plan.micro_step_order=%s", tied->order);
    CHECK(weft_open(&weft, error) == WEFT_OK, "%s", error->text);
    CHECK(weft_take_config(weft, TIED, NULL, &override, 1, error) == WEFT_OK, "%s", error->text);
    /* A refused plan leaves what was staged for it. */
    if (tied->staged) CHECK(weft_take_plan(weft, "{}", error) == WEFT_E_DATA, "%s", error->text);
    if (tied->planned) CHECK(weft_make_plan(weft, error) == WEFT_OK, "%s", error->text);
    struct watch watch = {.weft = weft, .steps = (int)tied->stop};
    tied->settings.on_step = stop_at;
    tied->settings.context = &watch;
    const enum weft_status status = weft_run(weft, &tied->settings, &result, error);
    strcpy(tied->fingerprint, result.fingerprint);
    CHECK(result.stopped == (tied->stop > 0 && status == WEFT_OK), "%s: %d", tied->order,
          result.stopped);
    const char *plan = status == WEFT_OK ? weft_plan_json(weft) : "";
    tied->by_layers = strstr(plan, "\"layers\": 2,") != NULL;
    weft_close(weft);
    return status;
}

/* The name of a directory below the folder. */
static const char *place_in(const char *folder, const char *name)
{
    static char places[8][96];
    static int n;
    char *place = places[n++ % 8];
    snprintf(place, sizeof *places, "%s/%s", folder, name);
    return place;
}

/* The sums of a tied tensor depend on the order, which an open config takes from the checkpoint. */
static void resumed_runs_keep_their_order(void)
{
    char folder[] = "/tmp/weft-order-XXXXXX";
    struct weft_error error;
    CHECK(mkdtemp(folder) != NULL, "%s", folder);
    const char *whole = place_in(folder, "whole"), *part = place_in(folder, "part");
    const char *step = place_in(folder, "whole/checkpoints/step-2");
    struct tied first = {.order = "2", .settings.directory = whole};
    CHECK(run_tied(&first, &error) == WEFT_OK && first.by_layers, "%s", error.text);
    struct tied open = {.order = "auto"};
    CHECK(run_tied(&open, &error) == WEFT_OK && !open.by_layers, "%s", error.text);
    CHECK(strcmp(open.fingerprint, first.fingerprint) != 0, "bits cannot tell the orders");
    struct tied stopped = {.order = "2", .stop = 2, .settings.directory = part};
    CHECK(run_tied(&stopped, &error) == WEFT_OK, "%s", error.text);
    struct tied kept[] = {
        {.order = "auto", .settings.directory = part},
        {.order = "auto", .settings.resume = step},
        {.order = "auto", .staged = true, .settings.resume = step},
        {.order = "auto", .settings = {.directory = place_in(folder, "on"), .resume = step}},
        {.order = "2", .settings.resume = step},
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        CHECK(run_tied(&kept[i], &error) == WEFT_OK, "%d: %s", (int)i, error.text);
        CHECK(kept[i].by_layers && strcmp(kept[i].fingerprint, first.fingerprint) == 0,
              "%d: %s, not %s", (int)i, kept[i].fingerprint, first.fingerprint);
    }
    /* The user asks for another order, or has a plan of another one. */
    struct tied others[] = {{.order = "step", .settings.resume = step},
                            {.order = "auto", .planned = true, .settings.resume = step}};
    for (int i = 0; i < 2; i++) {
        CHECK(run_tied(&others[i], &error) == WEFT_OK, "%d: %s", i, error.text);
        CHECK(!others[i].by_layers && strcmp(others[i].fingerprint, first.fingerprint) != 0, "%d",
              i);
    }
    (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

/* A result tells whether a run is done: with all steps saved, and with steps that nothing saved. */
static void damaged_results_are_told(void)
{
    static const char *const overrides[] = {NULL,
                                            "train.checkpoint={\"at_end\":false,\"every\":3}"};
    static const char *const texts[] = {"{\"stopped\":fal", "{\"steps_done\":4}",
                                        "{\"stopped\":false,\"steps_done\":\"4\"}"};
    char folder[] = "/tmp/weft-result-XXXXXX", path[64];
    struct weft_error error;
    CHECK(mkdtemp(folder) != NULL, "%s", folder);
    for (int i = 0; i < 2; i++) {
        struct weft_run_result whole = {0}, again = {0};
        const struct weft_run_settings settings = {.directory = place_in(folder, i ? "b" : "a")};
        snprintf(path, sizeof path, "%s/%s/result.json", folder, i ? "b" : "a");
        CHECK(run_with(overrides[i], settings, &whole, &error) == WEFT_OK, "%s", error.text);
        for (int t = 0; t < 3; t++) {
            write_text(path, texts[t]);
            CHECK(run_with(overrides[i], settings, NULL, &error) == WEFT_E_DATA, "%s", error.text);
            CHECK(strstr(error.text, path) != NULL && strstr(error.text, "move it away") != NULL,
                  "%s", error.text);
        }
        CHECK(remove(path) == 0, "%s", path);
        CHECK(run_with(overrides[i], settings, &again, &error) == WEFT_OK, "%s", error.text);
        CHECK(strcmp(whole.fingerprint, again.fingerprint) == 0, "%s", again.fingerprint);
    }
    (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static enum weft_status count_questions(void *context, const char *question, size_t length,
                                        char **answer, struct weft_error *error)
{
    CHECK(strlen(question) == length && length > 0, "%zu", length);
    (void)answer;
    ++*(int *)context;
    return weft_fail(error, WEFT_E_HANG, "thinks for ever");
}

/* Plans for four ranks that do not exist. A solver that fails costs the proof, not the plan. */
static void solvers_are_asked(void)
{
    static const char blocks[] =
        "{\"version\":1,\"model\":{\"layers\":["
        "{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":32},"
        "{\"name\":\"h.{i}\",\"type\":\"transformer_block\",\"repeat\":6,\"hidden\":32,"
        "\"heads\":2,\"ffn\":128},"
        "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":32}]},"
        "\"cluster\":{\"ranks\":4,\"memory_limit\":\"1500KiB\",\"device\":{\"flops\":{\"f32\":"
        "\"50G\"},"
        "\"memory_bandwidth\":\"10GB/s\"},\"link\":{\"intra\":{\"alpha\":\"20us\","
        "\"bandwidth\":\"1GB/s\"}}},"
        "\"train\":{\"micro_batch\":2,\"seq_len\":16,\"data\":\"/usr/share/common-licenses/"
        "GPL-3\"},"
        "\"plan\":{\"fuse\":false,\"blocks\":2,\"time_limit\":\"1s\",\"gap\":0}}";
    struct weft *weft = NULL;
    struct weft_error error;
    int questions = 0;
    CHECK(weft_open(&weft, &error) == WEFT_OK, "%s", error.text);
    CHECK(weft_take_config(weft, blocks, NULL, NULL, 0, &error) == WEFT_OK, "%s", error.text);
    weft_set_solver(weft, count_questions, &questions);
    CHECK(weft_make_plan(weft, &error) == WEFT_OK, "%s", error.text);
    CHECK(weft_plan_json(weft) != NULL, "no plan");
    CHECK(questions > 0, "a gap of 0 was reached without it");
    CHECK(strstr(weft_plan_json(weft), "thinks for ever") != NULL, "the plan does not say so");
    CHECK(weft_run(weft, NULL, NULL, &error) == WEFT_E_DISAGREE, "%s", error.text);
    CHECK(strstr(error.text, "weft launch -n 4") != NULL, "%s", error.text);
    weft_close(weft);
}

int main(void)
{
    bits_are_those_of_weft();
    failures_of_layers_are_values();
    plans_are_json_in_and_out();
    calls_out_of_order_are_refused();
    runs_are_watched_and_stopped();
    runs_begin_with_the_parameters_of_another();
    resumed_runs_keep_their_order();
    damaged_results_are_told();
    solvers_are_asked();
    if (failures > 0) fprintf(stderr, "%d checks failed\n", failures);
    return failures > 0;
}
