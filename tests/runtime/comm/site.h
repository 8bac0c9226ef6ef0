/* SPDX-License-Identifier: Apache-2.0 */
/* A rank at work: communicator, device, channel and arena, opened and closed together. */
#ifndef WEFT_TESTS_RUNTIME_COMM_SITE_H
#define WEFT_TESTS_RUNTIME_COMM_SITE_H

#include "tests/runtime/comm/ranks.h"

struct site {
    int32_t rank, ranks;
    struct weft_comm *comm;
    struct weft_device *device;
    struct weft_stream *channel;
    unsigned char *arena;
};

void site_open(struct site *site, const struct weft_comm_options *options, enum weft_clock clock,
               int64_t arena_bytes);
void site_close(struct site *site);
void site_synchronise(struct site *site);
/* The float at a byte offset of the arena. */
float *site_floats(struct site *site, int64_t offset);

#endif
