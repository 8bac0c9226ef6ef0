/* Before ranks are linked they say who they are, by the control communicator: two on one GPU, other
 * libraries or another kind of GPU would end in a hang, or in other bits. */
#ifndef WEFT_RUNTIME_COMM_NCCL_MEET_H
#define WEFT_RUNTIME_COMM_NCCL_MEET_H

#include "runtime/comm/comm.h"
#include "runtime/comm/nccl/library.h"

/* Collective, with this rank's GPU set. WEFT_E_ENVIRONMENT for two ranks on one GPU,
 * WEFT_E_DISAGREE for ranks that are not alike; else as weft_nccl_link_open. */
WEFT_MUST_USE enum weft_status weft_nccl_meet(struct weft_comm *control,
                                              const struct weft_nccl_link_options *options,
                                              struct weft_nccl_link **out, struct weft_error *err);

#endif
