/* To execute is to run a program, exactly, over a device, a communicator and the layers' kernels:
 * every instruction on its stream, after its dependencies, at its addresses. The executor decides
 * nothing and allocates nothing in a step. */
#ifndef WEFT_RUNTIME_EXEC_EXEC_H
#define WEFT_RUNTIME_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failpoint.h"
#include "base/status.h"
#include "program/program.h"
#include "program/trace.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/exec/precision.h"
#include "runtime/nn/nn.h"
#include "shard/shard.h"
#include "spec/config.h"

struct weft_exec;

struct weft_exec_options {
    /* All must outlive the executor. */
    const struct weft_config *config;
    const struct weft_shards *shards;
    const struct weft_plan *plan;
    const struct weft_program *program;
    struct weft_device *device;
    struct weft_comm *comm; /* that mapped `arena`, by weft_exec_map_arena */
    struct weft_nn *nn;
    struct weft_arena *arena;
    bool poison; /* fill what is dead with a pattern (0xFF bytes: NaN) between lives, so that a
                    read of dead bytes shows; in ASan builds the ranges are poisoned too */
    const struct weft_failpoint *failpoint; /* its places are ops and "replica"; or NULL */
};

/* Collective: the arena of a program, by its paging, and of peers' what collectives read. `poison`
 * as the executor's. Errors as weft_comm_map_arena's; weft_comm_unmap_arena unmaps. */
WEFT_MUST_USE enum weft_status weft_exec_map_arena(struct weft_comm *comm,
                                                   const struct weft_program *program, bool poison,
                                                   struct weft_arena **out, struct weft_error *err);

/* Periods are counted from here: the first one is even. */
WEFT_MUST_USE enum weft_status weft_exec_create(const struct weft_exec_options *options,
                                                struct weft_exec **out, struct weft_error *err);
void weft_exec_destroy(struct weft_exec *exec);

/* Writes the initial values of what this rank owns: functions of (seed, tensor name, element). */
WEFT_MUST_USE enum weft_status weft_exec_initialise(struct weft_exec *exec, uint64_t seed,
                                                    struct weft_error *err);

struct weft_step_inputs {
    const void *input; /* tokens, or numbers in fp32, micro-batch after micro-batch; LOAD copies
                          them, rounded to compute */
    const int32_t *targets; /* likewise */
    int64_t step;           /* 1, 2, ...: of the gradients that this step computes */
    double lr; /* for the update with these gradients (done at the next step's start) */
    bool stop; /* this rank was told to stop */
};

struct weft_step_result {
    double loss; /* mean over all rows of all ranks */
    double norm; /* of the whole gradient before clipping; negative without, when nobody needs it */
    double clip; /* coefficient used; 1 when not clipped */
    bool stop;   /* some rank was told to; the same on all ranks */
    bool finite; /* false: no rank may update; the same on all ranks */
    bool earlier; /* it is the gradients of the step before that are not finite, or would not be
                     when added up over ranks: a rotated period's. No rank has updated with them */
    bool skipped; /* f16 overflowed: nothing will be updated, and the loss scale is smaller. To be
                     done again: same inputs, same step. Then `finite` is true */
    double loss_scale; /* that the gradients had */
    int32_t suspect; /* unit nearest to the loss whose gradient is not finite; -1 = none. Gradients
                        run from the loss backwards, so it is the first that went wrong */
};

/* One period. The first step, and that behind a settle, has no gradients to apply: its UPDATE
 * instructions do nothing, and a rotated period's carried ones either. `trace`
 * (may be NULL) was made by weft_trace_create for this program; filled with records and live bytes.
 * Errors of any stream (WEFT_E_LOST, WEFT_E_HANG ...) come out here. */
WEFT_MUST_USE enum weft_status weft_exec_step(struct weft_exec *exec,
                                              const struct weft_step_inputs *inputs,
                                              struct weft_step_result *result,
                                              struct weft_trace *trace, struct weft_error *err);

/* Applies the last step's gradients, at a run's end: the U slots alone, and what a rotated period
 * carries over. Collective. WEFT_E_NUMERIC when a rotated period finds gradients that are not
 * finite: then nothing is applied, on any rank. */
WEFT_MUST_USE enum weft_status weft_exec_settle(struct weft_exec *exec, struct weft_error *err);

/* The loss scale of the next backward, a part of the state that a run goes on from. */
struct weft_loss_scale weft_exec_loss_scale(const struct weft_exec *exec);
void weft_exec_set_loss_scale(struct weft_exec *exec, struct weft_loss_scale scale);
/* The step after which all moments were 0, where it was not the run's beginning: AdamW and LAMB
 * correct their bias by the steps since. */
void weft_exec_set_moments_began(struct weft_exec *exec, int64_t step);

/* 128 bits of all parameters of the model, independent of who owns them: each element of each
 * tensor hashed with its name and index, added up over ranks. Collective. Equal only if every
 * parameter has the same bits. Call it after settle. */
WEFT_MUST_USE enum weft_status weft_exec_fingerprint(struct weft_exec *exec, struct weft_hash *out,
                                                     struct weft_error *err);

/* The loss of one micro-batch, summed over this rank's rows, with the parameters as they are, and
 * no more: nothing that the next step reads is changed. Collective; call it after settle. */
WEFT_MUST_USE enum weft_status weft_exec_evaluate(struct weft_exec *exec, const void *input,
                                                  const int32_t *targets, double *loss,
                                                  struct weft_error *err);

struct weft_culprit {
    bool recovered;        /* the step was run again, and all was finite then */
    bool known;            /* a layer wrote what is not finite; the rest is not set else */
    int32_t rank, n_ranks; /* the first of those that were the first to go wrong */
    int32_t layer;
    bool backward;
};

/* Finds the first layer that wrote a number that is not finite, and the ranks on which it did,
 * after a step whose result was not finite. With clipping the step is run once more for it;
 * without, every step of the run was looked at. Collective, right after that step, with its inputs.
 */
WEFT_MUST_USE enum weft_status weft_exec_find_culprit(struct weft_exec *exec,
                                                      const struct weft_step_inputs *inputs,
                                                      struct weft_culprit *out,
                                                      struct weft_error *err);
/* "rank 1, in the forward pass of layer h.2", nothing when it is not known. */
void weft_exec_describe_culprit(const struct weft_exec *exec, const struct weft_culprit *culprit,
                                struct weft_text *out);

/* Compares what ranks hold alike. Collective, behind step `step`. WEFT_E_NUMERIC naming the unit,
 * and the ranks that are outside the largest group that agrees. */
WEFT_MUST_USE enum weft_status weft_exec_compare_replicas(struct weft_exec *exec, int64_t step,
                                                          struct weft_error *err);

/* For handlers of SIGSEGV (`is_mapped` false) and SIGBUS (true), in the thread that met it at the
 * address: true where that is one of the arena's. Then *out is the error that the process ends
 * with: it names step, instruction and layer, and the buffer with the byte behind its end, or of
 * what is dead. Takes no memory and no lock. */
bool weft_exec_tell_trespass(const struct weft_exec *exec, const void *address, bool is_mapped,
                             struct weft_error *out);

/* Bytes of the ring of a disk that are in memory now; 0 without one. */
int64_t weft_exec_ring_bytes(const struct weft_exec *exec);

/* Bytes that this rank keeps in a tier outside its arena. Of the host: its pages that are in memory
 * now, and the ring of a disk where the plan counts it there. Of a disk: the file. Of the device:
 * the ring, where the plan counts it there. Takes no memory. */
int64_t weft_exec_tier_bytes(const struct weft_exec *exec, enum weft_home home);

/* Bytes of all pages that were ever touched (found by pattern) with poison on; otherwise the
 * planned bytes. After a settle. */
WEFT_MUST_USE enum weft_status weft_exec_touched_bytes(struct weft_exec *exec, int64_t *bytes,
                                                       struct weft_error *err);

/* Threads of updates on the host: cluster.host.threads, or the rank's cores less those of compute
 * and copies. */
int32_t weft_exec_update_threads(const struct weft_config *config);

#endif
