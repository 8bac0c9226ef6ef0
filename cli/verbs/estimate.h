/* Shared by the questions of `weft estimate`: the estimate of a config with other values of some
 * keys. */
#ifndef WEFT_CLI_VERBS_ESTIMATE_H
#define WEFT_CLI_VERBS_ESTIMATE_H

#include "base/json/json.h"
#include "cli/command.h"
#include "library/estimate.h"

/* Estimates the config with `n` further overrides. The caller finishes *out, also after a
 * failure. */
WEFT_MUST_USE enum weft_status weft_estimate_at(const struct weft_cli *cli,
                                                const char *const *settings, int32_t n,
                                                uint32_t asked, struct weft_estimate *out,
                                                struct weft_error *err);

/* Puts the estimate's members into the object being written. */
void weft_estimate_put(const struct weft_estimate *estimate, struct weft_json_writer *writer);

/* Answers --largest KEY and --least KEY: the largest, or least, value at which each row fits the
 * limit. */
WEFT_MUST_USE enum weft_status weft_estimate_search(const struct weft_cli *cli,
                                                    struct weft_text *out, struct weft_text *json,
                                                    struct weft_error *err);

/* Answers --sweep key=a,b,c. Once: a table per value. Twice: a grid that shows which pairs fit. */
WEFT_MUST_USE enum weft_status weft_estimate_sweep(const struct weft_cli *cli,
                                                   struct weft_text *out, struct weft_text *json,
                                                   struct weft_error *err);

#endif
