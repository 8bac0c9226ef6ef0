/* SPDX-License-Identifier: Apache-2.0 */
#include "library/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "library/metrics/metrics.h"
#include "library/metrics/rank_load.h"
#include "library/run_directory.h"
#include "library/split_kept.h"
#include "runtime/checkpoint/origin.h"

/* Listeners for the run's progress. */
struct audience {
    const struct weft_run_settings *settings;
    struct weft_metrics *metrics; /* on rank 0 with a directory; otherwise NULL */
    struct weft_rank_load *load;
};

/* Adds the line to the metrics and frees it. */
static enum weft_status note_line(const struct audience *audience, struct weft_text *line,
                                  struct weft_error *err)
{
    enum weft_status status = weft_metrics_add(audience->metrics, line, err);
    weft_text_finish(line);
    return status;
}

static enum weft_status on_evaluation(void *context, const struct weft_evaluation_line *line,
                                      struct weft_error *err)
{
    const struct audience *audience = context;
    struct weft_text text;
    if (audience->metrics == NULL) return WEFT_OK;
    weft_text_init(&text);
    weft_metrics_evaluation(line, &text);
    return note_line(audience, &text, err);
}

static enum weft_status on_save(void *context, const struct weft_save_line *line,
                                struct weft_error *err)
{
    const struct audience *audience = context;
    struct weft_text text;
    if (audience->metrics == NULL) return WEFT_OK;
    weft_text_init(&text);
    weft_metrics_save(line, &text);
    return note_line(audience, &text, err);
}

static enum weft_status on_step(void *context, const struct weft_step_line *line,
                                const struct weft_trace *trace, struct weft_error *err)
{
    const struct audience *audience = context;
    const struct weft_run_settings *settings = audience->settings;
    weft_rank_load_note(audience->load, line);
    const struct weft_step step = {
        .step = line->step,
        .steps = line->steps,
        .tokens = line->tokens,
        .loss = line->loss,
        .norm = line->norm,
        .lr = line->lr,
        .step_ns = line->step_ns,
        .exposed_ns = line->exposed_ns,
    };
    struct weft_text text;
    (void)trace;
    if (audience->metrics != NULL) {
        weft_text_init(&text);
        weft_metrics_step(line, &text);
        WEFT_TRY(note_line(audience, &text, err));
    }
    if (settings->on_step == NULL) return WEFT_OK;
    enum weft_status status = settings->on_step(settings->context, &step, err);
    if (status == WEFT_OK) return WEFT_OK;
    return weft_fail(err, status, "ended by the caller after step %lld", (long long)line->step);
}

/* The place of a run. Rank 0 has the directory, its lock and its metrics. It decides for all ranks
 * where to save and from which checkpoint to resume. */
struct place {
    struct weft_run_directory directory;
    bool finished; /* no step is left; its files stay as they are */
    char metrics_path[WEFT_RUN_FILE_BYTES];
    struct weft_metrics *metrics;
    struct weft_text checkpoints, resume, from;
};

static struct weft_run_request request_of(const struct weft_run_settings *settings)
{
    return (struct weft_run_request){
        .directory = settings->directory,
        .resume = settings->resume == NULL ? "if-any" : settings->resume,
        .needs_parameters = settings->resume == NULL,
        .from = settings->from,
    };
}

static enum weft_status make_place(const struct weft_run_of *of,
                                   const struct weft_run_settings *settings, struct place *place,
                                   struct weft_error *err)
{
    const struct weft_run_request request = request_of(settings);
    struct weft_run_directory *directory = &place->directory;
    WEFT_TRY(weft_run_directory_check(&request, of->session->config, &place->finished, NULL, err));
    WEFT_TRY(weft_run_directory_open(&request, of->session->config, directory, err));
    place->finished = directory->finished;
    weft_text_add(&place->checkpoints, directory->checkpoints);
    if (directory->resume != NULL) weft_text_add(&place->resume, directory->resume);
    weft_text_add(&place->from, directory->from);
    if (place->finished) return WEFT_OK;
    WEFT_TRY(weft_run_directory_record(directory, of->session, err));
    WEFT_TRY(weft_metrics_prepare(directory->path, directory->own ? directory->resume : NULL,
                                  place->metrics_path, err));
    return weft_metrics_open(place->metrics_path, &place->metrics, err);
}

static enum weft_status open_place(const struct weft_run_of *of,
                                   const struct weft_run_settings *settings, struct place *place,
                                   struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    if (of->meeting->rank == 0) status = make_place(of, settings, place, err);
    WEFT_TRY(weft_machine_share(of->machine, &place->checkpoints, status, err));
    WEFT_TRY(weft_machine_share(of->machine, &place->resume, status, err));
    return weft_machine_share(of->machine, &place->from, status, err);
}

static void close_place(struct place *place)
{
    weft_metrics_close(place->metrics);
    weft_run_directory_close(&place->directory);
    weft_text_finish(&place->checkpoints);
    weft_text_finish(&place->resume);
    weft_text_finish(&place->from);
}

static enum weft_status train_steps(const struct weft_run_of *of,
                                    const struct weft_run_settings *settings,
                                    struct weft_metrics *metrics, const char *checkpoints,
                                    const char *resume, const char *from,
                                    struct weft_rank_load *load, struct weft_train_result *out,
                                    struct weft_error *err)
{
    const struct weft_session *session = of->session;
    struct audience audience = {settings, metrics, load};
    WEFT_TRY(weft_machine_go_on(of->meeting, session->config, session->profile, resume, of->machine,
                                err));
    WEFT_TRY(
        weft_machine_expect(of->machine, session->config, session->profile, session->plan, err));
    const struct weft_train_options options = {
        .config = session->config,
        .plan = session->plan,
        .program = session->program,
        .shards = session->stages.shards,
        .device = of->machine->device,
        .comm = of->machine->comm,
        .nn = of->machine->nn,
        .measured = weft_profile_timed_network(session->profile),
        .on_step = on_step,
        .on_evaluation = on_evaluation,
        .on_save = on_save,
        .context = &audience,
        .checkpoints = checkpoints,
        .resume = resume,
        .from = from,
        .stop = of->stop,
    };
    weft_rank_load_begin(load);
    enum weft_status status = weft_train_run(&options, out, err);
    atomic_store(of->stop, 0);
    return status;
}

/* Collective: all ranks give their part of the hosts, and rank 0 writes the result. */
static enum weft_status write_result(const struct weft_run_of *of, const struct place *place,
                                     const struct weft_rank_load *load,
                                     const struct weft_train_result *result, struct weft_error *err)
{
    struct weft_run_hosts hosts;
    struct weft_pool pool;
    struct weft_text text;
    weft_pool_init(&pool);
    weft_text_init(&text);
    enum weft_status status =
        weft_rank_load_exchange(load, of->meeting, of->machine->comm, &pool, &hosts, err);
    if (status == WEFT_OK && of->meeting->rank == 0 && !place->finished) {
        weft_metrics_result(result, &hosts, &text);
        status = weft_run_directory_write(&place->directory, "result.json", &text, err);
    }
    weft_text_finish(&text);
    weft_pool_finish(&pool);
    return status;
}

static enum weft_status run_in(const struct weft_run_of *of,
                               const struct weft_run_settings *settings,
                               struct weft_train_result *out, struct weft_error *err)
{
    struct place place = {.directory = {.lock_fd = -1}};
    struct weft_rank_load load;
    weft_text_init(&place.checkpoints);
    weft_text_init(&place.resume);
    weft_text_init(&place.from);
    enum weft_status status = open_place(of, settings, &place, err);
    bool saves = weft_run_saves(&of->session->config->train);
    if (status == WEFT_OK)
        status = train_steps(
            of, settings, place.metrics, saves ? weft_text_chars(&place.checkpoints) : NULL,
            place.resume.length > 0 ? weft_text_chars(&place.resume) : NULL,
            place.from.length > 0 ? weft_text_chars(&place.from) : NULL, &load, out, err);
    if (status == WEFT_OK) status = write_result(of, &place, &load, out, err);
    close_place(&place);
    return status;
}

/* Without a directory every rank finds the origin itself. */
static enum weft_status run_without(const struct weft_run_of *of,
                                    const struct weft_run_settings *settings,
                                    struct weft_train_result *out, struct weft_error *err)
{
    char from[WEFT_ORIGIN_PATH_BYTES] = "";
    struct weft_rank_load load;
    if (settings->from != NULL) WEFT_TRY(weft_origin_find(settings->from, from, err));
    return train_steps(of, settings, NULL, NULL, settings->resume, from[0] != '\0' ? from : NULL,
                       &load, out, err);
}

static void write_split(const struct weft_manifest_split *split, struct weft_text *out)
{
    weft_text_addf(
        out, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
        split->micro_batch, split->micro_steps, split->group, split->layers, split->ranks,
        split->idle, split->bundle);
}

static enum weft_status read_split(const struct weft_text *text, struct weft_manifest_split *out,
                                   struct weft_error *err)
{
    const int n =
        sscanf(weft_text_chars(text),
               "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
               &out->micro_batch, &out->micro_steps, &out->group, &out->layers, &out->ranks,
               &out->idle, &out->bundle);
    return n == 7 ? WEFT_OK
                  : weft_fail(err, WEFT_E_INTERNAL, "rank 0's split is not of seven numbers");
}

/* A plan that was made before the checkpoint was known stays. */
static enum weft_status keep_split(const struct weft_run_of *of,
                                   const struct weft_manifest_split *split, struct weft_error *err)
{
    const struct weft_plan *plan = of->session->plan;
    struct weft_config *config = of->session->config;
    if (plan == NULL) return weft_split_keep(split, config, err);
    if (split->micro_batch > 0 && split->micro_steps != 1 &&
        !weft_model_ties_alike(config->model, split->layers, plan->problem->period.layers))
        weft_log(WEFT_LOG_WARNING,
                 "the plan was made before the run, and the checkpoint has another order of "
                 "micro-steps; the model ties a tensor, so its sums round otherwise: call weft_run "
                 "without a plan to keep the order");
    return WEFT_OK;
}

enum weft_status weft_run_check(const struct weft_run_of *of,
                                const struct weft_run_settings *settings, struct weft_error *err)
{
    const struct weft_run_request request = request_of(settings);
    struct weft_manifest_split split = {0};
    struct weft_text shared;
    enum weft_status status = WEFT_OK;
    bool finished = false;
    if (settings->directory == NULL && settings->resume == NULL) return WEFT_OK;
    if (settings->directory == NULL && settings->from != NULL)
        return weft_fail(err, WEFT_E_USAGE,
                         "settings.from begins a run, and settings.resume goes on with one: give "
                         "one of them");
    weft_text_init(&shared);
    if (of->meeting->rank == 0)
        status = weft_run_directory_check(&request, of->session->config, &finished, &split, err);
    if (of->meeting->rank == 0 && status == WEFT_OK) write_split(&split, &shared);
    status = weft_machine_share(of->machine, &shared, status, err);
    if (status == WEFT_OK) status = read_split(&shared, &split, err);
    if (status == WEFT_OK) status = keep_split(of, &split, err);
    weft_text_finish(&shared);
    return status;
}

enum weft_status weft_run_session(const struct weft_run_of *of,
                                  const struct weft_run_settings *settings,
                                  struct weft_train_result *out, struct weft_error *err)
{
    if (settings->directory != NULL) return run_in(of, settings, out, err);
    return run_without(of, settings, out, err);
}
