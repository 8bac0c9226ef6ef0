/* Operations of instructions, and their streams. */
#ifndef WEFT_PROGRAM_OP_H
#define WEFT_PROGRAM_OP_H

#include <stdbool.h>

enum weft_stream_kind {
    WEFT_STREAM_COMPUTE,
    WEFT_STREAM_CHANNEL,
    /* Streams from here on exist if the program has work for them. */
    WEFT_STREAM_DOWN,  /* copies to the host's memory */
    WEFT_STREAM_UP,    /* copies from the host's memory */
    WEFT_STREAM_HOST,  /* updates on the host */
    WEFT_STREAM_READ,  /* reads of a disk, and writes if it has one lane */
    WEFT_STREAM_WRITE, /* writes, if the disk has two lanes */
    WEFT_STREAM_COUNT
};

/* X(enumerator, name, stream) */
#define WEFT_OP_MAP(X)                                                                             \
    X(MARK, "mark", COMPUTE)         /* start of a slot */                                         \
    X(MOMENTS, "moments", COMPUTE)   /* unit: moments and norms, if updates are agreed */          \
    X(UPDATE, "update", COMPUTE)     /* unit: optimizer on this rank's part */                     \
    X(LOAD, "load", COMPUTE)         /* a micro-batch, before its forwards */                      \
    X(FORWARD, "forward", COMPUTE)   /* layer */                                                   \
    X(ZERO, "zero", COMPUTE)         /* unit: gaps and padding of its full gradient */             \
    X(BACKWARD, "backward", COMPUTE) /* layer */                                                   \
    X(NORM, "norm", COMPUTE)         /* this rank's loss, flags, norm bins to the record */        \
    X(FINISH, "finish", COMPUTE)     /* after AGREE: clip coefficient, loss, flags */              \
    X(ALL_GATHER, "all_gather", CHANNEL)                                                           \
    X(REDUCE_SCATTER, "reduce_scatter", CHANNEL)                                                   \
    X(ALL_REDUCE, "all_reduce", CHANNEL)                                                           \
    X(AGREE, "agree", CHANNEL)      /* sum over ranks of the record, or of a unit's norms */       \
    X(READ, "read", READ)           /* unit: state from the disk to the arena */                   \
    X(WRITE, "write", WRITE)        /* unit: state from the arena to the disk */                   \
    X(COPY_UP, "copy_up", UP)       /* unit: state from the host to the arena */                   \
    X(COPY_DOWN, "copy_down", DOWN) /* unit: state from the arena to the host */                   \
    X(GRADIENT_DOWN, "gradient_down", DOWN) /* unit: a gradient block to norm and host */          \
    X(HOST_UPDATE, "host_update", HOST)     /* unit: optimizer on a block, on the host */          \
    X(PARAMETERS_UP, "parameters_up", UP)   /* unit: a block's parameters from the host */         \
    X(SAVED_DOWN, "saved_down", DOWN)       /* layer: saved activations to the host */             \
    X(SAVED_UP, "saved_up", UP)             /* layer: saved activations from the host */

enum weft_op {
#define WEFT_OP_ENUMERATOR(name, text, stream) WEFT_OP_##name,
    WEFT_OP_MAP(WEFT_OP_ENUMERATOR)
#undef WEFT_OP_ENUMERATOR
        WEFT_OP_COUNT
};
const char *weft_op_name(enum weft_op op);
enum weft_stream_kind weft_op_stream(enum weft_op op); /* if each lane has one */

/* Ops that move a unit's state to the arena, or from the arena to its location. */
bool weft_op_brings_state(enum weft_op op);
bool weft_op_takes_state(enum weft_op op);
/* Ops that update a unit's block on the host, or bring its parameters back. */
bool weft_op_updates_there(enum weft_op op);

#endif
