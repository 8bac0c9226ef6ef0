/* A manifest says what a checkpoint is and that it is whole: where training stood, with what
 * settings, and sizes and CRCs of the files. It is the last file to be written, in JSON, and ends
 * with a CRC of its own text. A directory without a valid one is no checkpoint. */
#ifndef WEFT_RUNTIME_CHECKPOINT_MANIFEST_H
#define WEFT_RUNTIME_CHECKPOINT_MANIFEST_H

#include <stdint.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/layout.h"
#include "spec/config.h"

#define WEFT_MANIFEST_NAME "manifest.json"
/* 1: without the model's function. */
enum { WEFT_MANIFEST_VERSION = 2 };
enum { WEFT_MANIFEST_TYPE_BYTES = 32 };

/* The file or checkpoint with a run's first parameters, if it did not begin with initial values. */
enum { WEFT_ORIGIN_PATH_BYTES = 1024 };
struct weft_origin {
    char path[WEFT_ORIGIN_PATH_BYTES]; /* "": initial values */
    struct weft_hash parameters;       /* fingerprint of all parameters before the first step */
};

/* Where training stood: all that a step depends on beside tensors and config. */
struct weft_progress {
    int64_t step;          /* the last one whose gradients are in the parameters, or were skipped */
    int64_t updates;       /* the optimizer's own count: steps that were not skipped */
    int64_t tokens;        /* read so far, by all ranks */
    int64_t samples;       /* likewise: the position in the data */
    double loss_scale;     /* 1 where gradients are not scaled */
    int64_t good_steps;    /* since the loss scale was last changed */
    int64_t moments_began; /* step after which all moments were 0: another optimizer took over */
    struct weft_hash data; /* of the training data */
};

struct weft_manifest_file {
    const char *name;
    int64_t bytes;
    int64_t chunk_bytes, n_chunks;
    uint32_t *crcs; /* [n_chunks] */
};

struct weft_manifest {
    struct weft_pool pool;
    struct weft_progress progress;
    const char *function;   /* of the model (function.h); NULL: of version 1, which has none */
    struct weft_hash model; /* of that text; in version 1 of names and shapes of the tensors */
    struct weft_origin origin;
    const char *settings; /* weft_manifest_settings of the run that saved it */
    const char *device;   /* that computed; NULL: "cpu" */
    const char *kernels;  /* library that computed: other ones give other bits */
    const char *products; /* how, where it has several ways (weft_nn_choices); NULL: it has one */
    int32_t n_files;
    struct weft_manifest_file files[WEFT_CHECKPOINT_FILES];
};

/* The settings of a config that a step depends on (optimizer, schedule, seed, clipping, precision),
 * as one JSON object in the config's own form. Owned by the pool. */
WEFT_MUST_USE enum weft_status weft_manifest_settings(const struct weft_config *config,
                                                      struct weft_pool *pool, const char **out,
                                                      struct weft_error *err);
/* The optimizer's type of these settings, "" where they have none. */
void weft_manifest_optimizer(const char *settings, char type[WEFT_MANIFEST_TYPE_BYTES]);
/* True of a path into the train section ("optimizer.lr") that leads into these settings. */
bool weft_manifest_compares(const char *path);
/* Appends one line for each setting in which the two differ ("optimizer.lr: 0.0006, was 0.001");
 * returns how many there are. */
int32_t weft_manifest_compare(const char *settings, const char *before, struct weft_text *out);

/* Adds the origin's object. */
void weft_origin_write(const struct weft_origin *origin, struct weft_json_writer *writer);

void weft_manifest_write(const struct weft_manifest *manifest, struct weft_text *out);
/* Checks its own CRC first, then format, version and every value. WEFT_E_DATA naming `path`. */
WEFT_MUST_USE enum weft_status weft_manifest_parse(const char *bytes, size_t length,
                                                   const char *path, struct weft_manifest **out,
                                                   struct weft_error *err);
void weft_manifest_destroy(struct weft_manifest *manifest);

#endif
