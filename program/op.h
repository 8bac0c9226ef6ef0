/* What instructions do, and on which streams. */
#ifndef WEFT_PROGRAM_OP_H
#define WEFT_PROGRAM_OP_H

#include <stdbool.h>

enum weft_stream_kind {
    WEFT_STREAM_COMPUTE,
    WEFT_STREAM_CHANNEL,
    /* Those below only where something is done there. */
    WEFT_STREAM_DOWN,  /* copies to the host's memory */
    WEFT_STREAM_UP,    /* and back */
    WEFT_STREAM_HOST,  /* updates there */
    WEFT_STREAM_READ,  /* of a disk, and of its writes too where it has one lane */
    WEFT_STREAM_WRITE, /* where it has two */
    WEFT_STREAM_COUNT
};

/* X(enumerator, name, stream) */
#define WEFT_OP_MAP(X)                                                                             \
    X(MARK, "mark", COMPUTE)         /* start of a slot */                                         \
    X(MOMENTS, "moments", COMPUTE)   /* unit: where updates are agreed on, moments and what this   \
                                        rank has of its tensors' norms; then AGREE, UPDATE */      \
    X(UPDATE, "update", COMPUTE)     /* unit: optimizer on what this rank owns */                  \
    X(LOAD, "load", COMPUTE)         /* micro-batch into input and targets, before its forwards */ \
    X(FORWARD, "forward", COMPUTE)   /* layer */                                                   \
    X(ZERO, "zero", COMPUTE)         /* unit: gaps and padding of its full gradient */             \
    X(BACKWARD, "backward", COMPUTE) /* layer */                                                   \
    X(NORM, "norm", COMPUTE)         /* this rank's loss and flags into the record, and with       \
                                        clipping its norm bins */                                  \
    X(FINISH, "finish", COMPUTE)     /* waits for AGREE; clip coefficient, loss, flags */          \
    X(ALL_GATHER, "all_gather", CHANNEL)                                                           \
    X(REDUCE_SCATTER, "reduce_scatter", CHANNEL)                                                   \
    X(ALL_REDUCE, "all_reduce", CHANNEL)                                                           \
    X(AGREE, "agree", CHANNEL) /* sum over ranks of the record; of a unit: of its tensors' norms   \
                                */                                                                 \
    X(READ, "read", READ)      /* unit: its state, from the disk into the arena */                 \
    X(WRITE, "write", WRITE)   /* unit: and back */                                                \
    X(COPY_UP, "copy_up", UP)  /* unit: its state, from the host's memory into the arena */        \
    X(COPY_DOWN, "copy_down", DOWN) /* unit: and back */                                           \
    X(GRADIENT_DOWN, "gradient_down",                                                              \
      DOWN)                               /* unit: a block of its reduced gradient to the host;    \
                                             with clipping into the record its norm bins first */  \
    X(HOST_UPDATE, "host_update", HOST)   /* unit: optimizer on a block, on the host */            \
    X(PARAMETERS_UP, "parameters_up", UP) /* unit: and its parameters back */                      \
    X(SAVED_DOWN, "saved_down", DOWN)     /* layer: what it saved, from the arena to the host */   \
    X(SAVED_UP, "saved_up", UP)           /* layer: and back, restored */

enum weft_op {
#define WEFT_OP_ENUMERATOR(name, text, stream) WEFT_OP_##name,
    WEFT_OP_MAP(WEFT_OP_ENUMERATOR)
#undef WEFT_OP_ENUMERATOR
        WEFT_OP_COUNT
};
const char *weft_op_name(enum weft_op op);
enum weft_stream_kind weft_op_stream(enum weft_op op); /* where each lane has one */

/* Ops that move a unit's state: from its home, or back there. */
bool weft_op_brings_state(enum weft_op op);
bool weft_op_takes_state(enum weft_op op);
/* Ops that are a unit's update on the host, or bring its parameters from there. */
bool weft_op_updates_there(enum weft_op op);

#endif
