/* Work on units as a rank holds them: what happens to parameters, gradients and state between
 * layers' forward and backward. Every function pushes work on a stream. Addresses (void *) are of
 * the device's memory, and nobody but that work looks there; all else, and what it points to, is
 * the host's and must stay as it is until the stream has been synchronised. */
#ifndef WEFT_RUNTIME_NN_UNITS_H
#define WEFT_RUNTIME_NN_UNITS_H

#include "runtime/nn/nn.h"
#include "runtime/nn/optimizer.h"
#include "runtime/nn/record.h"

/* Elements of one tensor, side by side in a unit. */
struct weft_nn_piece {
    int64_t parameter_at; /* element of the parameters that it begins with */
    int64_t state_at;     /* of the master, of the gradient and of the moments */
    int64_t first, count; /* elements of the tensor */
    int32_t tensor;       /* of the model */
    int32_t place;        /* of the tensor in the unit; pieces are in this order */
    uint64_t name;        /* a hash of the tensor's */
    bool matrix;          /* decays whatever vectors do */
};

struct weft_nn_unit {
    void *parameters; /* of the compute dtype */
    enum weft_dtype dtype;
    void *master;   /* fp32; NULL: the parameters are fp32 themselves, or frozen */
    void *gradient; /* NULL: frozen */
    enum weft_dtype gradient_dtype;
    void *moment1, *moment2;         /* fp32; NULL where the optimizer has none */
    const struct weft_nn_piece *own; /* in this rank's slices: over all ranks, each element once */
    int64_t n_own;
    const struct weft_nn_piece *renew; /* that this rank updates */
    int64_t n_renew;
    /* Where updates are agreed on: WEFT_NN_TENSOR_WORDS of each tensor by place, as this rank
     * counts them, and summed over ranks. */
    void *norms, *norms_sum;
};
enum { WEFT_NN_TENSOR_WORDS = 2 * WEFT_NORM_PACKED_WORDS };

/* What an optimizer is, which a run does not change. */
struct weft_nn_rule {
    enum weft_optimizer_type type;
    bool exempt_vectors;
    float decay;
};

/* The scalars of a step, at a multiple of 16 bytes of the device's memory. */
struct weft_nn_step {
    uint32_t stop, unused; /* stop is not 0: nothing is updated. Written by looks and collectives */
    struct weft_adamw adamw; /* its decay is the rule's */
    struct weft_sgd sgd;
    double loss_scale; /* of the backward to come */
};

/* n numbers of the host, rounded to `dtype`. */
void weft_nn_load(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype, int64_t n,
                  const float *host, void *to);

/* n elements of a tensor from `first` on, each a function of (seed, tensor's name, element). */
struct weft_nn_initial {
    enum weft_init init;
    double std;
    uint64_t seed, name;
    int64_t first, n;
    void *to;
    enum weft_dtype dtype; /* that they are rounded to, and `to` is of */
};
void weft_nn_initialise(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_initial *initial);
/* Parameters from the master; nothing where there is none. */
void weft_nn_round(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit);

/* The optimizer's step with the gradients, unless step->stop; LAMB has two parts instead, between
 * which ranks add up the norms: those must be 0 before the first. */
void weft_nn_update(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit,
                    const struct weft_nn_rule *rule, const void *step);
void weft_nn_moments(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                     const void *step);
void weft_nn_apply(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit,
                   const struct weft_nn_rule *rule, const void *step);

/* Adds the squares of the unit's own gradient to bins [WEFT_NORM_WORDS]; the word at `bad` becomes
 * 1 if an element is not finite. */
void weft_nn_add_norm(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_unit *unit, void *bins, void *bad);

/* From the double at `loss`, to WEFT_NN_LOSS_WORDS words that were 0 (record.h). */
void weft_nn_record_loss(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                         void *words);

/* A look for what is not finite. */
struct weft_nn_numbers {
    const void *at;
    int64_t n;
    enum weft_dtype dtype;
};
struct weft_nn_look {
    const struct weft_nn_numbers *numbers;
    int32_t n_numbers;
    int64_t terms;    /* more than 1: as many ranks' numbers must add up to what is finite */
    const void *loss; /* a double that must be below WEFT_NN_LOSS_MOST; or NULL */
    int64_t place;    /* what a word at `first` becomes that is INT64_MAX, if a number is bad */
    void *first;
    void *stop; /* a uint32_t that becomes 1 then; or NULL */
};
void weft_nn_look(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_look *look);

/* Adds to two words the hashes of the unit's own parameters as fp32: of each element with its
 * place, so that the sum over ranks depends on no rank's share. */
void weft_nn_add_hash(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_unit *unit, void *sum);
/* Mixes a hash of so many bytes into a word. Which hash, is the back end's: ranks that compare have
 * the same one. */
void weft_nn_mix_hash(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                      int64_t bytes, void *word);

#endif
