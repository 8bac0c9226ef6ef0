/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of a program's buffers in the arena, by its paging. A paging has two tables, for pieces
 * that begin in even and in odd periods. An instruction may touch pieces of this period and of the
 * last. */
#ifndef WEFT_RUNTIME_EXEC_PLACE_H
#define WEFT_RUNTIME_EXEC_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "memory_model/pages/pages.h"
#include "program/program.h"
#include "runtime/comm/comm.h"

enum { EXEC_TABLES = WEFT_PAGE_TABLES };

/* A block of a unit's shard in the arena, `from` bytes after its first. */
struct exec_slice {
    unsigned char *at;
    int64_t bytes, from;
    int32_t unit;
};

struct exec_places {
    const struct weft_program *program;
    const struct weft_paging *paging; /* the program's */
    int n_tables;
    int64_t *offsets[EXEC_TABLES]; /* [n_buffers]; equal if there is one table */
    bool *sole;                    /* [n_buffers]: has a range of its own */
};

/* Fills *out, with memory of the pool. With `at_end`, a buffer of one piece with its own range ends
 * at the guard after the range. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_exec_places_fill(const struct weft_program *program,
                                                     bool at_end, struct weft_pool *pool,
                                                     struct exec_places *out,
                                                     struct weft_error *err);

/* The table of an operand's piece in a period of this parity. */
static inline int weft_exec_table_of(const struct exec_places *places, int32_t operand, int parity)
{
    const bool began_before = places->program->operands[operand].began_before;
    return places->n_tables == 1 ? 0 : parity ^ (int)began_before;
}

/* Sorts ranges and joins the ones that touch. Returns the number left. */
int32_t weft_exec_join_ranges(struct weft_range *ranges, int32_t n);

#endif
