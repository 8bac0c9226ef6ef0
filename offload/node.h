/* A memory node is memory that some cores reach faster than others do (NUMA). Most machines have
 * one. */
#ifndef WEFT_OFFLOAD_NODE_H
#define WEFT_OFFLOAD_NODE_H

#include <stddef.h>
#include <stdint.h>

/* The node that most of the n cores are near to, out of the files of a directory as
 * /sys/devices/system/node is; -1 where there is one node, or the system does not say. */
int32_t weft_node_of_cores(const char *directory, const int32_t *cores, int32_t n);

/* Has pages that are not there yet come from the node while it has memory, and then from the
 * others: memory that is bound to a full node ends in a kill. `at` begins with a page. Does nothing
 * for node -1, or where the system has no such call. */
void weft_node_prefer(int32_t node, void *at, size_t bytes);

#endif
