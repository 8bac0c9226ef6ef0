/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interface of the emulator. */
#ifndef WEFT_TESTS_EMULATION_RUN_H
#define WEFT_TESTS_EMULATION_RUN_H

#include "tests/emulation/emulator.h"

/* Returns the launches so far, including the running one. */
uint32_t emu_run_launches(void);
/* Ends the running launch: does not return if a kernel runs, otherwise does nothing. */
void emu_run_abandon(void);
/* True, with a finding EMU_LIMITS, if this GPU would refuse such a launch of the kernel at
 * `code`. */
bool emu_run_refuses(const void *code, dim3 grid, dim3 block, size_t shared_bytes);
/* Returns every list of parameters of this program's kernels. */
struct emu_signature;
const std::vector<const struct emu_signature *> &emu_run_signatures(void);
/* Starts a block: no thread has pending copies. */
void emu_copies_forget(void);

#endif
