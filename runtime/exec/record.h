/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a step: words of the arena that ranks sum, words of this rank alone, and a mailbox
 * with the words that the host needs. Private to this folder. */
#ifndef WEFT_RUNTIME_EXEC_RECORD_H
#define WEFT_RUNTIME_EXEC_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/exec/options.h"
#include "runtime/nn/units.h"
#include "spec/profile/profile.h"

/* Words of the record. Ranks sum all words but this rank's own ones at the end. An optimizer with
 * struct exec_means has squares of tensors before the own words, and divisors after them. Every
 * word is an integer, so the order of ranks does not matter. */
enum {
    EXEC_WORD_NORM = 0, /* WEFT_NORM_WORDS bins */
    EXEC_WORD_LOSS = WEFT_NORM_WORDS,
    EXEC_WORD_BAD_LOSS = EXEC_WORD_LOSS + WEFT_NN_LOSS_BAD, /* ranks with a bad loss */
    EXEC_WORD_STOP = EXEC_WORD_LOSS + WEFT_NN_LOSS_WORDS,   /* ranks that were told to stop */
    EXEC_WORD_BAD_UNITS, /* by unit: ranks that own a gradient that is not finite */
    EXEC_WORDS = WEFT_AGREE_BYTES / 8,
    EXEC_OWN_WORDS = 32,
    EXEC_SENT_WORDS = EXEC_WORDS - EXEC_OWN_WORDS,
    /* Hashes of the parameters that updates wrote, on the device and on the host. Updates come
     * before the record begins, also in a settle before it, so the record keeps these words. */
    EXEC_UPDATE_WORDS = 4,
    /* Hashes of groups' gradients, and of those that a rotated period completes for the step
     * before. */
    EXEC_GROUP_WORDS = 2 * WEFT_GROUP_HASHES,
    EXEC_HASH_WORDS = EXEC_UPDATE_WORDS + 2 * EXEC_GROUP_WORDS,
    EXEC_WORD_HASH = EXEC_SENT_WORDS - EXEC_HASH_WORDS,
    EXEC_WORD_GROUPS = EXEC_WORD_HASH + EXEC_UPDATE_WORDS,
    EXEC_WORD_CARRIED = EXEC_WORD_GROUPS + EXEC_GROUP_WORDS,
    /* Units with a word of their own; later units share the last one. */
    EXEC_FLAGGED_UNITS = EXEC_WORD_HASH - EXEC_WORD_BAD_UNITS
};

/* In EXEC_WORD_STOP, for each rank without data for the next step. */
#define EXEC_STOP_ENDS (UINT64_C(1) << 32)

/* The record's last words, of this rank alone. Later work and the host read them. */
struct exec_own {
    struct weft_nn_step step;
    /* The first instruction that wrote a number that is not finite: period * n_instructions +
     * instruction. INT64_MAX: none. */
    int64_t first_bad;
    double loss;                         /* sum over rows of this round's micro-batches so far */
    uint64_t losses[WEFT_NN_LOSS_WORDS]; /* of the step's rounds before this one */
    uint64_t hash[2];
};
_Static_assert(sizeof(struct exec_own) <= EXEC_OWN_WORDS * sizeof(uint64_t), "it has its words");
_Static_assert(EXEC_SENT_WORDS * sizeof(uint64_t) % 16 == 0, "scalars of a step are aligned");

/* The mean loss over rows, from summed words of the record (EXEC_WORD_LOSS). */
double weft_exec_mean_loss(const uint64_t words[WEFT_NN_LOSS_WORDS], int64_t rows);

/* Words of the arena that the host reads; valid after a synchronise. */
struct exec_mailbox {
    uint64_t sum[EXEC_SENT_WORDS]; /* the record over all ranks */
    uint32_t earlier;              /* not 0: the gradients that this period applied are bad */
    uint32_t stop;                 /* the same at the end of the issued work */
    int64_t first_bad;
    double loss;
    uint64_t hash[2];
};

/* Second moments of whole tensors, for optimizers with one a tensor. The norm adds exact squares of
 * each tensor to the record, and ranks sum them with it. Every rank computes equal moments from the
 * sums on the host, and divisors of the next update, and writes the divisors after the record's own
 * words. All are by tensor of the model, and frozen tensors have zeros. */
struct exec_means {
    int32_t n;
    struct weft_range sent; /* bytes of this rank's squares in the record */
    uint64_t *squares;      /* over all ranks, as packed words; a part of the mailbox */
    float *applied;         /* moments of the updates so far: the state of a run */
    float *next;            /* with the pending step's gradients */
    float *divisors;        /* of its updates */
};

struct weft_exec;
/* work.c. For other optimizers the functions do nothing. `create` leaves
 * exec->means NULL then; WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_exec_means_create(struct weft_exec *exec,
                                                      struct weft_error *err);
/* Words of the record after the sent ones, which ranks sum too. */
int64_t weft_exec_means_words(const struct weft_exec *exec);
/* Computes moments and divisors of the pending step. */
void weft_exec_means_prepare(struct weft_exec *exec);
/* Begins the pending step's updates: their moments become the state. */
void weft_exec_means_push(struct weft_exec *exec);
void weft_exec_means_clear(struct weft_exec *exec);

/* Address of a member of struct exec_own in the arena. */
#define EXEC_OWN(exec, member) ((void *)((exec)->own + offsetof(struct exec_own, member)))

#endif
