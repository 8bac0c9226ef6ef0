/* SPDX-License-Identifier: Apache-2.0 */
/* A test's paging, as unlike a planned one as possible. Each page is a random one that is free at
 * that time, and differs between the tables. So pages are never in the order of their addresses. */
#ifndef WEFT_TESTS_RUNTIME_EXEC_PAGES_H
#define WEFT_TESTS_RUNTIME_EXEC_PAGES_H

#include "memory_model/pages/pages.h"
#include "program/program.h"

/* `tables` is 1 or 2. With `shared` false every page of addresses has memory of its own.
 * weft_paging_destroy frees it; failures end the process. */
struct weft_paging *pages_make(const struct weft_program *program, int64_t page_bytes, int tables,
                               bool shared, uint64_t seed);
/* One table, in which a page's address is its place in memory: each buffer at the least address
 * that is free for all of its life, without guards. */
struct weft_paging *pages_make_in_line(const struct weft_program *program);

#endif
