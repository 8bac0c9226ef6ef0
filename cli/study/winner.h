/* SPDX-License-Identifier: Apache-2.0 */
/* The winner of `weft best`: its files, and the commands that go on from it. */
#ifndef WEFT_CLI_STUDY_WINNER_H
#define WEFT_CLI_STUDY_WINNER_H

#include "cli/study/place.h"

struct weft_winner {
    const struct weft_cli *cli;
    struct weft_place place;          /* settings of its row */
    const struct weft_text *plan;     /* its document */
    const struct weft_text *measured; /* the profile that was measured for it; NULL: none */
};

/* Before the work: WEFT_E_CREATE if the folder has an earlier config.json, or cannot be made. */
WEFT_MUST_USE enum weft_status weft_winner_check(const char *folder, struct weft_error *err);

/* Writes config.json and plan.json to the folder of -o, the profile if it was measured, and with
 * --for fsdp2 the export as fsdp2.json and fsdp2.py. */
WEFT_MUST_USE enum weft_status weft_winner_write(struct weft_winner *winner,
                                                 struct weft_error *err);

/* Appends the commands to type next. */
void weft_winner_tell_next(const struct weft_winner *winner, struct weft_text *out);

#endif
