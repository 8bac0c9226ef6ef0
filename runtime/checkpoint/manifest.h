/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest describes a checkpoint and shows that it is complete: progress, settings, and sizes
 * and CRCs of the files. It is JSON, is written last, and ends with a CRC of its own text. A
 * directory without a valid manifest is no checkpoint. */
#ifndef WEFT_RUNTIME_CHECKPOINT_MANIFEST_H
#define WEFT_RUNTIME_CHECKPOINT_MANIFEST_H

#include <stdint.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/layout.h"
#include "spec/config.h"

#define WEFT_MANIFEST_NAME "manifest.json"
/* Version 1 has no function of the model. */
enum { WEFT_MANIFEST_VERSION = 2 };
enum { WEFT_MANIFEST_TYPE_BYTES = 32 };

/* The source of a run's first parameters, unless they were initial values. */
enum { WEFT_ORIGIN_PATH_BYTES = 1024 };
struct weft_origin {
    char path[WEFT_ORIGIN_PATH_BYTES]; /* "": initial values */
    struct weft_hash parameters;       /* fingerprint of all parameters before step 1 */
};

/* Progress of training: everything a step depends on besides tensors and config. */
struct weft_progress {
    int64_t step;                /* last step with gradients that were applied or skipped */
    int64_t updates;             /* the optimizer's count: steps that were not skipped */
    int64_t tokens;              /* read so far by all ranks */
    int64_t samples;             /* the same: position in the data */
    double loss_scale;           /* 1 without loss scaling */
    int64_t good_steps;          /* since the last change of the loss scale */
    int64_t moments_began;       /* step after which all moments were 0: the optimizer changed */
    struct weft_hash data;       /* of the training data */
    struct weft_hash parameters; /* fingerprint of all parameters; zero: not known */
};

/* The manifest of the checkpoint before this one in the same directory. So each manifest vouches
 * for all before it. */
struct weft_manifest_link {
    int64_t step; /* 0: none */
    struct weft_hash text;
};

struct weft_manifest_file {
    const char *name;
    int64_t bytes;
    int64_t chunk_bytes, n_chunks;
    uint32_t *crcs; /* [n_chunks] */
};

/* The split of a step's batch: ranks x micro-batch x micro-steps, reduced in rounds of `group`
 * micro-steps. Groups of micro-batches decide how sums round. All zero: not known. */
struct weft_manifest_split {
    int64_t micro_batch, micro_steps, group;
    int64_t layers; /* that micro-steps took turns by; 0: one after the other. Terms of a tied
                       tensor then have another order */
    int64_t ranks;  /* 0: not known */
    int64_t idle;   /* of them, without a group in the last round */
    int64_t bundle; /* ranks that are summed first: those of a node, if there are several; or 1 */
};

struct weft_manifest {
    struct weft_pool pool;
    struct weft_manifest_split split;
    struct weft_progress progress;
    const char *function;   /* of the model (function.h); NULL in version 1 */
    struct weft_hash model; /* of that text; in version 1 of tensors' names and shapes */
    struct weft_origin origin;
    struct weft_manifest_link previous;
    const char *settings; /* from weft_manifest_settings, of the run that saved it */
    const char *device;   /* that computed; NULL: "cpu" */
    const char *kernels;  /* library that computed: each gives its own bits */
    const char *products; /* algorithms of products (weft_nn_choices); NULL: no choice */
    const char *bits;     /* all that its bits depend on (runtime/train/bits.h); NULL: not known */
    int32_t n_files;
    struct weft_manifest_file files[WEFT_CHECKPOINT_FILES];
};

/* The settings that a step depends on (optimizer, schedule, seed, clipping, precision) as one JSON
 * object, like in the config. Owned by the pool. */
WEFT_MUST_USE enum weft_status weft_manifest_settings(const struct weft_config *config,
                                                      struct weft_pool *pool, const char **out,
                                                      struct weft_error *err);
/* The optimizer's type in these settings; "" if there is none. */
void weft_manifest_optimizer(const char *settings, char type[WEFT_MANIFEST_TYPE_BYTES]);
/* Whether a path into the train section ("optimizer.lr") leads into these settings. */
bool weft_manifest_compares(const char *path);
/* Appends one line for each setting that differs, like "optimizer.lr: 0.0006, was 0.001". Returns
 * their number. */
int32_t weft_manifest_compare(const char *settings, const char *before, struct weft_text *out);

extern const struct weft_key_table weft_origin_keys, weft_manifest_keys;

/* Hash of the text of the manifest of DIRECTORY/step-N. *out is untouched if it cannot be read. */
void weft_checkpoint_link(const char *directory, int64_t step, struct weft_manifest_link *out);

void weft_manifest_write(const struct weft_manifest *manifest, struct weft_text *out);
/* Checks the text's CRC first, then format, version and every value. WEFT_E_DATA naming `path`. */
WEFT_MUST_USE enum weft_status weft_manifest_parse(const char *bytes, size_t length,
                                                   const char *path, struct weft_manifest **out,
                                                   struct weft_error *err);
void weft_manifest_destroy(struct weft_manifest *manifest);

#endif
