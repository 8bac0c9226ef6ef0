/* The unruly communicator wraps the local one, and is as late and unordered as a communicator may
 * be. Under it a test fails if code relies on more than comm.h promises. */
#ifndef WEFT_RUNTIME_COMM_UNRULY_H
#define WEFT_RUNTIME_COMM_UNRULY_H

#include "runtime/comm/backend.h"

extern const struct weft_comm_ops weft_comm_unruly;

#endif
