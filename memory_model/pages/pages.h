/* SPDX-License-Identifier: Apache-2.0 */
/* Paging gives every buffer of a program a range of virtual addresses, and the pages of the range
 * physical pages. Two pages share a physical page only if they are never live together.
 *
 * A buffer has two tables, each with its own addresses and pages. A piece lies in the table of the
 * period in which it began (0: even, 1: odd, from the executor's first) until it dies, even in the
 * next period. Lives are arcs of a circle, so physical pages are given out over the circle of two
 * periods. A page under several pieces lives from the first birth to the last death of one period's
 * pieces.
 *
 * Ranges follow one another. The residents' is first, from virtual offset 0. Then comes one for
 * each other buffer, except that small ones may share a range. Each begins on a page and ends with
 * an unmapped guard page, so that a write past its end faults. */
#ifndef WEFT_MEMORY_MODEL_PAGES_PAGES_H
#define WEFT_MEMORY_MODEL_PAGES_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/work.h"
#include "memory_model/life.h"

enum { WEFT_PAGE_TABLES = 2 };

/* A page is a power of two, from the system's page to a large one. */
#define WEFT_PAGE_LEAST_BYTES ((int64_t)4096)
#define WEFT_PAGE_LARGE_BYTES ((int64_t)2 << 20)

/* A buffer, as input of paging. */
struct weft_paged_buffer {
    int64_t bytes;    /* a multiple of WEFT_ARENA_ALIGN_BYTES, in n_pieces equal parts */
    int32_t n_pieces; /* blocks of a unit's full buffers; 1 for others */
    const struct weft_life *lives; /* [n_pieces], slots of one period */
    bool is_resident;              /* needed in every slot; lives are ignored */
    int32_t shares;                /* buffers with one number share a range; -1: its own range */
};

/* Consecutive physical pages. */
struct weft_page_stretch {
    int32_t first, count;
};

/* A range: its addresses, and its pages in order of address. */
struct weft_page_range {
    int64_t offsets[WEFT_PAGE_TABLES]; /* virtual, by table; equal if there is one table, and for
                                          the residents' range, the first */
    int32_t n_pages;                   /* of each table */
    int32_t first_stretch[WEFT_PAGE_TABLES]; /* in paging->stretches */
    int32_t n_stretches[WEFT_PAGE_TABLES];
};

/* Maps `pages.count` pages from virtual offset `at` to these physical pages. */
struct weft_page_mapping {
    int64_t at;
    struct weft_page_stretch pages;
};

struct weft_page_place {
    int32_t range;
    int64_t offsets[WEFT_PAGE_TABLES]; /* virtual */
};

/* Immutable after creation. */
struct weft_paging {
    struct weft_pool pool;
    int64_t page_bytes;
    int32_t n_pages;    /* physical pages used, numbered from 0 */
    int32_t row_pages;  /* of the fullest slot: a lower limit */
    int32_t n_tables;   /* 1 if every buffer has the same pages in even and odd periods */
    int64_t span_bytes; /* virtual bytes, with the last guard */
    int32_t n_buffers;
    const struct weft_page_place *places; /* by buffer */
    int32_t n_ranges;
    const struct weft_page_range *ranges;
    int32_t n_stretches;
    const struct weft_page_stretch *stretches; /* by range, table 0 then table 1 */
    int32_t n_mappings;
    const struct weft_page_mapping *mappings; /* by `at`; unmapped pages are guards */
};

/* The pages of all ranges, as stored in a plan. Each range has a list for table 0, then for table
 * 1. The residents' range has one list, and so has every range if there is one table. */
struct weft_page_lists {
    int64_t page_bytes;
    int32_t n_tables;
    int32_t n_lists;
    const int32_t *ends; /* by list: the index in `stretches` after its last */
    const struct weft_page_stretch *stretches;
};

struct weft_paging_inputs {
    const struct weft_paged_buffer *buffers;
    int32_t n_buffers;
    int32_t n_slots;
    int64_t page_bytes; /* a power of two */
    int64_t most_pages; /* gives out no pages if the fullest slot has more; 0: no limit */
};

/* Colours from the slot of least load: each new piece takes the free pages that are due soonest
 * after its death. Equal inputs give equal results. Spends `work`, which may be NULL, without
 * ending it. Above most_pages, the paging has n_pages and row_pages of the fullest slot and no
 * ranges. WEFT_E_SYSTEM without memory; WEFT_E_DATA for sizes that cannot be numbered. */
WEFT_MUST_USE enum weft_status weft_paging_create(const struct weft_paging_inputs *inputs,
                                                  struct weft_work *work, struct weft_paging **out,
                                                  struct weft_error *err);
/* Lists the pages of a paging; the pool owns the arrays. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_paging_list(const struct weft_paging *paging,
                                                struct weft_pool *pool, struct weft_page_lists *out,
                                                struct weft_error *err);
/* Makes the paging with these lists, without checking for shared pages. inputs->page_bytes is the
 * lists'. WEFT_E_DATA when the lists are not of these buffers. */
WEFT_MUST_USE enum weft_status weft_paging_restore(const struct weft_paging_inputs *inputs,
                                                   const struct weft_page_lists *lists,
                                                   struct weft_paging **out,
                                                   struct weft_error *err);
/* Counts the pages of the lists. -1 if no paging has such lists: a page below the highest is in no
 * list, or a range has different numbers of pages in its tables. -2 without memory. */
int64_t weft_page_lists_count(const struct weft_page_lists *lists);
void weft_paging_destroy(struct weft_paging *paging);

#endif
