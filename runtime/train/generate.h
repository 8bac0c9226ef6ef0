/* To generate is to continue a sequence of tokens with a trained language model: forward alone, in
 * f32, in one process. The token at a place is a function of the parameters, the tokens before it,
 * the seed and the place; and, in the last bits of its probability, of how many rows were computed
 * with it. */
#ifndef WEFT_RUNTIME_TRAIN_GENERATE_H
#define WEFT_RUNTIME_TRAIN_GENERATE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/nn/nn.h"
#include "runtime/train/sample.h"
#include "spec/config.h"

struct weft_generator;

/* Reads the parameters of the checkpoint at `path`, all of them verified, and takes the library
 * that computed it where this build has it. WEFT_E_DATA when it is damaged, of another model, or
 * when the model is not one of language: it must begin with an embedding and end with an lm_head.
 * `config` outlives the generator. */
WEFT_MUST_USE enum weft_status weft_generator_create(const struct weft_config *config,
                                                     const char *path, int32_t threads,
                                                     struct weft_generator **out,
                                                     struct weft_error *err);
void weft_generator_destroy(struct weft_generator *generator);

/* The step of the checkpoint. */
int64_t weft_generator_step(const struct weft_generator *generator);

/* From now on every token is computed from all before it, and nothing is kept of them: for who
 * compares. */
void weft_generator_forget(struct weft_generator *generator);

/* The token behind n > 0 tokens. What attention needs of those that a call before was given too is
 * kept, so that a token that is added costs a row and not a sequence, up to train.seq_len of them;
 * of a longer text the last train.seq_len count. WEFT_E_DATA for a token that is not in the
 * vocabulary, and WEFT_E_NUMERIC when the model's numbers are not finite. */
WEFT_MUST_USE enum weft_status weft_generator_next(struct weft_generator *generator,
                                                   const int32_t *tokens, int64_t n,
                                                   const struct weft_sampling *sampling,
                                                   int32_t *next, struct weft_error *err);

#endif
