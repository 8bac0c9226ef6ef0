/* SPDX-License-Identifier: Apache-2.0 */
/* A world is the ranks that an MPI launcher started, on one host or several. Each process is one
 * rank. Rank 0 hands messages to the others, and judges how they end. */
#ifndef WEFT_LIBRARY_WORLD_H
#define WEFT_LIBRARY_WORLD_H

#include "base/status.h"
#include "base/text.h"
#include "runtime/launch/rendezvous.h"

struct weft_world;

/* Ends the process: a rank is lost, and MPI does not return from a call. Any thread may call it. */
typedef void weft_world_stuck_fn(const struct weft_error *why);

/* Starts MPI with the library of the launcher; all its ranks must call it. WEFT_E_ENVIRONMENT if
 * this process has no such launcher, without the library's module, or if the launcher is another
 * library's. `stuck` may be NULL. End it with weft_world_finish. */
WEFT_MUST_USE enum weft_status weft_world_start(weft_world_stuck_fn *stuck, struct weft_world **out,
                                                struct weft_error *err);

/* Ends MPI, waiting a few seconds at most. Returns false if the library hangs there: then end the
 * process with _exit. Accepts NULL. */
bool weft_world_finish(struct weft_world *world);

/* The first rank whose process has ended without a word, or -1. */
int32_t weft_world_lost(const struct weft_world *world);

/* True if rank 0 has not told the outcome, on the first other rank of each host: it prints. */
bool weft_world_speaks(const struct weft_world *world);

/* The meeting of its ranks, valid until the world ends. */
const struct weft_rendezvous *weft_world_meeting(const struct weft_world *world);

/* Rank 0 hands a text to the other ranks (share), or the end of the world with an exit code (end).
 * The other ranks wait for either: a text is appended to `text`, which must be empty; at the end
 * *ended is true and *exit_code set. */
WEFT_MUST_USE enum weft_status weft_world_share(struct weft_world *world,
                                                const struct weft_text *text,
                                                struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_world_end(struct weft_world *world, int exit_code,
                                              struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_world_listen(struct weft_world *world, struct weft_text *text,
                                                 bool *ended, int *exit_code,
                                                 struct weft_error *err);

/* All ranks: compares the outcomes. `status` and `why` are this rank's. All ranks return the
 * outcome of the rank that is the likely cause, with its number in the text, or WEFT_OK. A rank
 * that does not report in time is lost. A failed rank that hears nothing from rank 0 returns
 * its own outcome: after 1 s if a rank is lost, 3 s if a peer was silent, otherwise 30 s. */
WEFT_MUST_USE enum weft_status weft_world_judge(struct weft_world *world, enum weft_status status,
                                                const struct weft_error *why,
                                                struct weft_error *err);

#endif
