/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/study/sweep.h"
#include "library/rival.h"

enum { MOST_BYTES = 1 << 30 };

/* Reads the head of a rival's file, and hashes the file. */
static enum weft_status read_rival(struct weft_study *study, const char *file,
                                   struct weft_study_rival *out, struct weft_error *err)
{
    char *bytes = NULL, planner[WEFT_RIVAL_PLANNER_BYTES];
    size_t length = 0;
    WEFT_TRY(weft_file_read(file, MOST_BYTES, &bytes, &length, err));
    const enum weft_status status = weft_rival_name(bytes, length, file, planner, err);
    out->hash = weft_hash_bytes(bytes, length);
    free(bytes);
    WEFT_TRY(status);
    out->file = weft_pool_string(&study->pool, file);
    out->planner = weft_pool_string(&study->pool, planner);
    return out->file && out->planner ? WEFT_OK : weft_fail_memory(err, "a sweep");
}

static enum weft_status check_flags(const struct weft_cli *cli, struct weft_error *err)
{
    const char *other = cli->split         ? "--split"
                        : cli->host_points ? "--host-points"
                        : cli->host_limits ? "--host-limits"
                                           : NULL;
    if (cli->rival == NULL || other == NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE, "--rival: goes with memory limits alone; leave out %s",
                     other);
}

enum weft_status weft_study_read_rivals(struct weft_study *study, struct weft_error *err)
{
    struct weft_list list = {.rest = study->cli->rival};
    WEFT_TRY(check_flags(study->cli, err));
    while (weft_list_next(&list)) {
        struct weft_study_rival *rival = &study->rivals[study->n_rivals];
        if (study->n_planners + study->n_rivals == WEFT_SWEEP_CURVES || list.cut || !list.item[0])
            return weft_fail(err, WEFT_E_USAGE,
                             "--rival %s: too many files, or an empty or over-long name",
                             study->cli->rival);
        WEFT_TRY(read_rival(study, list.item, rival, err));
        for (int32_t i = 0; i < study->n_rivals; i++)
            if (strcmp(study->rivals[i].planner, rival->planner) == 0)
                return weft_fail(err, WEFT_E_USAGE, "--rival: %s and %s are both named %s",
                                 study->rivals[i].file, rival->file, rival->planner);
        study->n_rivals++;
    }
    return WEFT_OK;
}
