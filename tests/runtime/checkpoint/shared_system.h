/* SPDX-License-Identifier: Apache-2.0 */
/* A shared file system as one host sees it, over a directory that plays the server. Writes stay in
 * pages of the host. Whole pages go to the server at random moments, and at a sync or close. Names
 * that another host made appear late. A call may be done and report an error (its reply was lost),
 * and syncs and closes may fail and lose the pages. */
#ifndef WEFT_TESTS_RUNTIME_CHECKPOINT_SHARED_SYSTEM_H
#define WEFT_TESTS_RUNTIME_CHECKPOINT_SHARED_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/checkpoint/sink.h"

enum { SHARED_PAGE_BYTES = 64 };

struct shared_host_options {
    uint64_t seed;
    bool makes_names; /* rank 0's host: it sees its names at once */
    bool only_pages;  /* no other fault than whole pages */
};

struct shared_host; /* one a process */

struct shared_host *shared_host_open(const struct shared_host_options *options);
void shared_host_close(struct shared_host *host);
struct weft_sink shared_host_sink(struct shared_host *host);

struct shared_counts {
    int32_t late, lost, failed, back; /* names, replies, syncs and closes; pages before a sync */
};
struct shared_counts shared_host_counts(const struct shared_host *host);

#endif
