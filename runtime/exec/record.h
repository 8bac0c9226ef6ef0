/* The record of a step: words of the arena that ranks add up, words of this rank alone, and the
 * mailbox in which the host finds what it must know of them. Shared by the files of this folder
 * alone. */
#ifndef WEFT_RUNTIME_EXEC_RECORD_H
#define WEFT_RUNTIME_EXEC_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/nn/units.h"
#include "spec/profile/profile.h"

/* Words of the record. Ranks add up all but the last: every word is an integer, so the order of
 * ranks does not matter. */
enum {
    EXEC_WORD_NORM = 0, /* WEFT_NORM_WORDS bins */
    EXEC_WORD_LOSS = WEFT_NORM_WORDS,
    EXEC_WORD_BAD_LOSS = EXEC_WORD_LOSS + WEFT_NN_LOSS_BAD, /* ranks whose loss is not finite */
    EXEC_WORD_STOP = EXEC_WORD_LOSS + WEFT_NN_LOSS_WORDS,   /* ranks that were told to stop */
    EXEC_WORD_BAD_UNITS, /* one word a unit: ranks that own a gradient of it that is not finite */
    EXEC_WORDS = WEFT_AGREE_BYTES / 8,
    EXEC_OWN_WORDS = 32,
    EXEC_SENT_WORDS = EXEC_WORDS - EXEC_OWN_WORDS,
    /* Units beyond share the last word. */
    EXEC_FLAGGED_UNITS = EXEC_SENT_WORDS - EXEC_WORD_BAD_UNITS
};

/* What the record's last words are, of this rank alone: what work leaves for other work, and for
 * the host to read. */
struct exec_own {
    struct weft_nn_step step;
    int64_t first_bad; /* what wrote a number that is not finite: period * n_instructions +
                          instruction; INT64_MAX: none */
    double loss;       /* of this step's micro-batches so far, summed over rows */
    uint64_t hash[2];
};
_Static_assert(sizeof(struct exec_own) <= EXEC_OWN_WORDS * sizeof(uint64_t), "it has its words");
_Static_assert(EXEC_SENT_WORDS * sizeof(uint64_t) % 16 == 0, "scalars of a step are aligned");

/* What the host reads of the arena: valid behind a synchronise. */
struct exec_mailbox {
    uint64_t sum[EXEC_SENT_WORDS]; /* the record over all ranks */
    uint32_t earlier;              /* the gradients that this period applied must not be used */
    uint32_t stop;                 /* the same at the end of what was issued */
    int64_t first_bad;
    double loss;
    uint64_t hash[2];
};

/* The address of a member of struct exec_own. */
#define EXEC_OWN(exec, member) ((void *)((exec)->own + offsetof(struct exec_own, member)))

#endif
