/* SPDX-License-Identifier: Apache-2.0 */
/* A request is one instruction's accesses by a warp. Fibers run one after the other, so the n-th
 * time a lane reaches a place belongs to the n-th time of the other lanes. */
#ifndef WEFT_TESTS_EMULATION_REQUESTS_H
#define WEFT_TESTS_EMULATION_REQUESTS_H

#include "tests/emulation/watch.h"

void emu_requests_add(const void *site, uint32_t lane, const void *address, size_t bytes,
                      bool write, bool shared);
/* Adds the warp's requests to *traffic when it reaches a barrier or its end. */
void emu_requests_end(struct emu_traffic *traffic);

#endif
