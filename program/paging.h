/* The paging of a program: its buffers, with the lives that its instructions give them, and pages
 * for them. */
#ifndef WEFT_PROGRAM_PAGING_H
#define WEFT_PROGRAM_PAGING_H

#include "base/status.h"
#include "base/work.h"
#include "memory_model/pages/pages.h"
#include "program/program.h"

/* Lives of the buffers must be filled. Pages of page_bytes by colouring, which spends `work` as in
 * weft_paging_create, or those of the lists, if there are any; none where base and the fullest slot
 * have more than most_bytes (0: never). The caller destroys the paging. */
WEFT_MUST_USE enum weft_status weft_program_page(const struct weft_program *program,
                                                 int64_t page_bytes, int64_t most_bytes,
                                                 const struct weft_page_lists *lists,
                                                 struct weft_work *work, struct weft_paging **out,
                                                 struct weft_error *err);

#endif
