/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* setenv */
#include "tests/runtime/comm/site.h"

#include <stdio.h>
#include <stdlib.h>

/* Sets the launcher's variable; the rank chooses its GPU by it. */
static void tell_local_rank(int32_t rank)
{
    char text[16];
    snprintf(text, sizeof text, "%d", rank);
    setenv("LOCAL_RANK", text, 1);
}

void site_open(struct site *site, const struct weft_comm_options *options, enum weft_clock clock,
               int64_t arena_bytes)
{
    struct weft_error err = {.status = WEFT_OK};
    struct weft_arena *arena;
    *site = (struct site){.rank = options->rank, .ranks = options->ranks};
    const char *comm = getenv("WEFT_TEST_COMM"), *device = getenv("WEFT_TEST_DEVICE");
    tell_local_rank(options->rank);
    CHECK(weft_device_open(device != NULL ? device : "cpu", clock, &site->device, &err) == WEFT_OK,
          "%s", err.text);
    CHECK(weft_comm_open(comm != NULL ? comm : "local", options, &site->comm, &err) == WEFT_OK,
          "%s", err.text);
    CHECK(weft_stream_create(site->device, "channel", 0, &site->channel, &err) == WEFT_OK, "%s",
          err.text);
    const struct weft_arena_shape whole = weft_arena_whole(arena_bytes);
    CHECK(weft_comm_map_arena(site->comm, &whole, NULL, &arena, &err) == WEFT_OK, "%s", err.text);
    /* A double's GPU has its memory where the host has it too. */
    site->arena = weft_arena_memory(arena);
    if (site->arena == NULL) site->arena = weft_arena_address(arena);
}

void site_close(struct site *site)
{
    weft_stream_destroy(site->channel);
    weft_comm_unmap_arena(site->comm);
    weft_comm_close(site->comm);
    weft_device_close(site->device);
}

void site_synchronise(struct site *site)
{
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_stream_synchronise(site->channel, &err) == WEFT_OK, "%s", err.text);
}

float *site_floats(struct site *site, int64_t offset)
{
    return (float *)(void *)(site->arena + offset);
}
