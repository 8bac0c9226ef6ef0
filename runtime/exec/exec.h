/* SPDX-License-Identifier: Apache-2.0 */
/* The executor runs a program exactly: every instruction on its stream, after its dependencies, at
 * its addresses. It works over a device, a communicator and the layers' kernels. In a step it
 * decides nothing and allocates nothing. */
#ifndef WEFT_RUNTIME_EXEC_EXEC_H
#define WEFT_RUNTIME_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/trace.h"
#include "runtime/exec/options.h"
#include "runtime/exec/precision.h"

/* Binds the program and creates its streams, events and tiers. Periods are counted from here, and
 * the first is even. Lanes of the network after the first are branches of the communicator;
 * WEFT_E_ENVIRONMENT if it has none. WEFT_E_DATA if plan and config do not fit in ranks, precision
 * or tiers. */
WEFT_MUST_USE enum weft_status weft_exec_create(const struct weft_exec_options *options,
                                                struct weft_exec **out, struct weft_error *err);
void weft_exec_destroy(struct weft_exec *exec);

/* Collective. Writes this rank's initial parameters, which are functions of (seed, tensor name,
 * element), and zeroes the moments. */
WEFT_MUST_USE enum weft_status weft_exec_initialise(struct weft_exec *exec, uint64_t seed,
                                                    struct weft_error *err);

/* Collective. Runs one period. The first step, and the first after a settle, have no gradients to
 * apply: their updates and carried instructions do nothing. `trace` comes from weft_trace_create
 * for this program and gets records and live bytes; it may be NULL. Errors of any stream
 * (WEFT_E_LOST, WEFT_E_HANG ...) are returned here. */
WEFT_MUST_USE enum weft_status weft_exec_step(struct weft_exec *exec,
                                              const struct weft_step_inputs *inputs,
                                              struct weft_step_result *result,
                                              struct weft_trace *trace, struct weft_error *err);

/* Collective. Applies the last step's gradients at a run's end, with the carried work of a rotated
 * period. WEFT_E_NUMERIC if a rotated period finds gradients that are not finite. Then no rank
 * applies any. */
WEFT_MUST_USE enum weft_status weft_exec_settle(struct weft_exec *exec, struct weft_error *err);

/* Gives each group that a step or a settle completed once, with options.sums_groups. *round begins
 * at 0. False after the last one. */
bool weft_exec_next_group(struct weft_exec *exec, int32_t *round, struct weft_group_line *out);

/* The loss scale of the next backward. A resumed run needs it. */
struct weft_loss_scale weft_exec_loss_scale(const struct weft_exec *exec);
void weft_exec_set_loss_scale(struct weft_exec *exec, struct weft_loss_scale scale);
/* Sets the step after which all moments were 0, if that was not the run's beginning. AdamW and LAMB
 * correct their bias by the updates since then. With delay the first step after it has none. */
void weft_exec_set_moments_began(struct weft_exec *exec, int64_t step);

/* Collective; call it after settle. A hash of 128 bits of all parameters, the same for every
 * sharding. It is the sum over ranks of a hash of each element with its tensor's name and index.
 * Equal hashes mean that every parameter has the same bits. If nodes have stepped on their own
 * since their last average, it is a hash of theirs in node order. */
WEFT_MUST_USE enum weft_status weft_exec_fingerprint(struct weft_exec *exec, struct weft_hash *out,
                                                     struct weft_error *err);

/* Whether steps can hash the parameters (train.fingerprint.every): not with updates on the host of
 * a GPU. */
bool weft_exec_can_hash(const struct weft_exec *exec);

/* Collective; call it after settle. The loss of one micro-batch, summed over this rank's rows. The
 * next step is not affected. */
WEFT_MUST_USE enum weft_status weft_exec_evaluate(struct weft_exec *exec, const void *input,
                                                  const int32_t *targets, double *loss,
                                                  struct weft_error *err);

struct weft_culprit {
    bool recovered; /* the step ran again and was finite */
    bool known;     /* a layer wrote a number that is not finite; otherwise the rest is not set */
    int32_t rank, n_ranks; /* the first rank that went wrong there, and how many did */
    int32_t layer;
    bool backward;
};

/* Collective. Finds the first layer that wrote a number that is not finite, and the ranks on which
 * it did. Call it right after a step that was not finite, with its inputs. A rotated period has
 * looked at every step; otherwise the step is run once more. */
WEFT_MUST_USE enum weft_status weft_exec_find_culprit(struct weft_exec *exec,
                                                      const struct weft_step_inputs *inputs,
                                                      struct weft_culprit *out,
                                                      struct weft_error *err);
/* Adds "rank 1, in the forward pass of layer h.2", or nothing if the culprit is not known. */
void weft_exec_describe_culprit(const struct weft_exec *exec, const struct weft_culprit *culprit,
                                struct weft_text *out);
/* A sentence without its period: what gradients that are not finite have updated. */
const char *weft_exec_bad_outcome(const struct weft_exec *exec);

/* Collective, after step `step`. Compares replicas of ranks that step together: parameters under dp
 * and zero1, and state under dp. WEFT_E_NUMERIC names the unit and the ranks outside the largest
 * group that agrees. */
WEFT_MUST_USE enum weft_status weft_exec_compare_replicas(struct weft_exec *exec, int64_t step,
                                                          struct weft_error *err);

/* For handlers of SIGSEGV (`is_mapped` false) and SIGBUS (true), in the thread that faulted.
 * Returns whether the address is in the arena. *out is then the error that ends the process. It
 * names step, instruction and layer, and the nearest buffer with the byte after its end or in dead
 * memory. Takes no memory and no lock. */
bool weft_exec_tell_trespass(const struct weft_exec *exec, const void *address, bool is_mapped,
                             struct weft_error *out);

/* Bytes of the disk's ring that are in memory now; 0 without a disk. */
int64_t weft_exec_ring_bytes(const struct weft_exec *exec);

/* Bytes that this rank keeps in a tier outside its arena. Host: pages that are in memory now, and
 * the ring if the plan counts it there. Disk: the file. Device: the ring if the plan counts it
 * there. Takes no memory. */
int64_t weft_exec_tier_bytes(const struct weft_exec *exec, enum weft_location location);

/* With poison, bytes of all pages that were ever touched, found by pattern. Otherwise the planned
 * bytes. Call it after settle. */
WEFT_MUST_USE enum weft_status weft_exec_touched_bytes(struct weft_exec *exec, int64_t *bytes,
                                                       struct weft_error *err);

#endif
