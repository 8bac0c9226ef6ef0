/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a study on this machine: they are measured once, and planning processes read them.
 */
#ifndef WEFT_CLI_STUDY_TIMES_H
#define WEFT_CLI_STUDY_TIMES_H

#include "cli/process/kept.h"
#include "cli/study/place.h"

enum { WEFT_SHARED_PATH_BYTES = 64, WEFT_MACHINE_BYTES = 256 };

/* {.fd = -1} is none. */
struct weft_times {
    char path[WEFT_SHARED_PATH_BYTES]; /* of the profile, for other processes; "": none */
    int fd;
    struct weft_text profile; /* its document */
};

/* Returns the name of this machine, on which measured times depend. */
const char *weft_times_machine(char out[WEFT_MACHINE_BYTES]);

/* Measures this machine for a session, unless `kept` has that from before a stop: other times would
 * make other rows. `when` is a part of the kept key: "before" or "after" the runs. */
WEFT_MUST_USE enum weft_status weft_times_measure(const struct weft_cli *cli,
                                                  struct weft_kept *kept,
                                                  const struct weft_session *session,
                                                  const char *when, struct weft_times *times,
                                                  struct weft_error *err);
/* Takes the times that a session has measured. */
WEFT_MUST_USE enum weft_status weft_times_of(const struct weft_profile *profile,
                                             struct weft_times *times, struct weft_error *err);
/* Shares by which times of a machine grew between two measurements. */
struct weft_drift {
    bool known;
    double compute; /* forward and backward of all layers */
    double network; /* all collectives at the measured sizes */
};
WEFT_MUST_USE enum weft_status weft_times_compare(const struct weft_times *before,
                                                  const struct weft_times *after,
                                                  struct weft_drift *out, struct weft_error *err);
/* Adds the setting of the profile, if there is one. */
void weft_times_add(const struct weft_times *times, struct weft_place *place);
void weft_times_finish(struct weft_times *times);

/* A text in memory that child processes read at `path`. It lives as long as its descriptor. The
 * caller closes *fd, -1 after a failure. */
WEFT_MUST_USE enum weft_status weft_study_share(const struct weft_text *text, const char *what,
                                                char path[WEFT_SHARED_PATH_BYTES], int *fd,
                                                struct weft_error *err);

#endif
