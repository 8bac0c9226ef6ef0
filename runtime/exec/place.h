/* Where a program's buffers lie in the arena: where its paging puts them. A paging has two tables:
 * a piece that comes and goes is in that of the period in which it began, even or odd, and an
 * instruction may touch some of this period and some of the last. */
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

struct exec_places {
    const struct weft_program *program;
    const struct weft_paging *paging; /* the program's */
    int n_tables;
    int64_t *offsets[EXEC_TABLES]; /* by buffer; of one table twice */
    bool *sole;                    /* by buffer: nothing else lies in its range */
};

/* In the pool. `at_end`: what has a range for itself and is one piece ends where its range does, at
 * the guard. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_exec_places_fill(const struct weft_program *program,
                                                     bool at_end, struct weft_pool *pool,
                                                     struct exec_places *out,
                                                     struct weft_error *err);

/* The table in which an operand's piece is, in a period of this parity. */
static inline int weft_exec_table_of(const struct exec_places *places, int32_t operand, int parity)
{
    const bool began_before = places->program->operands[operand].began_before;
    return places->n_tables == 1 ? 0 : parity ^ (int)began_before;
}

/* Sorts, and joins what touches. Returns how many are left. */
int32_t weft_exec_join_ranges(struct weft_range *ranges, int32_t n);

#endif
