/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/origin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"

enum { MOST_THREADS = 1 << 20, MOST_RANKS = 1 << 20, MOST_CORES = 1 << 20 };
const struct weft_key_table weft_profile_origin_keys = WEFT_KEY_TABLE_OPEN(
    "The origin of its times.",
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "machine", WEFT_KEY_TEXT, weft_profile_origin, machine,
                      "CPU, cores and level of instructions, or GPU"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL, "threads", weft_profile_origin, threads, 1, MOST_THREADS,
                      "of a rank, that computed"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_ZERO, "busy_millicores", weft_profile_origin,
                      busy_millicores, "thousandths of cores that other programs used meanwhile"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL, "ranks", weft_profile_origin, ranks, 1, MOST_RANKS,
                      "that measured, if the profile is for others"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL, "cores", weft_profile_origin, cores, 1, MOST_CORES,
                      "that the machine's ranks could use"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "precision", WEFT_KEY_TEXT, weft_profile_origin, precision,
                      "of compute"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "link", WEFT_KEY_TEXT, weft_profile_origin, link,
                      "between ranks, with its figures if it was emulated"));
static const char object_name[] = "measured_on";

const struct weft_profile_origin weft_profile_origin_unsaid = {.busy_millicores = -1};

bool weft_profile_origin_differs(const struct weft_profile_origin *origin, const char *machine,
                                 int64_t threads)
{
    const bool machines =
        origin->machine != NULL && machine != NULL && strcmp(origin->machine, machine) != 0;
    return machines || (origin->threads > 0 && threads > 0 && origin->threads != threads);
}

void weft_profile_origin_show(const struct weft_profile_origin *origin, struct weft_text *out)
{
    char shown[WEFT_SHOWN_BYTES];
    if (origin->machine != NULL) weft_text_addf(out, "on %s", weft_shown(origin->machine, shown));
    if (origin->threads > 0)
        weft_text_addf(out, "%swith %" PRId64 " thread%s a rank",
                       origin->machine != NULL ? ", " : "", origin->threads,
                       origin->threads == 1 ? "" : "s");
}

enum weft_status weft_profile_origin_read(const struct weft_json_value *root, const char *source,
                                          struct weft_pool *pool, struct weft_profile_origin *out,
                                          struct weft_error *err)
{
    const struct weft_json_value *object;
    struct weft_profile_origin origin = weft_profile_origin_unsaid;
    char where[512];
    *out = origin;
    if (weft_json_member(root, object_name) == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need(root, source, object_name, WEFT_JSON_OBJECT, &object, err));
    snprintf(where, sizeof where, "%s: %s", source, object_name);
    WEFT_TRY(weft_keys_read(&weft_profile_origin_keys, object, where, pool, &origin, err));
    *out = origin;
    return WEFT_OK;
}
