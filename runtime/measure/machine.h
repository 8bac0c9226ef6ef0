/* The machine that is measured, by the parts that decide times: its CPU, the number of cores, the
 * level of instructions that kernels use. Products have names of their own in a profile. */
#ifndef WEFT_RUNTIME_MEASURE_MACHINE_H
#define WEFT_RUNTIME_MEASURE_MACHINE_H

enum { WEFT_MACHINE_NAME_BYTES = 256 };

/* "AMD EPYC 9654, 96 cores, avx512": the same in each process on this machine. */
void weft_measure_name_cpu(char out[WEFT_MACHINE_NAME_BYTES]);

#endif
