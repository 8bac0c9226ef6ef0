/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of this machine that decide times: its CPU, the number of cores, and the instruction
 * level of kernels. A profile names its products separately. */
#ifndef WEFT_RUNTIME_MEASURE_MACHINE_H
#define WEFT_RUNTIME_MEASURE_MACHINE_H

enum { WEFT_MACHINE_NAME_BYTES = 256 };

/* Writes a name, as "AMD EPYC 9654, 96 cores, avx512". It is equal in all processes of this
 * machine. */
void weft_measure_name_cpu(char out[WEFT_MACHINE_NAME_BYTES]);

#endif
