/* SPDX-License-Identifier: Apache-2.0 */
/* An emulated GPU as a machine of the CPU device: kernels run in the stream's task that launches
 * them. A finding of the emulator ends the process. */
#ifndef WEFT_TESTS_EMULATION_RUNS_MACHINE_H
#define WEFT_TESTS_EMULATION_RUNS_MACHINE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Selects the GPU named by WEFT_EMULATION_GPU (default sm_80), and the order of blocks and threads
 * by WEFT_EMULATION_SEED (default ascending). */
void emu_machine_begin(void);
/* Returns the number of findings since the last call, and prints them to stderr. */
int emu_machine_findings(void);
/* Returns the number of kernels launched so far. */
long emu_machine_launches(void);

#ifdef __cplusplus
}
#endif

#endif
