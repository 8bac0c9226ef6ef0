/* A machine is what a rank works with: its device, its communicator with the other ranks, and its
 * kernels. */
#ifndef WEFT_LIBRARY_MACHINE_H
#define WEFT_LIBRARY_MACHINE_H

#include <stdbool.h>

#include "base/watch.h"
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
    int32_t threads; /* of kernels */
    struct weft_binding binding;
};

/* Collective: every rank of the meeting calls it. The meeting's descriptors stay its own, and must
 * outlive the machine. With cluster.bind the calling thread keeps to this rank's cores until the
 * machine is closed. WEFT_E_DISAGREE when the config is for another number of ranks;
 * WEFT_E_ENVIRONMENT where it cannot be bound; WEFT_E_LOST, WEFT_E_HANG when a peer does not come.
 * What is left after a failure is closed like the rest. */
WEFT_MUST_USE enum weft_status weft_machine_open(const struct weft_rendezvous *meeting,
                                                 const struct weft_config *config,
                                                 bool virtual_clock, struct weft_machine *out,
                                                 struct weft_error *err);
/* Collective, before a run begins with the checkpoint at `resume` (NULL: with none; rank 0's word
 * counts): products are computed by the library that computed it, for the same bits; without one by
 * the library that the profile's layers were measured with, whose times and memory the plan counts.
 * Another one stays where WEFT_GEMM names it, or where that is not to be had: warned of here of the
 * profile's, and when the checkpoint is read of the checkpoint's. */
WEFT_MUST_USE enum weft_status weft_machine_go_on(const struct weft_rendezvous *meeting,
                                                  const struct weft_config *config,
                                                  const struct weft_profile *profile,
                                                  const char *resume, struct weft_machine *machine,
                                                  struct weft_error *err);

/* WEFT_E_DATA when the config's cluster.contention would count twice in what is measured. */
WEFT_MUST_USE enum weft_status weft_machine_check_measuring(const struct weft_config *config,
                                                            bool contention,
                                                            struct weft_error *err);
/* Collective: weft_measure (runtime/measure/measure.h) on this machine, checked first; with so many
 * rounds (0: as many as needed). */
WEFT_MUST_USE enum weft_status weft_machine_measure(
    const struct weft_machine *machine, const struct weft_config *config, bool contention,
    int32_t rounds, struct weft_watch *watch, struct weft_profile **out, struct weft_error *err);

/* Collective: rank 0's text is added to the others' (empty) `text`. `status` and `err` are what
 * rank 0 came to: when that is a failure, every rank fails with it. The others give WEFT_OK. */
WEFT_MUST_USE enum weft_status weft_machine_share(const struct weft_machine *machine,
                                                  struct weft_text *text, enum weft_status status,
                                                  struct weft_error *err);

/* Both accept {0} and half-open ones. A rank that has failed gives up before it closes: peers that
 * wait for it learn it then, and do not take its parting for what they wait for. */
void weft_machine_give_up(const struct weft_machine *machine);
void weft_machine_close(struct weft_machine *machine);

#endif
