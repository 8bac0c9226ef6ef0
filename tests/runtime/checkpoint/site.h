/* SPDX-License-Identifier: Apache-2.0 */
/* A small model and state of it that is known without having been stored: a function of step,
 * tensor and element. For tests of saving. */
#ifndef WEFT_TESTS_RUNTIME_CHECKPOINT_SITE_H
#define WEFT_TESTS_RUNTIME_CHECKPOINT_SITE_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/save.h"
#include "spec/config.h"

struct site {
    struct weft_config *config;
    struct weft_layout *layout;
    const char *settings;
};

void site_open(struct site *site);
void site_close(struct site *site);

float site_value(int64_t step, int32_t tensor, enum weft_state state, int64_t element);

/* A rank's elements at a step: every ranks-th run of some elements of each tensor. */
struct site_source {
    const struct site *site;
    int64_t step;
    int32_t rank, ranks;
    enum weft_dtype dtype;
    float dead; /* a value in each run of the first tensor's `dead_state`; 0: none */
    enum weft_state dead_state;
    int32_t tensor, state;
    int64_t run;
    float values[64];
};
struct weft_save_source site_pieces(struct site_source *source);

struct weft_progress site_progress(int64_t step);

/* Whether a checkpoint holds the state of its step, bit by bit. */
bool site_holds(const struct site *site, const struct weft_checkpoint *checkpoint);

/* An empty directory; removal with all that is in it. */
void site_make_directory(char out[64]);
void site_remove_directory(const char *path);

#endif
