/* SPDX-License-Identifier: Apache-2.0 */
/* The affinity of a process is the set of cores that it may run on. An OpenMP runtime that follows
 * OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY binds the loading thread to one core before main.
 * Every process that this one starts would inherit that core. */
#ifndef WEFT_CLI_PROCESS_AFFINITY_H
#define WEFT_CLI_PROCESS_AFFINITY_H

/* Gives the calling thread the cores that the process was started with. */
void weft_affinity_restore(void);

#endif
