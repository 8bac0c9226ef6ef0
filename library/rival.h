/* SPDX-License-Identifier: Apache-2.0 */
/* A rival is a file with plans that another program made: strategies and placements for periods of
 * one config (docs/rivals.md). They get pages and are judged by the simulator and by the checks
 * that every plan of Weft passes. A rival has no proof. */
#ifndef WEFT_LIBRARY_RIVAL_H
#define WEFT_LIBRARY_RIVAL_H

#include "library/session.h"

/* Keys of the file. */
extern const struct weft_key_table weft_rival_keys;

enum { WEFT_RIVAL_PLANNER_BYTES = 56 };

/* Reads the planner of a rival, "rival:NAME". WEFT_E_DATA: the document is no rival. */
WEFT_MUST_USE enum weft_status weft_rival_name(const char *bytes, size_t length, const char *source,
                                               char out[WEFT_RIVAL_PLANNER_BYTES],
                                               struct weft_error *err);

/* True for a JSON document with the format of a rival. */
bool weft_rival_is(const char *bytes, size_t length);

/* After stage: reads a rival and makes the fastest of its plans that fits the config's limits the
 * plan of the session, with its program. Its planner is "rival:NAME". It has a trivial bound
 * if the config leaves one period open, and otherwise none. WEFT_E_DATA names the first
 * wrong plan. WEFT_E_INFEASIBLE if none fits. */
WEFT_MUST_USE enum weft_status weft_rival_take(struct weft_session *session, const char *bytes,
                                               size_t length, const char *source,
                                               struct weft_error *err);

/* The same from a file. */
WEFT_MUST_USE enum weft_status weft_rival_load(struct weft_session *session, const char *path,
                                               struct weft_error *err);

#endif
