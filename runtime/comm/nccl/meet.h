/* SPDX-License-Identifier: Apache-2.0 */
/* Before ranks link they exchange their identities over the control communicator. Two ranks on one
 * GPU would hang. Other libraries or another GPU model would hang or give other bits. */
#ifndef WEFT_RUNTIME_COMM_NCCL_MEET_H
#define WEFT_RUNTIME_COMM_NCCL_MEET_H

#include "runtime/comm/comm.h"
#include "runtime/comm/nccl/library.h"

/* Opens the link. Every rank must call it, with its GPU current. WEFT_E_ENVIRONMENT for two ranks
 * on one GPU, WEFT_E_DISAGREE if ranks differ, and the errors of weft_nccl_link_open. */
WEFT_MUST_USE enum weft_status weft_nccl_meet(struct weft_comm *control,
                                              const struct weft_nccl_link_options *options,
                                              struct weft_nccl_link **out, struct weft_error *err);

#endif
