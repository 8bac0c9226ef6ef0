/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of the host that this process runs on. */
#ifndef WEFT_RUNTIME_COMM_HOST_H
#define WEFT_RUNTIME_COMM_HOST_H

#include "base/hash.h"

enum { WEFT_HOST_NAME_BYTES = 65 };

/* Hash of the running kernel's boot id. Processes with equal hashes share memory and cores, also in
 * different containers. Without /proc it is the hash of the host's name. */
struct weft_hash weft_host_of_memory(void);

/* The same with the network namespace: a host of a network. */
struct weft_hash weft_host_of_network(void);

/* The host's name, cut to fit; "" if the system has none. Returns `out`. */
const char *weft_host_name(char out[WEFT_HOST_NAME_BYTES]);

#endif
