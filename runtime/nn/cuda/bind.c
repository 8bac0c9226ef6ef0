/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/text.h"
#include "runtime/nn/cuda/cuda.h"

/* Creation and destruction */

static int allocate_words(struct weft_nn_cuda *cuda)
{
    void *found = NULL;
    const int code = cuda->machine->share(WEFT_CUDA_CHECKS * (int64_t)sizeof(uint32_t), &found);
    if (code != 0) return code;
    cuda->found = found;
    memset(cuda->found, 0xff, WEFT_CUDA_CHECKS * sizeof(uint32_t));
    return cuda->machine->allocate(WEFT_CUDA_NORM_BYTES, &cuda->norm);
}

/* Opens the library. "auto" goes on without one that cannot be opened, and *unopened has the
 * reason. */
static enum weft_status open_library(struct weft_nn_cuda *cuda, const char *gemm,
                                     struct weft_error *unopened, struct weft_error *err)
{
    const bool wanted = cuda->ops != NULL && strcmp(gemm, cuda->ops->name) == 0;
    if (cuda->ops == NULL || (!wanted && strcmp(gemm, "auto") != 0)) return WEFT_OK;
    if (wanted) return cuda->ops->open(&cuda->library, err);
    const enum weft_status status = cuda->ops->open(&cuda->library, unopened);
    (void)status;
    return WEFT_OK;
}

static void describe_products(struct weft_nn_cuda *cuda, const struct weft_error *unopened)
{
    const bool failed = unopened->status != WEFT_OK;
    snprintf(cuda->description, sizeof cuda->description, "%s kernels of a GPU (%s)%s%.300s%.300s",
             cuda->plain ? "plain" : "own", cuda->machine->name,
             cuda->library != NULL ? "; products by "
             : failed              ? "; products too, for "
                                   : "",
             cuda->library != NULL ? cuda->ops->title(cuda->library) : "",
             failed ? unopened->text : "");
    cuda->described = strlen(cuda->description);
}

static bool is_known(const struct weft_cuda_machine *machine, const char *gemm)
{
    static const char *const names[] = {"auto", "own", "plain"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], gemm) == 0) return true;
    }
    return machine->library != NULL && strcmp(machine->library->name, gemm) == 0;
}

enum weft_status weft_nn_cuda_open(const struct weft_nn_backend *backend,
                                   const struct weft_cuda_machine *machine,
                                   const struct weft_nn_options *options, struct weft_nn **out,
                                   struct weft_error *err)
{
    if (!is_known(machine, options->gemm)) {
        return weft_fail(err, WEFT_E_USAGE,
                         "there is no way \"%s\" to multiply on a GPU; there are \"auto\", "
                         "\"own\", \"plain\"%s%s",
                         options->gemm, machine->library != NULL ? ", " : "",
                         machine->library != NULL ? machine->library->name : "");
    }
    struct weft_error unopened = {0}, unattending = {0};
    struct weft_nn_cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) return weft_fail_memory(err, "the GPU's layer kernels");
    cuda->base.backend = backend;
    cuda->machine = machine;
    cuda->ops = machine->library;
    cuda->plain = strcmp(options->gemm, "plain") == 0;
    enum weft_status status =
        weft_nn_cuda_status(cuda, allocate_words(cuda), "words of the GPU", err);
    if (status == WEFT_OK) status = open_library(cuda, options->gemm, &unopened, err);
    if (status == WEFT_OK)
        status = weft_cuda_attention_open(cuda, options->attention, &unattending, err);
    if (status != WEFT_OK) {
        weft_nn_cuda_close(&cuda->base);
        return status;
    }
    describe_products(cuda, &unopened);
    weft_cuda_attention_describe(cuda, &unattending);
    *out = &cuda->base;
    return WEFT_OK;
}

void weft_nn_cuda_close(struct weft_nn *nn)
{
    struct weft_nn_cuda *cuda = weft_nn_cuda_of(nn);
    for (int32_t i = 0; i < cuda->n_outgrown; i++) {
        cuda->machine->release(cuda->outgrown[i]);
    }
    if (cuda->workspace != NULL) cuda->machine->release(cuda->workspace);
    if (cuda->norm != NULL) cuda->machine->release(cuda->norm);
    if (cuda->found != NULL) cuda->machine->unshare(cuda->found);
    if (cuda->library != NULL) cuda->ops->close(cuda->library);
    weft_cuda_attention_close(cuda);
    free(cuda->choices);
    free(cuda->proved);
    free(cuda->choices_text);
    free(cuda->outgrown);
    free(cuda);
}

const char *weft_nn_cuda_describe(const struct weft_nn *nn)
{
    return ((const struct weft_nn_cuda *)(const void *)nn)->description;
}

const char *weft_nn_cuda_gemm_name(const struct weft_nn *nn)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    if (cuda->library != NULL) return cuda->ops->name;
    return cuda->plain ? "plain" : "own";
}

/* Choices of products and attention are in weft_nn_choices. */
void weft_nn_cuda_add_bits(const struct weft_nn *nn, struct weft_text *out)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    weft_text_addf(out, "products: %s", weft_nn_cuda_gemm_name(nn));
    if (cuda->library != NULL) weft_text_addf(out, ", %s", cuda->ops->title(cuda->library));
}

enum weft_status weft_nn_cuda_status(const struct weft_nn_cuda *cuda, int code, const char *what,
                                     struct weft_error *err)
{
    if (code == 0) return WEFT_OK;
    if (code == WEFT_CUDA_NOT_BOUND)
        return weft_fail(err, WEFT_E_INTERNAL, "%s: a product that nobody has chosen a way for",
                         what);
    if (code <= WEFT_CUDA_ATTENDING && cuda->attending != NULL)
        return weft_fail(err, WEFT_E_SYSTEM, "%s: %s cannot: %s (%d)", what,
                         cuda->machine->attending->title(cuda->attending),
                         cuda->machine->attending->explain(cuda->attending),
                         WEFT_CUDA_ATTENDING - code);
    if (code < 0)
        return weft_fail(err, WEFT_E_SYSTEM, "%s: %s cannot: %s (%d)", what,
                         cuda->ops->title(cuda->library), cuda->ops->explain(cuda->library, code),
                         -code);
    return weft_fail(err, WEFT_E_SYSTEM, "%s: the GPU cannot: %s (CUDA's error %d)", what,
                     cuda->machine->explain(code), code);
}

/* Workspace */

static enum weft_status keep_outgrown(struct weft_nn_cuda *cuda, struct weft_error *err)
{
    if (cuda->workspace == NULL) return WEFT_OK;
    void **all = realloc(cuda->outgrown, ((size_t)cuda->n_outgrown + 1) * sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "a list of workspaces");
    cuda->outgrown = all;
    all[cuda->n_outgrown++] = cuda->workspace;
    cuda->workspace = NULL;
    cuda->workspace_bytes = 0;
    return WEFT_OK;
}

enum weft_status weft_nn_cuda_reserve(struct weft_nn_cuda *cuda, int64_t bytes,
                                      struct weft_error *err)
{
    void *grown = NULL;
    if (bytes <= cuda->workspace_bytes) return WEFT_OK;
    WEFT_TRY(keep_outgrown(cuda, err));
    WEFT_TRY(weft_nn_cuda_status(cuda, cuda->machine->allocate(bytes, &grown), "a workspace", err));
    cuda->workspace = grown;
    cuda->workspace_bytes = bytes;
    return WEFT_OK;
}

int64_t weft_nn_cuda_unit_needs(const struct weft_nn *nn)
{
    (void)nn;
    return WEFT_CUDA_UNIT_BYTES;
}

/* Received slices: weft_cuda_sum_ranks adds them in rank order once all are there. A rank's own
 * slice is read in place. */
int64_t weft_nn_cuda_receive_needs(int32_t ranks, int64_t slice_bytes)
{
    return (ranks - 1) * slice_bytes;
}
