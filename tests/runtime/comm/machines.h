/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of this machine that seem to be on others: each process says which machine and container
 * it is in, the memory left there, and the cores. The program is linked with machines_link_args. */
#ifndef WEFT_TESTS_RUNTIME_COMM_MACHINES_H
#define WEFT_TESTS_RUNTIME_COMM_MACHINES_H

#include <stdint.h>

struct fake_machine {
    uint64_t machine;       /* 0: all is as it is */
    int64_t left_bytes;     /* of the machine */
    uint64_t group;         /* a container's cgroup; 0: in none */
    int64_t in_group_bytes; /* left there */
};
extern struct fake_machine fake_machine; /* of this process */
extern int32_t fake_cores;               /* of its machine; 0: as it is */

#endif
