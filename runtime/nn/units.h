/* SPDX-License-Identifier: Apache-2.0 */
/* Work on a rank's units: changes of parameters, gradients and state between layers' forward and
 * backward. Every function pushes work on a stream. Addresses (void *) are of device memory, and
 * only such work reads them. Other arguments, and data that they point to, are the host's. They
 * must stay unchanged until the stream has been synchronised. */
#ifndef WEFT_RUNTIME_NN_UNITS_H
#define WEFT_RUNTIME_NN_UNITS_H

#include "base/status.h"
#include "runtime/nn/optimizer.h"
#include "runtime/nn/record.h"

struct weft_nn;
struct weft_stream;

/* Consecutive elements of one tensor in a unit. */
struct weft_nn_piece {
    int64_t parameter_at; /* its first element in the parameters */
    int64_t state_at;     /* in master, gradient and moments */
    int64_t first, count; /* elements of the tensor */
    int32_t tensor;       /* index in the model */
    int32_t place;        /* index of the tensor in the unit; pieces are in this order */
    uint64_t name;        /* a hash of the tensor's name */
    bool matrix;          /* decays, even if vectors do not */
};

struct weft_nn_unit {
    void *parameters; /* of the compute dtype */
    enum weft_dtype dtype;
    void *master;   /* fp32; NULL: the parameters are fp32, or frozen */
    void *gradient; /* NULL: frozen */
    enum weft_dtype gradient_dtype;
    void *moment1, *moment2;         /* fp32; NULL if the optimizer has none */
    void *anchor, *outer;            /* fp32, of weft_nn_average; NULL: plain averages */
    const struct weft_nn_piece *own; /* in this rank's slices; over all ranks each element once */
    int64_t n_own;
    const struct weft_nn_piece *renew; /* updated by this rank */
    int64_t n_renew;
    /* For agreed updates: WEFT_NN_TENSOR_WORDS for each tensor by place, from this rank, and summed
     * over ranks. */
    void *norms, *norms_sum;
    const void *divisors; /* fp32, by tensor of the model; NULL: 1 */
};
enum { WEFT_NN_TENSOR_WORDS = 2 * WEFT_NORM_PACKED_WORDS };

/* An optimizer's constant settings. */
struct weft_nn_rule {
    enum weft_optimizer_type type;
    bool exempt_vectors;
    float decay;
};

/* The scalars of a step, in device memory at a multiple of 16 bytes. */
struct weft_nn_step {
    uint32_t stop, unused;   /* stop not 0: no update; set by looks and collectives */
    struct weft_adamw adamw; /* with the rule's decay */
    struct weft_sgd sgd;
    double loss_scale;    /* of the next backward: the factor of each row's loss in the gradient */
    double carried_scale; /* the same of the step before, for backwards that a period carries */
};

/* Loads n numbers of the host, rounded to `dtype`. */
void weft_nn_load(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype, int64_t n,
                  const float *host, void *to);

/* Initial values of n elements of a tensor from `first` on. Each is a function of (seed, tensor's
 * name, element). */
struct weft_nn_initial {
    enum weft_init init;
    double std;
    uint64_t seed, name;
    int64_t first, n;
    void *to;
    enum weft_dtype dtype; /* of `to`; values are rounded to it */
};
void weft_nn_initialise(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_initial *initial);
/* Rounds parameters from the master; does nothing without one. */
void weft_nn_round(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit);

/* A step of averages: x is the mean over nodes, a the anchor, m the momentum. With Nesterov's
 * momentum (Sutskever et al. 2013, in the form of PyTorch's SGD; DiLoCo, arXiv:2311.08105) it is
 *   d = a - x; m = momentum m + d; a -= lr (d + momentum m); x = a. */
struct weft_nn_outer {
    int32_t nodes;
    float momentum, lr;
};
/* Divides the unit's own fp32 parameters, which are sums over nodes, makes the step if the unit has
 * an anchor, and rounds parameters from the master. */
void weft_nn_average(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_unit *unit, const struct weft_nn_outer *outer);

/* The optimizer's step with the gradients, unless step->stop. LAMB has two parts instead, moments
 * and apply. Between them ranks add the norms, which must be 0 before the first part. */
void weft_nn_update(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit,
                    const struct weft_nn_rule *rule, const void *step);
void weft_nn_moments(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                     const void *step);
void weft_nn_apply(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit,
                   const struct weft_nn_rule *rule, const void *step);

/* Adds the squares of the unit's own gradient to bins [WEFT_NORM_WORDS]. Sets the word at `bad` to
 * 1 if an element is not finite. */
void weft_nn_add_norm(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_unit *unit, void *bins, void *bad);
/* The same, which also adds each tensor's squares, as WEFT_NORM_PACKED_WORDS, to words by tensor of
 * the model. GPUs do not have it. */
void weft_nn_add_squares(struct weft_nn *nn, struct weft_stream *stream,
                         const struct weft_nn_unit *unit, void *bins, void *bad, void *squares);

/* Converts the double at `loss` to WEFT_NN_LOSS_WORDS words (record.h), and adds those at `before`,
 * which may be `words`; NULL: none. */
void weft_nn_record_loss(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                         const void *before, void *words);

/* Numbers to search for infinities and NaNs. */
struct weft_nn_numbers {
    const void *at;
    int64_t n;
    enum weft_dtype dtype;
};
struct weft_nn_look {
    const struct weft_nn_numbers *numbers;
    int32_t n_numbers;
    int64_t terms;    /* if above 1, the sum of that many such numbers must be finite */
    const void *loss; /* a double that must be below WEFT_NN_LOSS_MOST; or NULL */
    int64_t place;    /* replaces INT64_MAX at `first` if a number is bad */
    void *first;
    void *stop; /* a uint32_t that is then set to 1; or NULL */
};
void weft_nn_look(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_look *look);

/* Adds hashes of the unit's own parameters, as fp32, to two words. A hash covers an element and its
 * place, so the sum over ranks does not depend on the division into slices. */
void weft_nn_add_hash(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_unit *unit, void *sum);
/* Mixes a hash of `bytes` bytes into a word. Back ends differ in the hash, and ranks that compare
 * use the same one. */
void weft_nn_mix_hash(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                      int64_t bytes, void *word);

#endif
