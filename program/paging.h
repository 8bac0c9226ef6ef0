/* SPDX-License-Identifier: Apache-2.0 */
/* The paging of a program: pages for its buffers by their lives. */
#ifndef WEFT_PROGRAM_PAGING_H
#define WEFT_PROGRAM_PAGING_H

#include "base/status.h"
#include "base/work.h"
#include "memory_model/pages/pages.h"
#include "program/program.h"

/* Requires the buffers' lives. Pages of page_bytes are given out by colouring, which spends `work`
 * as in weft_paging_create. Pages of `lists` are taken instead if there are any. No pages are given
 * if base and the fullest slot exceed most_bytes (0: no limit). The caller destroys the paging. */
WEFT_MUST_USE enum weft_status weft_program_page(const struct weft_program *program,
                                                 int64_t page_bytes, int64_t most_bytes,
                                                 const struct weft_page_lists *lists,
                                                 struct weft_work *work, struct weft_paging **out,
                                                 struct weft_error *err);

#endif
