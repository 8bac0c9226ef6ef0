/* An emulated GPU as a machine of the CPU device: kernels run when the task that puts them on the
 * stream does, in that task. What the emulator finds ends the process. */
#ifndef WEFT_TESTS_EMULATION_RUNS_MACHINE_H
#define WEFT_TESTS_EMULATION_RUNS_MACHINE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The GPU that WEFT_EMULATION_GPU names, sm_80 without it, with blocks and threads in an order by
 * WEFT_EMULATION_SEED, or one after the other. */
void emu_machine_begin(void);
/* How many findings there were since it was asked last; they are told on stderr. */
int emu_machine_findings(void);

#ifdef __cplusplus
}
#endif

#endif
