/* The unruly communicator: the local one, doing late and in another order whatever a communicator
 * may. For tests: who counts on more than comm.h promises fails under it. */
#ifndef WEFT_RUNTIME_COMM_UNRULY_H
#define WEFT_RUNTIME_COMM_UNRULY_H

#include "runtime/comm/backend.h"

extern const struct weft_comm_ops weft_comm_unruly;

#endif
