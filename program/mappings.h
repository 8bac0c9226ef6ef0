/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the mappings and addresses of a program in each rank of a machine: its own arena, and the
 * pages of every peer that collectives read. */
#ifndef WEFT_PROGRAM_MAPPINGS_H
#define WEFT_PROGRAM_MAPPINGS_H

#include "base/status.h"
#include "program/program.h"

struct weft_mappings {
    int64_t own, of_peer; /* stretches, and guards between them and at both ends */
    int64_t own_stretches, of_peer_stretches;
    int64_t all;       /* of a rank */
    int64_t all_bytes; /* of addresses; INT64_MAX: overflow */
};

/* Whether peers read a buffer: operands of reductions, and slices to gather, as shards or in
 * place. */
bool weft_buffer_is_read_by_peers(const struct weft_program *program,
                                  const struct weft_buffer *buffer);

/* Counts for `ranks` ranks on one machine. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_program_count_mappings(const struct weft_program *program,
                                                           const struct weft_paging *paging,
                                                           int64_t ranks, struct weft_mappings *out,
                                                           struct weft_error *err);

#endif
