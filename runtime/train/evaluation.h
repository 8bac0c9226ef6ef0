/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation is the mean loss over held-out samples, by forward alone. The samples are always
 * the same, for any ranks and micro-batch. Losses of micro-batches are added in order of samples.
 * With one micro_batch and products that give the same bits, any number of ranks gives the same
 * bits. Otherwise the losses agree to the rounding of products. */
#ifndef WEFT_RUNTIME_TRAIN_EVALUATION_H
#define WEFT_RUNTIME_TRAIN_EVALUATION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/exec/exec.h"
#include "runtime/train/data.h"
#include "runtime/train/options.h"

struct weft_evaluation;

/* The config must hold data out. Errors of weft_data_open. */
WEFT_MUST_USE enum weft_status weft_evaluation_create(const struct weft_config *config,
                                                      struct weft_comm *comm,
                                                      struct weft_evaluation **out,
                                                      struct weft_error *err);
void weft_evaluation_destroy(struct weft_evaluation *evaluation);

/* Whether `step` ends with an evaluation. */
bool weft_evaluation_is_due(const struct weft_train *train, int64_t step);

/* Collective. Settles, then evaluates; `step` is for the line. A loss that is not finite is a
 * normal result. If *stop has been set for over a second on some rank, all ranks give up: *whole is
 * false and `out` untouched. `stop` may be NULL. They give up too if some rank cannot read its
 * samples. That rank has the reason in *unread, an empty error before. */
WEFT_MUST_USE enum weft_status weft_evaluation_run(struct weft_evaluation *evaluation,
                                                   struct weft_exec *exec, int64_t step,
                                                   const atomic_int *stop,
                                                   struct weft_evaluation_line *out, bool *whole,
                                                   struct weft_error *unread,
                                                   struct weft_error *err);

#endif
