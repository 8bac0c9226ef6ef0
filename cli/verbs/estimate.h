/* What the questions of `weft estimate` share: an estimate of the config with some of its keys set
 * otherwise, and where times come from. */
#ifndef WEFT_CLI_VERBS_ESTIMATE_H
#define WEFT_CLI_VERBS_ESTIMATE_H

#include "base/json/json.h"
#include "cli/command.h"
#include "library/estimate.h"

/* The estimate of the config with `n` further overrides. The caller finishes *out, also after a
 * failure. */
WEFT_MUST_USE enum weft_status weft_estimate_at(const struct weft_cli *cli,
                                                const char *const *settings, int32_t n,
                                                uint32_t asked, struct weft_estimate *out,
                                                struct weft_error *err);

/* The members of the object that is being written. */
void weft_estimate_put(const struct weft_estimate *estimate, struct weft_json_writer *writer);

/* --largest KEY and --least KEY: the largest, or least, value at which each row fits the limit. */
WEFT_MUST_USE enum weft_status weft_estimate_search(const struct weft_cli *cli,
                                                    struct weft_text *out, struct weft_text *json,
                                                    struct weft_error *err);

/* --sweep key=a,b,c, once or twice: a table a value, or a grid of what fits. */
WEFT_MUST_USE enum weft_status weft_estimate_sweep(const struct weft_cli *cli,
                                                   struct weft_text *out, struct weft_text *json,
                                                   struct weft_error *err);

#endif
