/* SPDX-License-Identifier: Apache-2.0 */
/* A memory node is memory that some cores reach faster than others (NUMA). Most machines have one
 * node. */
#ifndef WEFT_OFFLOAD_NODE_H
#define WEFT_OFFLOAD_NODE_H

#include <stddef.h>
#include <stdint.h>

/* The node nearest to most of the n cores. `directory` has the files of /sys/devices/system/node.
 * Returns -1 if there is one node, or if the system does not say. */
int32_t weft_node_of_cores(const char *directory, const int32_t *cores, int32_t n);

/* Prefers the node for pages that are not yet allocated. If the node is full the others serve:
 * binding memory to a full node ends in a kill. `at` is the start of a page. Does nothing for node
 * -1, or without the system call. */
void weft_node_prefer(int32_t node, void *at, size_t bytes);

#endif
