/* SPDX-License-Identifier: Apache-2.0 */
/* Colouring gives each arc of a circle of slots its pages, so that no two arcs with a common slot
 * share a page. Private to memory_model/pages/. */
#ifndef WEFT_MEMORY_MODEL_PAGES_COLOUR_H
#define WEFT_MEMORY_MODEL_PAGES_COLOUR_H

#include <stdint.h>

#include "base/status.h"
#include "base/work.h"
#include "memory_model/pages/pages.h"

/* Pages that live and die together: `length` slots from `first`, around the circle's end; all slots
 * for pages that never die. */
struct weft_page_arc {
    int32_t first, length;
    int32_t n_pages;
};

struct weft_page_grant {
    int32_t arc;
    struct weft_page_stretch pages;
};

struct weft_colouring {
    int32_t n_pages;                /* numbered from 0 */
    struct weft_page_grant *grants; /* by arc and page; adjoining pages in one grant */
    int32_t n_grants;
};

struct weft_circle {
    const struct weft_page_arc *arcs;
    int32_t n_arcs;
    int32_t n_slots;
    int32_t n_seams; /* slots that may be the seam; the others repeat these */
};

/* *row is the number of pages in the fullest slot, a lower limit of any colouring; -1 if they
 * cannot be numbered. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_circle_row(const struct weft_circle *circle, int32_t *row,
                                               struct weft_error *err);

/* Colours from the slot of least load. If that takes more than `least` pages, tries every other
 * seam, or some if the circle is large, and keeps the fewest pages. Spends `work`, and tries no
 * other seam once that is late. The caller frees with weft_colouring_finish. WEFT_E_SYSTEM without
 * memory. */
WEFT_MUST_USE enum weft_status weft_colour(const struct weft_circle *circle, int32_t least,
                                           struct weft_work *work, struct weft_colouring *out,
                                           struct weft_error *err);
void weft_colouring_finish(struct weft_colouring *colouring); /* accepts {0} */

#endif
