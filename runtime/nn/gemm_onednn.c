/* The only file that includes oneDNN. dnnl_sgemm is used rather than the matmul primitive: it is
 * as fast on the layers' shapes, needs no objects for each shape, and is part of both the v2 and
 * the v3 API. */
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/nn/gemm.h"

#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
/* Declared here because omp.h is the compiler's, and clang's is not always installed. */
void omp_set_num_threads(int threads);
#else
static void omp_set_num_threads(int threads)
{
    (void)threads;
}
#endif

struct state {
    int32_t threads;
};

static enum weft_status open_state(int32_t threads, void **out, struct weft_error *err)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state) return weft_fail_memory(err, "oneDNN");
    state->threads = threads;
    *out = state;
    return WEFT_OK;
}

static void close_state(void *state)
{
    free(state);
}

static void version(const void *state, char *text, size_t bytes)
{
    (void)state;
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, bytes, "%d.%d.%d", v->major, v->minor, v->patch);
}

static enum weft_status run(const void *state, const struct weft_product *p, struct weft_error *err)
{
    /* OpenMP keeps the number for each calling thread, so it is set where it is used. */
    omp_set_num_threads(((const struct state *)state)->threads);
    const dnnl_status_t failed = dnnl_sgemm(
        p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', p->m, p->n, p->k, p->alpha, p->a,
        p->a_stride, p->b, p->b_stride, p->accumulate ? 1.0f : 0.0f, p->c, p->c_stride);
    if (failed == dnnl_success) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_SYSTEM, "oneDNN could not multiply [%lld, %lld] by [%lld, %lld] (status %d)",
        (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n, (int)failed);
}

const struct weft_gemm_library weft_gemm_onednn = {"onednn",    "oneDNN", open_state,
                                                   close_state, version,  run};
