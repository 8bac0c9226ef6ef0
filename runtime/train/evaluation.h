/* An evaluation is the mean loss over samples that are held out, by forward alone. The samples are
 * the same every time, for any number of ranks and any micro-batch. Losses of micro-batches are
 * added up in the order of samples: with one micro_batch, and products that give the same bits, any
 * number of ranks gives the same bits. Otherwise the loss is the same to the rounding of products.
 */
#ifndef WEFT_RUNTIME_TRAIN_EVALUATION_H
#define WEFT_RUNTIME_TRAIN_EVALUATION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/exec/exec.h"
#include "runtime/train/data.h"
#include "runtime/train/train.h"

struct weft_evaluation;

/* The config holds data out. Errors of weft_data_open. */
WEFT_MUST_USE enum weft_status weft_evaluation_create(const struct weft_config *config,
                                                      struct weft_comm *comm,
                                                      struct weft_evaluation **out,
                                                      struct weft_error *err);
void weft_evaluation_destroy(struct weft_evaluation *evaluation);

/* Whether `step` ends with an evaluation. */
bool weft_evaluation_is_due(const struct weft_train *train, int64_t step);

/* Collective. Settles what is pending, then evaluates; the step goes into the line. A loss that is
 * not finite is a result like any other. If `stop` (or NULL) has been set for more than a second on
 * any rank, all ranks give up: *whole is false and `out` untouched. */
WEFT_MUST_USE enum weft_status weft_evaluation_run(struct weft_evaluation *evaluation,
                                                   struct weft_exec *exec, int64_t step,
                                                   const atomic_int *stop,
                                                   struct weft_evaluation_line *out, bool *whole,
                                                   struct weft_error *err);

#endif
