#include "library/foreign.h"

#include <inttypes.h>

#include "base/log.h"
#include "runtime/launch/launch.h"
#include "runtime/measure/machine.h"

/* Compute threads of a rank on this machine. */
static int64_t threads_of(const struct weft_config *config)
{
    const struct weft_cluster *cluster = &config->cluster;
    const int64_t local =
        cluster->ranks < cluster->ranks_per_node ? cluster->ranks : cluster->ranks_per_node;
    const struct weft_rendezvous meeting = {.ranks = (int32_t)local};
    return weft_rendezvous_threads(&meeting, cluster->threads);
}

struct weft_foreign weft_session_compare_origin(const struct weft_session *session)
{
    const struct weft_config *config = session->config;
    const struct weft_profile_origin *origin = &session->profile->origin;
    struct weft_foreign foreign = {.ranks = origin->ranks > 0};
    char machine[WEFT_MACHINE_NAME_BYTES];
    /* A GPU's name is known only where it is open: weft_machine_go_on compares it. */
    if (config->cluster.device.type == WEFT_DEVICE_CPU) {
        weft_measure_name_cpu(machine);
        foreign.machine = weft_profile_origin_differs(origin, machine, 0);
    }
    if (config->cluster.threads > 0 || !foreign.machine)
        foreign.threads = weft_profile_origin_differs(origin, NULL, threads_of(config));
    return foreign;
}

void weft_session_tell_origin(const struct weft_session *session, bool runs_here)
{
    const struct weft_foreign foreign = weft_session_compare_origin(session);
    const char *path = session->config->cluster.profile;
    const int64_t threads = threads_of(session->config);
    char machine[WEFT_MACHINE_NAME_BYTES];
    struct weft_text text;
    const struct weft_profile *profile = session->profile;
    if (path != NULL && profile->kernels != NULL && profile->origin.machine == NULL)
        weft_log(WEFT_LOG_INFO,
                 "%s: does not say on which machine and with how many threads a rank it was "
                 "measured; `weft profile` makes one that does",
                 path);
    if (foreign.ranks)
        weft_log(WEFT_LOG_INFO,
                 "%s: measured with %" PRId64 " rank%s, and the config has %" PRId64
                 ": collectives take the time that cluster.link gives",
                 path != NULL ? path : "the run's profile", profile->origin.ranks,
                 profile->origin.ranks == 1 ? "" : "s", profile->ranks);
    if (!foreign.machine && !foreign.threads) return;
    weft_text_init(&text);
    weft_text_addf(&text, "%s: times measured ", path != NULL ? path : "the run's profile");
    weft_profile_origin_show(&session->profile->origin, &text);
    weft_measure_name_cpu(machine);
    if (foreign.machine) weft_text_addf(&text, ", and this machine is %s", machine);
    if (foreign.threads)
        weft_text_addf(&text, ", and a rank of this config has %" PRId64 " thread%s", threads,
                       threads == 1 ? "" : "s");
    const bool warns = foreign.threads || runs_here;
    if (warns) weft_text_add(&text, ": steps will take another time. Measure with `weft profile`");
    weft_log(warns ? WEFT_LOG_WARNING : WEFT_LOG_INFO, "%s", weft_text_chars(&text));
    weft_text_finish(&text);
}

void weft_session_tell_load(const struct weft_session *session)
{
    const char *path = session->config->cluster.profile;
    const int64_t busy_millicores = session->profile->origin.busy_millicores;
    if (busy_millicores < WEFT_BUSY_MILLICORES) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: other programs or the host used %.1f cores while it was measured: times are "
             "longer by that. Measure again with `weft profile` on an idle machine",
             path != NULL ? path : "the run's profile", 1e-3 * (double)busy_millicores);
}
