/* The paging of a program: its buffers, with the lives that its instructions give them, and pages
 * for them. */
#ifndef WEFT_PROGRAM_PAGING_H
#define WEFT_PROGRAM_PAGING_H

#include "base/status.h"
#include "base/work.h"
#include "memory_model/pages/pages.h"
#include "program/program.h"

/* Lives of the buffers must be filled. The caller destroys the paging. `work` as in
 * weft_paging_create. */
WEFT_MUST_USE enum weft_status weft_program_page(const struct weft_program *program,
                                                 int64_t page_bytes, struct weft_work *work,
                                                 struct weft_paging **out, struct weft_error *err);

#endif
