/* SPDX-License-Identifier: Apache-2.0 */
#include "library/foreign.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/machine/cores.h"
#include "base/numbers.h"
#include "base/text.h"
#include "runtime/launch/launch.h"
#include "runtime/measure/machine.h"

/* Inputs of a run and of its profile. */
struct inputs {
    const struct weft_config *config;
    const struct weft_profile *profile;
    const struct weft_profile_origin *origin;
    char machine[WEFT_MACHINE_NAME_BYTES]; /* "" on a GPU, which is known only where it is open */
    int64_t threads, cores;
    const char *library; /* WEFT_GEMM; NULL: the profile's is taken */
    struct weft_text link;
};

/* Compute threads of a rank on this machine. */
static int64_t threads_of(const struct weft_config *config)
{
    const struct weft_cluster *cluster = &config->cluster;
    const int64_t local =
        cluster->ranks < cluster->ranks_per_node ? cluster->ranks : cluster->ranks_per_node;
    const struct weft_rendezvous meeting = {.ranks = (int32_t)local};
    return weft_rendezvous_threads(&meeting, cluster->threads);
}

static void read_inputs(const struct weft_session *session, struct inputs *out)
{
    const char *library = getenv("WEFT_GEMM");
    const bool is_named = library != NULL && library[0] != '\0' && strcmp(library, "auto") != 0;
    *out = (struct inputs){.config = session->config,
                           .profile = session->profile,
                           .origin = &session->profile->origin,
                           .threads = threads_of(session->config),
                           .cores = weft_cores(),
                           .library = is_named ? library : NULL};
    /* A GPU's name is known only where it is open: weft_machine_go_on compares it. */
    if (session->config->cluster.device.type == WEFT_DEVICE_CPU)
        weft_measure_name_cpu(out->machine);
    weft_text_init(&out->link);
    weft_profile_link(session->config, &out->link);
}

static bool has_other_machine(const struct inputs *in)
{
    return in->machine[0] != '\0' && weft_profile_origin_differs(in->origin, in->machine, 0);
}

static bool has_other_threads(const struct inputs *in)
{
    if (in->config->cluster.threads == 0 && has_other_machine(in)) return false;
    return weft_profile_origin_differs(in->origin, NULL, in->threads);
}

static bool has_other_cores(const struct inputs *in)
{
    return in->machine[0] != '\0' && !has_other_machine(in) && in->origin->cores > 0 &&
           in->origin->cores != in->cores;
}

static bool has_other_ranks(const struct inputs *in)
{
    return in->origin->ranks > 0;
}

/* Profiles of older programs only say whether their link was emulated. */
static bool has_other_link(const struct inputs *in)
{
    const struct weft_profile *profile = in->profile;
    if (in->config->cluster.ranks == 1 || has_other_ranks(in)) return false;
    if (in->origin->link != NULL) return strcmp(in->origin->link, weft_text_chars(&in->link)) != 0;
    return profile->kernels != NULL && profile->source != NULL &&
           (strstr(profile->source, "emulated link") != NULL) != weft_config_emulates(in->config);
}

static const char *precision_of(const struct inputs *in)
{
    return weft_dtype_name((enum weft_dtype)in->config->train.precision.compute);
}

static bool has_other_precision(const struct inputs *in)
{
    return in->origin->precision != NULL && strcmp(in->origin->precision, precision_of(in)) != 0;
}

static bool has_other_library(const struct inputs *in)
{
    return in->library != NULL && in->profile->kernels != NULL &&
           strcmp(in->library, in->profile->kernels) != 0;
}

static bool had_load(const struct inputs *in)
{
    return in->origin->busy_millicores >= WEFT_BUSY_MILLICORES;
}

static void tell_machine(const struct inputs *in, struct weft_text *out)
{
    weft_text_addf(out, "this machine is %s", in->machine);
}

static void tell_threads(const struct inputs *in, struct weft_text *out)
{
    weft_text_addf(out, "a rank of this config has %" PRId64 " thread%s", in->threads,
                   in->threads == 1 ? "" : "s");
}

static void tell_cores(const struct inputs *in, struct weft_text *out)
{
    weft_text_addf(out, "it could use %" PRId64 " cores then and can use %" PRId64 " now",
                   in->origin->cores, in->cores);
}

static void tell_ranks(const struct inputs *in, struct weft_text *out)
{
    weft_text_addf(out,
                   "it was measured with %" PRId64 " rank%s, and the config has %" PRId64
                   ", so collectives take the time that cluster.link gives",
                   in->origin->ranks, in->origin->ranks == 1 ? "" : "s", in->profile->ranks);
}

static void tell_link(const struct inputs *in, struct weft_text *out)
{
    const bool emulated =
        in->profile->source != NULL && strstr(in->profile->source, "emulated link") != NULL;
    const char *theirs = in->origin->link != NULL ? in->origin->link
                         : emulated               ? "an emulated link"
                                                  : "the machine's own link";
    weft_text_addf(out, "collectives were measured over %s, and this run has %s", theirs,
                   weft_text_chars(&in->link));
}

static void tell_precision(const struct inputs *in, struct weft_text *out)
{
    weft_text_addf(out, "layers were measured in %s, and this run computes in %s",
                   in->origin->precision, precision_of(in));
}

static void tell_library(const struct inputs *in, struct weft_text *out)
{
    weft_text_addf(out, "products were measured by %s, and WEFT_GEMM is %s", in->profile->kernels,
                   in->library);
}

static void tell_load(const struct inputs *in, struct weft_text *out)
{
    weft_text_addf(out,
                   "other programs or the host used %.1f cores while it was measured, so times "
                   "are longer by that",
                   1e-3 * (double)in->origin->busy_millicores);
}

/* Every input of a prediction that a run may not share. */
static const struct {
    bool (*differs)(const struct inputs *in);
    void (*tell)(const struct inputs *in, struct weft_text *out);
    bool warns; /* also where the session does not run */
} table[WEFT_INPUT_COUNT] = {
    [WEFT_INPUT_MACHINE] = {has_other_machine, tell_machine, false},
    [WEFT_INPUT_THREADS] = {has_other_threads, tell_threads, true},
    [WEFT_INPUT_CORES] = {has_other_cores, tell_cores, true},
    [WEFT_INPUT_RANKS] = {has_other_ranks, tell_ranks, false},
    [WEFT_INPUT_LINK] = {has_other_link, tell_link, true},
    [WEFT_INPUT_PRECISION] = {has_other_precision, tell_precision, true},
    [WEFT_INPUT_LIBRARY] = {has_other_library, tell_library, true},
    [WEFT_INPUT_LOAD] = {had_load, tell_load, true},
};

static uint32_t compare_inputs(const struct inputs *in)
{
    uint32_t different = 0;
    for (int i = 0; i < WEFT_INPUT_COUNT; i++)
        if (table[i].differs(in)) different |= UINT32_C(1) << i;
    return different;
}

uint32_t weft_session_compare_inputs(const struct weft_session *session)
{
    struct inputs in;
    read_inputs(session, &in);
    const uint32_t different = compare_inputs(&in);
    weft_text_finish(&in.link);
    return different;
}

static const char *name_profile(const struct inputs *in)
{
    const char *path = in->config->cluster.profile;
    return path != NULL ? path : "the run's profile";
}

static void log_inputs(const struct inputs *in, uint32_t different, bool runs_here)
{
    const uint32_t of_times = UINT32_C(1) << WEFT_INPUT_MACHINE | UINT32_C(1) << WEFT_INPUT_THREADS;
    const bool only_ranks = different == UINT32_C(1) << WEFT_INPUT_RANKS;
    struct weft_text text;
    bool warns = runs_here && !only_ranks;
    weft_text_init(&text);
    weft_text_addf(&text, "%s: ", name_profile(in));
    if ((different & of_times) != 0) {
        weft_text_add(&text, "times measured ");
        weft_profile_origin_show(in->origin, &text);
        weft_text_add(&text, ", and ");
    }
    const char *joint = "";
    for (int i = 0; i < WEFT_INPUT_COUNT; i++) {
        if ((different >> i & 1) == 0) continue;
        weft_text_add(&text, joint);
        table[i].tell(in, &text);
        warns = warns || table[i].warns;
        joint = ", and ";
    }
    if (warns) weft_text_add(&text, ": steps will take another time. Measure with `weft profile`");
    weft_log(warns ? WEFT_LOG_WARNING : WEFT_LOG_INFO, "%s", weft_text_chars(&text));
    weft_text_finish(&text);
}

void weft_session_tell_inputs(const struct weft_session *session, bool runs_here, bool measured_now)
{
    struct inputs in;
    const struct weft_profile *profile = session->profile;
    read_inputs(session, &in);
    uint32_t different = compare_inputs(&in);
    if (measured_now) different &= ~(UINT32_C(1) << WEFT_INPUT_LOAD);
    if (session->config->cluster.profile != NULL && profile->kernels != NULL &&
        profile->origin.machine == NULL)
        weft_log(WEFT_LOG_INFO,
                 "%s: does not say on which machine and with how many threads a rank it was "
                 "measured; `weft profile` makes one that does",
                 name_profile(&in));
    if (different != 0) log_inputs(&in, different, runs_here);
    weft_text_finish(&in.link);
}
