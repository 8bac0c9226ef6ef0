/* Between the parts of the emulator. */
#ifndef WEFT_TESTS_EMULATION_RUN_H
#define WEFT_TESTS_EMULATION_RUN_H

#include "tests/emulation/emulator.h"

/* Launches so far, the running one included. */
uint32_t emu_run_launches(void);
/* Ends the running launch: does not return when a kernel runs, and does nothing otherwise. */
void emu_run_abandon(void);
/* A block begins: no thread has copies under way. */
void emu_copies_forget(void);

#endif
