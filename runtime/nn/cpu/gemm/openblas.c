/* OpenBLAS is loaded on demand and not linked. Its constructor starts threads and takes buffers in
 * every process that links it. */
#include <cblas.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/nn/cpu/gemm/multiplier.h"

typedef void sgemm_fn(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transpose_a,
                      enum CBLAS_TRANSPOSE transpose_b, blasint m, blasint n, blasint k,
                      float alpha, const float *a, blasint a_stride, const float *b,
                      blasint b_stride, float beta, float *c, blasint c_stride);
typedef void set_threads_fn(int threads);
typedef char *get_text_fn(void);

struct state {
    void *library;
    sgemm_fn *sgemm;
    get_text_fn *config;
    get_text_fn *core_name;
};

/* memcpy converts object to function pointers: POSIX allows that, C forbids a cast. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static void close_state(void *opaque)
{
    struct state *state = opaque;
    if (!state) return;
    if (state->library) dlclose(state->library);
    free(state);
}

static enum weft_status open_state(int32_t threads, enum weft_dtype dtype, void **out,
                                   struct weft_error *err)
{
    (void)dtype;
    static const char file[] = "libopenblas.so.0";
    struct state *state = calloc(1, sizeof(*state));
    if (!state) return weft_fail_memory(err, "OpenBLAS");
    state->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    set_threads_fn *set_threads = NULL;
    if (!state->library || !find(state->library, "cblas_sgemm", &state->sgemm) ||
        !find(state->library, "openblas_get_config", &state->config) ||
        !find(state->library, "openblas_get_corename", &state->core_name) ||
        !find(state->library, "openblas_set_num_threads", &set_threads)) {
        const char *reason = dlerror();
        close_state(state);
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "cannot load OpenBLAS: %s (Debian: libopenblas0-pthread)",
                         reason ? reason : file);
    }
    set_threads(threads);
    *out = state;
    return WEFT_OK;
}

/* Writes "0.3.21 Haswell" from "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...". The core type
 * explains its rate. */
static void version(const void *opaque, char *text, size_t bytes)
{
    const struct state *state = opaque;
    char number[32] = "";
    if (sscanf(state->config(), "OpenBLAS %31s", number) != 1) number[0] = '\0';
    snprintf(text, bytes, "%s %s", number, state->core_name());
}

static bool fits(int64_t value)
{
    return value == (int64_t)(blasint)value;
}

static enum weft_status run(void *opaque, const struct weft_multiplier_link *next,
                            const struct weft_product *p, struct weft_error *err)
{
    (void)next;
    const struct state *state = opaque;
    if (!fits(p->m) || !fits(p->n) || !fits(p->k) || !fits(p->a_stride) || !fits(p->b_stride) ||
        !fits(p->c_stride)) {
        return weft_fail(err, WEFT_E_SYSTEM,
                         "a product of [%lld, %lld] by [%lld, %lld] exceeds OpenBLAS's integers; "
                         "use \"onednn\" or a smaller batch",
                         (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n);
    }
    state->sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans,
                 p->transpose_b ? CblasTrans : CblasNoTrans, (blasint)p->m, (blasint)p->n,
                 (blasint)p->k, p->alpha, p->a, (blasint)p->a_stride, p->b, (blasint)p->b_stride,
                 p->accumulate ? 1.0f : 0.0f, p->c, (blasint)p->c_stride);
    return WEFT_OK;
}

static bool covers(const void *opaque, const struct weft_product *product)
{
    (void)opaque;
    return product->dtype == WEFT_F32;
}

const struct weft_multiplier weft_multiplier_openblas = {
    .name = "openblas",
    .title = "OpenBLAS",
    .dtypes = WEFT_EVERY_DTYPE,
    .open = open_state,
    .close = close_state,
    .version = version,
    .covers = covers,
    .run = run,
};
