/* Between the parts of the emulator. */
#ifndef WEFT_TESTS_EMULATION_RUN_H
#define WEFT_TESTS_EMULATION_RUN_H

#include "tests/emulation/emulator.h"

/* Launches so far, the running one included. */
uint32_t emu_run_launches(void);
/* Ends the running launch: does not return when a kernel runs, and does nothing otherwise. */
void emu_run_abandon(void);
/* Finds EMU_LIMITS when this GPU would refuse such a launch of the kernel at `code`. */
bool emu_run_refuses(const void *code, dim3 grid, dim3 block, size_t shared_bytes);
/* Every list of parameters that a kernel of this program is launched with. */
struct emu_signature;
const std::vector<const struct emu_signature *> &emu_run_signatures(void);
/* A block begins: no thread has copies under way. */
void emu_copies_forget(void);

#endif
