/* SPDX-License-Identifier: Apache-2.0 */
/* Differences between two configs, for people. */
#ifndef WEFT_SPEC_CONFIG_COMPARE_H
#define WEFT_SPEC_CONFIG_COMPARE_H

#include "spec/config.h"

/* Appends a line such as "cluster.memory_limit: 2GiB, was 1GiB" for each different key of cluster,
 * train and plan in resolved configs. `counts` selects keys; NULL: all. Returns the number of
 * lines. `out` may be NULL; it is marked as failed without memory. */
int32_t weft_config_compare(const struct weft_config *now, const struct weft_config *before,
                            bool (*counts)(const char *path), struct weft_text *out);

/* Reads steps, optimizer.lr and lr_schedule from settings of train as JSON, also by an older
 * version; *out has nothing but these. False for other texts. */
bool weft_config_read_schedule(const char *settings, struct weft_train *out);

#endif
