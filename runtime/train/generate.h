/* SPDX-License-Identifier: Apache-2.0 */
/* Generation continues a sequence of tokens with a trained language model: forward alone, in f32,
 * in one process. A token is a function of the parameters, the tokens before it, the seed and its
 * place. The last bits of its probability also depend on the number of rows computed with it. */
#ifndef WEFT_RUNTIME_TRAIN_GENERATE_H
#define WEFT_RUNTIME_TRAIN_GENERATE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/nn/nn.h"
#include "runtime/train/sample.h"
#include "spec/config.h"

struct weft_generator;

/* Reads and verifies all parameters of the checkpoint at `path`. Uses the library that computed it,
 * if this build has it. WEFT_E_DATA if it is damaged, of another model, or no language model.
 * `config` must outlive the generator. */
WEFT_MUST_USE enum weft_status weft_generator_create(const struct weft_config *config,
                                                     const char *path, int32_t threads,
                                                     struct weft_generator **out,
                                                     struct weft_error *err);
void weft_generator_destroy(struct weft_generator *generator);

/* The checkpoint's step. */
int64_t weft_generator_step(const struct weft_generator *generator);

/* Disables caches: from now on every token is computed from all tokens before it. For
 * comparisons. */
void weft_generator_forget(struct weft_generator *generator);

/* Rows of logits that a sequence of n tokens has: one a token, of the last train.seq_len. */
int64_t weft_generator_rows(const struct weft_generator *generator, int64_t n);
/* Writes the logits of n > 0 tokens to `out` [weft_generator_rows, vocab]: row i is for the token
 * after token i. All rows run at once, without caches. WEFT_E_DATA for a token outside the
 * vocabulary. */
WEFT_MUST_USE enum weft_status weft_generator_logits(struct weft_generator *generator,
                                                     const int32_t *tokens, int64_t n, float *out,
                                                     struct weft_error *err);

/* Gives the token after n > 0 tokens. Keys and values of earlier calls' tokens are kept, so an
 * added token costs one row instead of a sequence. That holds up to train.seq_len tokens; only the
 * last train.seq_len of a longer text count. WEFT_E_DATA for a token outside the vocabulary,
 * WEFT_E_NUMERIC if the model's numbers are not finite. */
WEFT_MUST_USE enum weft_status weft_generator_next(struct weft_generator *generator,
                                                   const int32_t *tokens, int64_t n,
                                                   const struct weft_sampling *sampling,
                                                   int32_t *next, struct weft_error *err);

/* The first layer with attention to later tokens, which predicts no next token; or NULL. */
const struct weft_layer *weft_generate_sees_later(const struct weft_model *model);
/* WEFT_E_DATA if the model is no language model: it must begin with an embedding, end with an
 * lm_head, and predict a next token. */
WEFT_MUST_USE enum weft_status weft_generate_check_model(const struct weft_model *model,
                                                         struct weft_error *err);

#endif
