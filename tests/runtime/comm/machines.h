/* Ranks of this machine that seem to be on others: each process says which machine and container
 * it is in, and the memory left there. The program is linked with --wrap=weft_memory_limits and
 * --wrap=weft_host_of_memory. */
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

#endif
