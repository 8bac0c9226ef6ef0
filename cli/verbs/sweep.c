#define _GNU_SOURCE /* memfd_create */
#include "cli/verbs/sweep.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commit.h"
#include "cli/job/job.h"
#include "cli/terminal.h"
#include "library/foreign.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "spec/kind.h"

struct work {
    const struct weft_cli *cli;
    struct weft_sweep_options options;
    struct weft_session session;
    struct weft_sweep sweep;
    struct weft_sweep_curve curves[WEFT_SWEEP_CURVES];
    struct weft_text *plans[WEFT_SWEEP_CURVES]; /* [n_points] each, when they are executed */
    struct weft_text title;                     /* of the picture */
    int profile_fd;                             /* measured here; -1 = none */
    char profile_path[64];
    struct weft_kept kept; /* of a sweep that is stopped */
};

/* A name of this machine: what is measured depends on it. */
static const char *name_machine(char out[256])
{
    if (gethostname(out, 255) != 0) out[0] = '\0';
    out[255] = '\0';
    return out;
}

/* Measures, unless that was done before the sweep was stopped: other times would make other rows.
 */
static enum weft_status measure(struct work *work, struct weft_text *text, struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    char machine[256];
    int code = 0;
    const struct weft_hash key = weft_kept_key(&work->kept, "profile of %s", name_machine(machine));
    if (weft_kept_find(&work->kept, key, &code, text)) {
        weft_log(WEFT_LOG_INFO, "sweep: this machine was measured before it was stopped");
        return WEFT_OK;
    }
    WEFT_TRY(weft_cli_measure(&work->session, &profile, err));
    weft_profile_write(profile, text);
    weft_profile_destroy(profile);
    if (weft_text_ok(text)) weft_kept_add(&work->kept, key, 0, text);
    return WEFT_OK;
}

/* A profile measured here, where every process of the sweep can read it. */
static enum weft_status share_profile(struct work *work, struct weft_error *err)
{
    bool trains = work->cli->measure && weft_session_must_measure(&work->session);
    if (!trains && !weft_cli_measures(&work->session)) return WEFT_OK;
    struct weft_text text;
    weft_text_init(&text);
    enum weft_status status = measure(work, &text, err);
    if (status == WEFT_OK && !weft_text_ok(&text)) status = weft_fail_memory(err, "a profile");
    if (status == WEFT_OK) {
        work->profile_fd = memfd_create("profile", MFD_CLOEXEC);
        ssize_t n = work->profile_fd < 0
                        ? -1
                        : write(work->profile_fd, weft_text_chars(&text), text.length);
        if (n < 0 || (size_t)n != text.length)
            status =
                weft_fail(err, WEFT_E_SYSTEM, "a memory file for the profile: %s", strerror(errno));
        snprintf(work->profile_path, sizeof work->profile_path, "/proc/%ld/fd/%d", (long)getpid(),
                 work->profile_fd);
    }
    weft_text_finish(&text);
    return status;
}

/* The config under a point's limits (NULL: its own) and with the shared profile. */
static enum weft_status open_session(const struct work *work, const struct weft_sweep_point *point,
                                     struct weft_session *session, struct weft_error *err)
{
    static struct weft_cli cli;
    char limit[64], host[64], profile[128];
    cli = *work->cli;
    if (cli.n_overrides + 3 > WEFT_CLI_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "--set: too many overrides for a sweep");
    if (point) {
        snprintf(limit, sizeof limit, "cluster.memory_limit=%lldB", (long long)point->limit_bytes);
        snprintf(host, sizeof host, "cluster.host.memory_limit=%lldB",
                 (long long)point->host_limit_bytes);
        cli.overrides[cli.n_overrides++] = limit;
        if (work->sweep.grid) cli.overrides[cli.n_overrides++] = host;
    }
    snprintf(profile, sizeof profile, "cluster.profile=%s", work->profile_path);
    if (work->profile_path[0]) {
        cli.overrides[cli.n_overrides++] = profile;
        cli.profile = NULL; /* it has all of that one */
    }
    return weft_cli_read_config(&cli, cli.operands[0], session, err);
}

static enum weft_status add_curve(struct work *work, const char *planner, const int64_t *x,
                                  int32_t n, int64_t split_limit_bytes, struct weft_error *err)
{
    struct weft_sweep_curve *curve = &work->curves[work->sweep.n_curves];
    curve->planner = planner;
    curve->n_points = n;
    curve->points = calloc((size_t)n, sizeof *curve->points);
    if (!curve->points) return weft_fail_memory(err, "a sweep");
    for (int32_t i = 0; i < n; i++) {
        curve->points[i].limit_bytes = split_limit_bytes > 0 ? split_limit_bytes : x[i];
        if (split_limit_bytes > 0) curve->points[i].policy_limit_bytes = x[i];
    }
    if (work->cli->measure) {
        work->plans[work->sweep.n_curves] = calloc((size_t)n, sizeof(struct weft_text));
        if (!work->plans[work->sweep.n_curves]) return weft_fail_memory(err, "a sweep");
    }
    work->sweep.n_curves++;
    return WEFT_OK;
}

/* Policies within M1 from the least to the limit, and the joint plan within the limit. */
static enum weft_status lay_out_split(struct work *work, int64_t *x, struct weft_error *err)
{
    WEFT_TRY(weft_session_stage_leanest(&work->session, err));
    const struct weft_problem *problem = work->session.stages.problem;
    int32_t n = work->options.points;
    int64_t limit_bytes = problem->tiers[0].limit_bytes;
    int64_t least_bytes = weft_least_limit(problem, 0, NULL);
    if (limit_bytes == INT64_MAX)
        return weft_fail(err, WEFT_E_USAGE,
                         "--split divides a memory limit: give cluster.memory_limit or "
                         "--memory-limit");
    if (least_bytes > limit_bytes) least_bytes = limit_bytes; /* the plans will say what fits */
    for (int32_t i = 0; i < n; i++)
        x[i] = n == 1 ? limit_bytes
                      : least_bytes + (int64_t)((double)(limit_bytes - least_bytes) * i / (n - 1));
    int64_t joint = limit_bytes;
    WEFT_TRY(add_curve(work, work->options.planners.names[0], x, n, limit_bytes, err));
    WEFT_TRY(add_curve(work, work->options.planners.names[1], &joint, 1, 0, err));
    work->sweep.split = true;
    return WEFT_OK;
}

/* A curve a limit of the host's memory, with the same limits of the device's. */
static enum weft_status lay_out_grid(struct work *work, const int64_t *x, int32_t n,
                                     struct weft_error *err)
{
    struct weft_sweep_hosts *hosts = &work->options.hosts;
    const char *planner = work->options.planners.names[0];
    if (!hosts->given) WEFT_TRY(weft_sweep_choose_hosts(&work->session, planner, x, n, hosts, err));
    work->sweep.grid = true;
    for (int32_t h = 0; h < hosts->n; h++) {
        WEFT_TRY(add_curve(work, planner, x, n, 0, err));
        for (int32_t i = 0; i < n; i++)
            work->curves[h].points[i].host_limit_bytes = hosts->limits[h];
    }
    return WEFT_OK;
}

/* Limits chosen before the sweep was stopped, or these; true if they were. */
static bool find_limits(struct work *work, const char *what, int64_t *limits, int32_t *n)
{
    struct weft_text text;
    int code = 0;
    weft_text_init(&text);
    bool found = weft_kept_find(&work->kept, weft_kept_key(&work->kept, "%s", what), &code, &text);
    const char *at = weft_text_chars(&text);
    if (found) *n = 0;
    for (char *end; found && *at != '\0'; at = end + 1)
        limits[(*n)++] = strtoll(at, &end, 10);
    weft_text_finish(&text);
    return found;
}

static void keep_limits(struct work *work, const char *what, const int64_t *limits, int32_t n)
{
    struct weft_text text;
    weft_text_init(&text);
    for (int32_t i = 0; i < n; i++)
        weft_text_addf(&text, "%lld\n", (long long)limits[i]);
    if (weft_text_ok(&text))
        weft_kept_add(&work->kept, weft_kept_key(&work->kept, "%s", what), 0, &text);
    weft_text_finish(&text);
}

/* The options that decide which limits are chosen. */
static void name_limits(const struct weft_sweep_options *options, char out[64])
{
    struct weft_text text;
    char hash[WEFT_HASH_TEXT_BYTES];
    weft_text_init(&text);
    weft_text_addf(&text, "%d %d %d %d", options->points, options->to_all, options->hosts.n,
                   options->hosts.given);
    for (int32_t i = 0; options->to_all && i < options->planners.n; i++)
        weft_text_addf(&text, " %s", options->planners.names[i]);
    for (int32_t i = 0; options->hosts.given && i < options->hosts.n; i++)
        weft_text_addf(&text, " %lld", (long long)options->hosts.limits[i]);
    weft_hash_show(weft_hash_bytes(weft_text_chars(&text), text.length), hash);
    snprintf(out, 64, "limits %s", hash);
    weft_text_finish(&text);
}

static enum weft_status choose_limits(struct work *work, int64_t *x, int32_t *n,
                                      struct weft_error *err)
{
    const struct weft_sweep_options *options = &work->options;
    char what[64];
    name_limits(options, what);
    if (find_limits(work, what, x, n)) return WEFT_OK;
    WEFT_TRY(weft_sweep_choose_limits(&work->session, options->to_all ? &options->planners : NULL,
                                      &options->hosts, *n, x, err));
    keep_limits(work, what, x, *n);
    return WEFT_OK;
}

static enum weft_status lay_out(struct work *work, struct weft_error *err)
{
    static int64_t x[WEFT_SWEEP_POINTS];
    int32_t n = work->options.points;
    const struct weft_cli *cli = work->cli;
    if (cli->split && !cli->limits) return lay_out_split(work, x, err);
    if (cli->split)
        return weft_fail(err, WEFT_E_USAGE, "--split divides one limit: leave --limits out");
    if (cli->limits)
        WEFT_TRY(weft_sweep_read_limits("--limits", cli->limits, 1, WEFT_SWEEP_POINTS, x, &n, err));
    else
        WEFT_TRY(choose_limits(work, x, &n, err));
    if (work->options.hosts.n > 0) return lay_out_grid(work, x, n, err);
    for (int32_t p = 0; p < work->options.planners.n; p++)
        WEFT_TRY(add_curve(work, work->options.planners.names[p], x, n, 0, err));
    return WEFT_OK;
}

static enum weft_status execute(struct work *work, const struct weft_sweep_curve *curve,
                                struct weft_sweep_point *point, const struct weft_text *plan,
                                struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_text text;
    struct weft_train_result result = {0};
    char bytes[WEFT_UNITS_TEXT_BYTES];
    weft_text_init(&text);
    weft_log(WEFT_LOG_INFO, "sweep: training under %s within %s", curve->planner,
             weft_units_show_bytes(point->limit_bytes, bytes));
    enum weft_status status = open_session(work, point, &session, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK)
        status =
            weft_session_take(&session, weft_text_chars(plan), plan->length, curve->planner, err);
    if (status == WEFT_OK) {
        struct weft_job job = {.kind = WEFT_JOB_TRAIN,
                               .config = session.config,
                               .profile = session.profile,
                               .plan = session.plan,
                               .watch = work->cli->watch};
        status = weft_job_run(&job, &text, err);
    }
    if (status == WEFT_OK) status = weft_job_read_result(&text, &result, err);
    if (status == WEFT_OK && result.stopped)
        status =
            weft_fail(err, WEFT_E_STOPPED, "sweep: stopped by a signal under %s", curve->planner);
    point->measured_ns = result.step_ns;
    point->measured_exposed_ns = result.exposed_ns;
    point->measured_bytes = result.tiers[WEFT_HOME_DEVICE].measured_bytes;
    weft_text_finish(&text);
    weft_session_close(&session);
    return status;
}

/* Results that were kept before the sweep was stopped. */
static bool find_run(struct work *work, struct weft_hash key, struct weft_sweep_point *point)
{
    struct weft_text text;
    long long ns[3] = {0};
    int code = 0;
    weft_text_init(&text);
    const bool found =
        weft_kept_find(&work->kept, key, &code, &text) &&
        sscanf(weft_text_chars(&text), "%lld %lld %lld", &ns[0], &ns[1], &ns[2]) == 3;
    weft_text_finish(&text);
    if (!found) return false;
    point->measured_ns = ns[0];
    point->measured_exposed_ns = ns[1];
    point->measured_bytes = ns[2];
    return true;
}

static void keep_run(struct work *work, struct weft_hash key, const struct weft_sweep_point *point)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_addf(&text, "%lld %lld %lld\n", (long long)point->measured_ns,
                   (long long)point->measured_exposed_ns, (long long)point->measured_bytes);
    if (weft_text_ok(&text)) weft_kept_add(&work->kept, key, 0, &text);
    weft_text_finish(&text);
}

/* A run that holds more than its limit is a result like others; what else fails ends the sweep. */
static enum weft_status execute_point(struct work *work, const struct weft_sweep_curve *curve,
                                      struct weft_sweep_point *point, const struct weft_text *plan,
                                      struct weft_error *err)
{
    static struct weft_error reason;
    char hash[WEFT_HASH_TEXT_BYTES], machine[256];
    reason = (struct weft_error){0};
    const struct weft_hash key = weft_kept_key(
        &work->kept, "run %s within %lld, %lld on %s",
        weft_hash_show(weft_hash_bytes(weft_text_chars(plan), plan->length), hash),
        (long long)point->limit_bytes, (long long)point->host_limit_bytes, name_machine(machine));
    if (find_run(work, key, point)) return WEFT_OK;
    enum weft_status status = execute(work, curve, point, plan, &reason);
    if (status == WEFT_OK) keep_run(work, key, point);
    if (status == WEFT_OK) return WEFT_OK;
    if (status != WEFT_E_INFEASIBLE) return weft_fail(err, status, "%s", reason.text);
    weft_log(WEFT_LOG_WARNING, "not measured, planner %s: %s", curve->planner, reason.text);
    return WEFT_OK;
}

static enum weft_status execute_all(struct work *work, struct weft_error *err)
{
    struct weft_watch *watch = work->cli->watch;
    int64_t begun_ns = weft_clock_now_ns(), n = 0, done = 0;
    enum weft_status status = WEFT_OK;
    for (int32_t c = 0; c < work->sweep.n_curves; c++)
        n += weft_sweep_count_fits(&work->curves[c]);
    for (int32_t c = 0; c < work->sweep.n_curves; c++) {
        struct weft_sweep_curve *curve = &work->curves[c];
        for (int32_t i = 0; i < curve->n_points && status == WEFT_OK; i++) {
            if (!curve->points[i].fits) continue;
            weft_watch_part(watch, "sweep", "run", done++, n, begun_ns);
            status = execute_point(work, curve, &curve->points[i], &work->plans[c][i], err);
        }
    }
    weft_watch_part(watch, NULL, NULL, 0, 0, 0);
    return status;
}

/* Marks beyond ASCII only where a person looks at a terminal that shows them. */
static bool shows_unicode(const struct weft_cli *cli)
{
    if (cli->output || !isatty(STDOUT_FILENO)) return false;
    setlocale(LC_CTYPE, "");
    bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    setlocale(LC_CTYPE, "C");
    return unicode;
}

static enum weft_status write_one(const char *path, const struct weft_sweep *sweep,
                                  void (*write)(const struct weft_sweep *, struct weft_text *),
                                  struct weft_error *err)
{
    struct weft_text text;
    if (!path) return WEFT_OK;
    weft_text_init(&text);
    write(sweep, &text);
    enum weft_status status = weft_text_ok(&text)
                                  ? weft_file_write(path, weft_text_chars(&text), text.length, err)
                                  : weft_fail_memory(err, path);
    weft_text_finish(&text);
    return status;
}

/* That file then takes the place of the report. */
static bool to_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static enum weft_status print(const struct work *work, struct weft_error *err)
{
    const struct weft_cli *cli = work->cli;
    struct weft_text out;
    weft_cli_report_init(cli, cli->output, &out);
    if (cli->json) {
        struct weft_json_writer writer;
        weft_json_writer_init(&writer, &out, 2);
        weft_sweep_json(&work->sweep, &writer);
        weft_text_add(&out, "\n");
    } else {
        weft_sweep_table(&work->sweep, &out);
        weft_text_add(&out, "\n");
        weft_sweep_chart(&work->sweep, out.columns, shows_unicode(cli), &out);
    }
    enum weft_status status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

/* Results are many plans and runs: they are printed before any file is written, and every file is
 * tried whatever became of the others. The first failure is told. */
static enum weft_status say(const struct work *work, struct weft_error *err)
{
    const struct weft_cli *cli = work->cli;
    const struct weft_sweep *sweep = &work->sweep;
    struct weft_error later = {0};
    enum weft_status status = WEFT_OK, failure = WEFT_OK;
    if (!to_stdout(cli->csv) && !to_stdout(cli->svg)) status = print(work, err);
    failure = write_one(cli->csv, sweep, weft_sweep_csv, status == WEFT_OK ? err : &later);
    if (status == WEFT_OK) status = failure;
    failure = write_one(cli->svg, sweep, weft_sweep_svg, status == WEFT_OK ? err : &later);
    return status == WEFT_OK ? failure : status;
}

static bool any_fits(const struct weft_sweep *sweep)
{
    for (int32_t c = 0; c < sweep->n_curves; c++)
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++)
            if (sweep->curves[c].points[i].fits) return true;
    return false;
}

/* Where none is named, rules that keep state in tiers which the config has not got are left out. */
static void drop_planners(const struct weft_config *config, struct weft_sweep_planners *planners)
{
    int32_t n = 0;
    for (int32_t i = 0; i < planners->n; i++) {
        const int homes = weft_planner_homes(weft_planner_find(planners->names[i], NULL));
        if (homes == 0 || (homes & weft_config_state_homes(config)) != 0)
            memmove(planners->names[n++], planners->names[i], sizeof planners->names[i]);
    }
    planners->n = n;
}

/* The bytes of the layers' files: a file that is built again may need other memory and times. */
static void add_layers(const struct weft_kinds *kinds, struct weft_text *out)
{
    enum { MOST_BYTES = 1 << 30 };
    for (int32_t i = 0; kinds != NULL && i < kinds->n_files; i++) {
        struct weft_error unread = {0};
        char *bytes = NULL, hash[WEFT_HASH_TEXT_BYTES];
        size_t length = 0;
        if (weft_file_read(kinds->files[i], MOST_BYTES, &bytes, &length, &unread) != WEFT_OK)
            out->failed = true;
        else
            weft_text_addf(out, "layers %s\n",
                           weft_hash_show(weft_hash_bytes(bytes, length), hash));
        free(bytes);
    }
}

/* Results are kept next to the first file that is asked for, under all that decides them. */
static void open_kept(struct work *work)
{
    const struct weft_cli *cli = work->cli;
    const char *const files[] = {cli->csv, cli->output, cli->svg};
    const char *beside = NULL, *solver = getenv("WEFT_SOLVE");
    struct weft_config *config = work->session.config;
    const char *profile = config->cluster.profile;
    struct weft_text base;
    for (size_t i = 0; i < sizeof files / sizeof *files && !beside; i++)
        if (files[i] && !to_stdout(files[i])) beside = files[i];
    weft_text_init(&base);
    config->cluster.profile = NULL; /* what is in it counts, and not its path */
    weft_config_write(config, &base);
    config->cluster.profile = profile;
    weft_text_addf(&base, "solver %s\n", solver ? solver : "");
    add_layers(cli->kinds, &base);
    weft_kept_open(&work->kept, beside, &base);
    weft_text_finish(&base);
}

/* From here on the profile decides too. */
static void add_profile(struct work *work)
{
    char hash[WEFT_HASH_TEXT_BYTES];
    work->kept.base =
        weft_kept_key(&work->kept, "profile %s", weft_hash_show(work->session.profile->hash, hash));
}

/* Facts of the sweep for its reports. The picture needs the least memory too, at the most of the
 * host's: staging for it comes first, since names are the problem's. */
static enum weft_status describe(struct work *work, struct weft_error *err)
{
    struct weft_sweep *sweep = &work->sweep;
    const struct weft_sweep_hosts *hosts = &work->options.hosts;
    const int64_t *host = hosts->n > 0 ? &hosts->limits[hosts->n - 1] : NULL;
    if (work->cli->svg)
        WEFT_TRY(weft_sweep_find_least(&work->session, host, &sweep->least_bytes, err));
    sweep->times = work->session.stages.problem->profile_source;
    sweep->ranks = work->session.stages.problem->ranks;
    sweep->emulated = weft_config_emulates(work->session.config);
    weft_sweep_title(work->session.config, sweep->times, WEFT_VERSION " (" WEFT_BUILD_COMMIT ")",
                     &work->title);
    sweep->title = weft_text_chars(&work->title);
    return weft_text_ok(&work->title) ? WEFT_OK : weft_fail_memory(err, "a title");
}

static enum weft_status sweep_all(struct work *work, struct weft_error *err)
{
    const struct weft_cli *cli = work->cli;
    const char *profile = NULL;
    WEFT_TRY(weft_sweep_read_options(cli, &work->options, err));
    WEFT_TRY(open_session(work, NULL, &work->session, err));
    WEFT_TRY(weft_sweep_check_hosts(work->session.config, &work->options, err));
    if (!cli->planners && !cli->split) drop_planners(work->session.config, &work->options.planners);
    if (cli->measure) WEFT_TRY(weft_train_check(work->session.config, err));
    open_kept(work);
    WEFT_TRY(share_profile(work, err));
    if (work->profile_path[0]) {
        profile = work->profile_path;
        weft_session_close(&work->session);
        WEFT_TRY(open_session(work, NULL, &work->session, err));
    }
    WEFT_TRY(weft_session_stage(&work->session, NULL, err));
    add_profile(work);
    weft_session_tell_origin(&work->session, cli->measure);
    if (!work->profile_path[0]) weft_session_tell_load(&work->session);
    WEFT_TRY(lay_out(work, err)); /* which stages other periods */
    WEFT_TRY(describe(work, err));
    WEFT_TRY(weft_sweep_plan(cli, profile, work->options.jobs, &work->kept, &work->sweep,
                             cli->measure ? work->plans : NULL, err));
    if (cli->measure) WEFT_TRY(execute_all(work, err));
    WEFT_TRY(say(work, err));
    weft_kept_remove(&work->kept);
    if (any_fits(&work->sweep)) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE, "no planner has a plan within any of the limits");
}

static void tell_stop(const struct weft_kept *kept, const struct weft_error *why,
                      struct weft_error *err)
{
    if (kept->folder[0] == '\0')
        weft_fail(err, WEFT_E_STOPPED, "%s; with --csv FILE what is done would be kept", why->text);
    else if (kept->n_found + kept->n_added == 0)
        weft_fail(err, WEFT_E_STOPPED, "%s, before anything was done", why->text);
    else
        weft_fail(err, WEFT_E_STOPPED,
                  "%s; what is done is kept in %s: the same command goes on from there", why->text,
                  kept->folder);
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    static struct work work;
    work = (struct work){.cli = cli, .profile_fd = -1};
    work.sweep.config = cli->operands[0];
    work.sweep.curves = work.curves;
    weft_text_init(&work.title);
    struct weft_error why = {0};
    enum weft_status status = sweep_all(&work, &why);
    if (status == WEFT_E_STOPPED)
        tell_stop(&work.kept, &why, err);
    else if (status != WEFT_OK)
        *err = why;
    for (int32_t c = 0; c < WEFT_SWEEP_CURVES; c++) {
        for (int32_t i = 0; work.plans[c] && i < work.curves[c].n_points; i++)
            weft_text_finish(&work.plans[c][i]);
        free(work.plans[c]);
        free(work.curves[c].points);
    }
    if (work.profile_fd >= 0) close(work.profile_fd);
    weft_text_finish(&work.title);
    weft_session_close(&work.session);
    return status;
}

const struct weft_command weft_command_sweep = {
    .name = "sweep",
    .usage = "CONFIG",
    .summary = "memory limit against step time, for every planner",
    .details =
        "Plans the config at N limits (9 unless said) from the least that fits to where more of "
        "it\n"
        "shortens no step, or with --to all to where every planner has a plan; or at those of\n"
        "--limits. With every planner but random, or with those of --planners, on all cores\n"
        "(--jobs N: so many processes). Each point has its step time and the bound below which no\n"
        "plan can be; planners that have no plan anywhere are named below. Where ilp is slower "
        "than\n"
        "at the limit before, it plans again from that plan, from the least limit up. --split "
        "keeps\n"
        "one limit and lets two-stage choose policies within a part of it, beside the joint plan. "
        "--measure\n"
        "trains each plan on local ranks too. --host-points N or --host-limits A,B make a grid of\n"
        "one planner (ilp unless --planners names another): each of these limits of the host's\n"
        "memory (cluster.host) with each memory limit of the device. Prints a table and a picture, "
        "or --json; --csv FILE\n"
        "and --svg FILE write the same figures. Each plan and run is kept as it comes in the "
        "folder\n"
        "FILE.sweep next to the first of them (or of -o), which goes when all is written. If the\n"
        "sweep is stopped, the same command goes on from there.",
    .flags =
        "--set --layers --ranks --seed --profile --memory-limit --work-limit --time-limit --gap "
        "--planners --points "
        "--to --limits --host-points --host-limits --jobs --csv --svg --split --measure",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
