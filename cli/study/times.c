/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create */
#include "cli/study/times.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

const char *weft_times_machine(char out[WEFT_MACHINE_BYTES])
{
    if (gethostname(out, WEFT_MACHINE_BYTES - 1) != 0) out[0] = '\0';
    out[WEFT_MACHINE_BYTES - 1] = '\0';
    return out;
}

enum weft_status weft_study_share(const struct weft_text *text, const char *what,
                                  char path[WEFT_SHARED_PATH_BYTES], int *fd,
                                  struct weft_error *err)
{
    size_t written = 0;
    *fd = memfd_create(what, MFD_CLOEXEC);
    while (*fd >= 0 && written < text->length) {
        const ssize_t n = write(*fd, weft_text_chars(text) + written, text->length - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        written += (size_t)n;
    }
    snprintf(path, WEFT_SHARED_PATH_BYTES, "/proc/%ld/fd/%d", (long)getpid(), *fd);
    if (*fd >= 0 && written == text->length) return WEFT_OK;
    weft_fail(err, WEFT_E_SYSTEM, "a memory file for a %s: %s", what, strerror(errno));
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return WEFT_E_SYSTEM;
}

static enum weft_status share_profile(struct weft_times *times, struct weft_error *err)
{
    if (!weft_text_ok(&times->profile)) return weft_fail_memory(err, "a profile");
    return weft_study_share(&times->profile, "profile", times->path, &times->fd, err);
}

enum weft_status weft_times_of(const struct weft_profile *profile, struct weft_times *times,
                               struct weft_error *err)
{
    weft_profile_write(profile, &times->profile);
    return share_profile(times, err);
}

enum weft_status weft_times_measure(const struct weft_cli *cli, struct weft_kept *kept,
                                    const struct weft_session *session, const char *when,
                                    struct weft_times *times, struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    char machine[WEFT_MACHINE_BYTES];
    int code = 0;
    const struct weft_hash key =
        weft_kept_key(kept, "profile %s, of %s", when, weft_times_machine(machine));
    if (weft_kept_find(kept, key, &code, &times->profile)) {
        weft_log(WEFT_LOG_INFO, "%s: this machine was measured before it was stopped", cli->verb);
        return share_profile(times, err);
    }
    WEFT_TRY(weft_cli_measure(session, &profile, err));
    const enum weft_status status = weft_times_of(profile, times, err);
    weft_profile_destroy(profile);
    if (status == WEFT_OK) weft_kept_add(kept, key, 0, &times->profile);
    return status;
}

static double sum_layers(const struct weft_profile *profile)
{
    double sum = 0;
    for (int32_t i = 0; i < profile->n_layers; i++)
        sum += (double)profile->layers[i].forward_ns + (double)profile->layers[i].backward_ns;
    return sum;
}

/* Sums the collectives at the sizes of `sizes`. */
static double sum_collectives(const struct weft_profile *profile, const struct weft_profile *sizes)
{
    double sum = 0;
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        for (int32_t i = 0; i < sizes->collectives[kind].n; i++)
            sum +=
                (double)weft_curve_at(&profile->collectives[kind], sizes->collectives[kind].x[i]);
    return sum;
}

enum weft_status weft_times_compare(const struct weft_times *before, const struct weft_times *after,
                                    struct weft_drift *out, struct weft_error *err)
{
    struct weft_profile *one = NULL, *other = NULL;
    enum weft_status status =
        weft_profile_parse(weft_text_chars(&before->profile), before->profile.length,
                           "the profile before the runs", &one, err);
    if (status == WEFT_OK)
        status = weft_profile_parse(weft_text_chars(&after->profile), after->profile.length,
                                    "the profile after the runs", &other, err);
    if (status == WEFT_OK) {
        const double compute = sum_layers(one), network = sum_collectives(one, one);
        *out = (struct weft_drift){
            .known = true,
            .compute = compute > 0 ? sum_layers(other) / compute - 1 : 0,
            .network = network > 0 ? sum_collectives(other, one) / network - 1 : 0,
        };
    }
    weft_profile_destroy(one);
    weft_profile_destroy(other);
    return status;
}

void weft_times_add(const struct weft_times *times, struct weft_place *place)
{
    if (times->path[0] != '\0') weft_place_add(place, "cluster.profile=%s", times->path);
}

void weft_times_finish(struct weft_times *times)
{
    if (times->fd >= 0) close(times->fd);
    times->fd = -1;
    weft_text_finish(&times->profile);
}
