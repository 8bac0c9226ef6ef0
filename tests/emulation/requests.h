/* A request is what one instruction asks for on behalf of a warp. Fibers run one after the other,
 * so the n-th time that a lane is at a place of the code belongs to the n-th time of the others. */
#ifndef WEFT_TESTS_EMULATION_REQUESTS_H
#define WEFT_TESTS_EMULATION_REQUESTS_H

#include "tests/emulation/watch.h"

void emu_requests_add(const void *site, uint32_t lane, const void *address, size_t bytes,
                      bool write, bool shared);
/* The warp has come to a barrier or its end: its requests are added to *traffic. */
void emu_requests_end(struct emu_traffic *traffic);

#endif
