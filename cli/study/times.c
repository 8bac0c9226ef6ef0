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
                                    const struct weft_session *session, struct weft_times *times,
                                    struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    char machine[WEFT_MACHINE_BYTES];
    int code = 0;
    const struct weft_hash key = weft_kept_key(kept, "profile of %s", weft_times_machine(machine));
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
