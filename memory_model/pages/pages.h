/* To page is to give every buffer of a program a range of virtual addresses, and to the pages of
 * its range physical pages, so that two share a physical page only if they are never live together.
 * A buffer has two tables, each with a range and pages of its own: a piece that comes and goes is
 * in the table of the period in which it began (0: even, 1: odd, counted from the executor's
 * first), and stays there until it dies, be it in the next period. Lives are arcs of a circle, so
 * physical pages are given out over the circle of two periods. A page that several pieces of a
 * range lie on lives from the first birth to the last death of those that began in one period.
 *
 * Ranges follow one another: the residents' first, from virtual offset 0, one resident behind the
 * other; then one for each buffer that comes and goes, but small ones that share pages, which are
 * one range together. Each begins on a page and is followed by a page that nothing is mapped to, so
 * that whoever runs off its end faults. */
#ifndef WEFT_MEMORY_MODEL_PAGES_PAGES_H
#define WEFT_MEMORY_MODEL_PAGES_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/work.h"
#include "memory_model/life.h"

enum { WEFT_PAGE_TABLES = 2 };

/* A page is a power of two from the system's to a large one. */
#define WEFT_PAGE_LEAST_BYTES ((int64_t)4096)
#define WEFT_PAGE_LARGE_BYTES ((int64_t)2 << 20)

/* A buffer as paging sees it. */
struct weft_paged_buffer {
    int64_t bytes;    /* a multiple of WEFT_ARENA_ALIGN_BYTES, in n_pieces equal parts */
    int32_t n_pieces; /* blocks of a unit's full buffers that come and go; else 1 */
    const struct weft_life *lives; /* [n_pieces], slots of one period */
    bool is_resident;              /* holds something in every slot, and lives are not looked at */
    int32_t shares;                /* buffers of one number lie in one range; -1: its own */
};

/* Consecutive physical pages. */
struct weft_page_stretch {
    int32_t first, count;
};

/* Where a range lies, and its pages, in order of address. */
struct weft_page_range {
    int64_t offsets[WEFT_PAGE_TABLES]; /* virtual, of each table; equal where there is one table,
                                          and of the residents, which are the first range, if any */
    int32_t n_pages;                   /* of either table */
    int32_t first_stretch[WEFT_PAGE_TABLES]; /* in paging->stretches */
    int32_t n_stretches[WEFT_PAGE_TABLES];
};

/* `pages.count` pages from virtual offset `at` on are these physical ones. */
struct weft_page_mapping {
    int64_t at;
    struct weft_page_stretch pages;
};

struct weft_page_place {
    int32_t range;
    int64_t offsets[WEFT_PAGE_TABLES]; /* virtual */
};

/* Made once, and never changed. */
struct weft_paging {
    struct weft_pool pool;
    int64_t page_bytes;
    int32_t n_pages;    /* physical pages taken, numbered from 0 */
    int32_t row_pages;  /* of the fullest slot: no paging takes fewer */
    int32_t n_tables;   /* 1 where every buffer has the same pages in even and odd periods */
    int64_t span_bytes; /* virtual addresses, the last guard included */
    int32_t n_buffers;
    const struct weft_page_place *places; /* by buffer */
    int32_t n_ranges;
    const struct weft_page_range *ranges;
    int32_t n_stretches;
    const struct weft_page_stretch *stretches; /* by range, of each its table 0 and then table 1 */
    int32_t n_mappings;
    const struct weft_page_mapping *mappings; /* by `at`; what none covers is a guard */
};

/* The pages of ranges whose buffers are known, as a plan has them: a list for each range's table 0
 * and then 1, but one for the residents' and everywhere where there is one table. */
struct weft_page_lists {
    int64_t page_bytes;
    int32_t n_tables;
    int32_t n_lists;
    const int32_t *ends; /* by list: in `stretches`, behind its last */
    const struct weft_page_stretch *stretches;
};

struct weft_paging_inputs {
    const struct weft_paged_buffer *buffers;
    int32_t n_buffers;
    int32_t n_slots;
    int64_t page_bytes; /* a power of two */
    int64_t most_pages; /* where the fullest slot has more, none are given out; 0: any number */
};

/* Colours: from the slot of least load on, whatever is born takes free pages that are due soonest
 * behind its death. Equal inputs have equal answers. What it takes is spent of `work`, which may be
 * NULL and never ends it. A paging beyond most_pages has n_pages and row_pages of the fullest slot,
 * and no ranges. WEFT_E_SYSTEM, and WEFT_E_DATA for sizes that cannot be numbered. */
WEFT_MUST_USE enum weft_status weft_paging_create(const struct weft_paging_inputs *inputs,
                                                  struct weft_work *work, struct weft_paging **out,
                                                  struct weft_error *err);
/* A paging's own lists; arrays the pool's. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_paging_list(const struct weft_paging *paging,
                                                struct weft_pool *pool, struct weft_page_lists *out,
                                                struct weft_error *err);
/* The paging whose lists these are, taken at their word: who shares a page is not looked at.
 * inputs->page_bytes is the lists'. WEFT_E_DATA when they are no lists of these buffers. */
WEFT_MUST_USE enum weft_status weft_paging_restore(const struct weft_paging_inputs *inputs,
                                                   const struct weft_page_lists *lists,
                                                   struct weft_paging **out,
                                                   struct weft_error *err);
/* Pages of the lists; -1 where they are none that a paging has: a page below the highest is in no
 * list, or a range has not as many in each table. -2: out of memory. */
int64_t weft_page_lists_count(const struct weft_page_lists *lists);
void weft_paging_destroy(struct weft_paging *paging);

#endif
