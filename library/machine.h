/* SPDX-License-Identifier: Apache-2.0 */
/* A machine is a rank's device, its communicator with the other ranks, and its kernels. */
#ifndef WEFT_LIBRARY_MACHINE_H
#define WEFT_LIBRARY_MACHINE_H

#include <stdbool.h>

#include "base/watch.h"
#include "plan/plan.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/launch/bind.h"
#include "runtime/launch/launch.h"
#include "runtime/nn/nn.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

struct weft_machine {
    struct weft_device *device;
    struct weft_comm *comm;
    struct weft_nn *nn;
    int32_t threads; /* of the kernels */
    struct weft_binding binding;
};

/* True if WEFT_GEMM asks for plain products, for weft_config_set_plain. */
bool weft_machine_is_plain(void);

/* Collective over the meeting's ranks. The meeting keeps its descriptors, and must outlive the
 * machine. With cluster.bind the calling thread stays on this rank's cores until the machine is
 * closed. WEFT_E_DISAGREE if the config is for another number of ranks, WEFT_E_ENVIRONMENT if
 * binding fails, WEFT_E_LOST or WEFT_E_HANG if a peer does not come. Close the machine after a
 * failure too. */
WEFT_MUST_USE enum weft_status weft_machine_open(const struct weft_rendezvous *meeting,
                                                 const struct weft_config *config,
                                                 bool virtual_clock, struct weft_machine *out,
                                                 struct weft_error *err);
/* Collective, before a run resumes the checkpoint at `resume` (rank 0's counts; NULL: none).
 * Products are then computed by the checkpoint's library, which gives the same bits. Without a
 * checkpoint the profile's library is used, since the plan counts its times and memory. WEFT_GEMM
 * overrides both. A profile's library that is not available gives a warning here; a checkpoint's
 * does when it is read. Rank 0 warns of a profile of another GPU. */
WEFT_MUST_USE enum weft_status weft_machine_go_on(const struct weft_rendezvous *meeting,
                                                  const struct weft_config *config,
                                                  const struct weft_profile *profile,
                                                  const char *resume, struct weft_machine *machine,
                                                  struct weft_error *err);

/* WEFT_E_DATA if the measurement would count the config's cluster.contention twice, or if the
 * cluster has none of its policies. */
WEFT_MUST_USE enum weft_status weft_machine_check_measuring(const struct weft_config *config,
                                                            bool contention,
                                                            struct weft_error *err);
/* Before a run of the plan. Without cluster.timeout and with measured times, a wait in a step is
 * limited by the plan's prediction (weft_comm_expect). */
WEFT_MUST_USE enum weft_status weft_machine_expect(const struct weft_machine *machine,
                                                   const struct weft_config *config,
                                                   const struct weft_profile *profile,
                                                   const struct weft_plan *plan,
                                                   struct weft_error *err);
/* Collective: runs weft_measure (runtime/measure/measure.h) on this machine, checked first. rounds
 * 0: as many as needed. `known`: a profile of another micro-batch, or NULL. */
WEFT_MUST_USE enum weft_status weft_machine_measure(
    const struct weft_machine *machine, const struct weft_config *config, bool contention,
    int32_t rounds, const struct weft_profile *known, struct weft_watch *watch,
    struct weft_profile **out, struct weft_error *err);

/* Collective: appends rank 0's text to the other ranks' `text`, which must be empty. `status` and
 * `err` are rank 0's outcome so far; the others pass WEFT_OK. If rank 0 has failed, every rank
 * returns its failure. */
WEFT_MUST_USE enum weft_status weft_machine_share(const struct weft_machine *machine,
                                                  struct weft_text *text, enum weft_status status,
                                                  struct weft_error *err);

/* Both accept {0} and half-open machines. A failed rank gives up before it closes, so that waiting
 * peers learn of it at once. Otherwise they would take its closing for the message they wait
 * for. */
void weft_machine_give_up(const struct weft_machine *machine);
void weft_machine_close(struct weft_machine *machine);

#endif
