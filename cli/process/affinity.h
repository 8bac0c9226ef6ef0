/* The affinity of a process is the set of cores that it may run on. An OpenMP runtime binds the
 * thread that loads it to one core where OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY asks for
 * that: before main, and every process that this one starts would inherit the one core. */
#ifndef WEFT_CLI_PROCESS_AFFINITY_H
#define WEFT_CLI_PROCESS_AFFINITY_H

/* Gives the calling thread the cores that the process was started with. */
void weft_affinity_restore(void);

#endif
