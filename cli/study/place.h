/* SPDX-License-Identifier: Apache-2.0 */
/* A place of a study is the config of the command line with further settings, such as a value of a
 * key or a limit. Lists "a,b,c" of flags name places. */
#ifndef WEFT_CLI_STUDY_PLACE_H
#define WEFT_CLI_STUDY_PLACE_H

#include "cli/command.h"
#include "library/estimate.h"

enum {
    WEFT_PLACE_SETTINGS = 9,
    WEFT_PLACE_BYTES = 512,
    WEFT_LIST_BYTES = 256,
    /* Enough for weft_place_plan and 6 further flags with values. */
    WEFT_PLACE_ARGUMENTS =
        2 * WEFT_CLI_OVERRIDES + 2 * WEFT_CLI_LAYERS + 2 * WEFT_PLACE_SETTINGS + 28
};

/* Settings in order, each "path.key=value". */
struct weft_place {
    int32_t n;
    char settings[WEFT_PLACE_SETTINGS][WEFT_PLACE_BYTES];
};

/* Adds a setting of at most WEFT_PLACE_BYTES, with its NUL. */
void weft_place_add(struct weft_place *place, const char *format, ...) WEFT_PRINTF(2, 3);

/* Adds the setting with which a machine is measured: all levels of recomputation, unless the config
 * names some. */
void weft_place_open_levels(const struct weft_session *session, struct weft_place *place);

/* weft_cli_read_config at a place. A setting also replaces the flag for its key. */
WEFT_MUST_USE enum weft_status weft_place_open(const struct weft_cli *cli,
                                               const struct weft_place *place,
                                               struct weft_session *session,
                                               struct weft_error *err);

/* Fills the arguments of a `weft plan` at a place, which writes the plan to standard output and
 * reads the same files as this command. Adds the command's ranks to the place, which the arguments
 * refer to. Returns their number. `measured`: the place names the profile. */
int weft_place_plan(const struct weft_cli *cli, struct weft_place *place, bool measured,
                    const char *argv[WEFT_PLACE_ARGUMENTS]);
/* Adds a flag with its value to *n arguments. */
void weft_place_flag(const char **argv, int *n, const char *flag, const char *value);

/* weft_estimate_create at a place. The caller finishes *out, also after a failure. */
WEFT_MUST_USE enum weft_status weft_place_estimate(const struct weft_cli *cli,
                                                   const struct weft_place *place, uint32_t asked,
                                                   struct weft_estimate *out,
                                                   struct weft_error *err);

/* A list while it is read; `rest` begins as all of it. */
struct weft_list {
    const char *rest;
    char item[WEFT_LIST_BYTES]; /* the current item; cut if it is longer, and `cut` is true */
    bool cut;
};

/* Reads the next item, which may be empty; false after the last one. */
bool weft_list_next(struct weft_list *list);

/* Reads a flag's number from 1 to `most`; without the flag (NULL) *out stays. WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_flag_number(const char *flag, const char *text, int32_t most,
                                                int32_t *out, struct weft_error *err);

#endif
