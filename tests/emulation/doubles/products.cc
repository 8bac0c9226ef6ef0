/* SPDX-License-Identifier: Apache-2.0 */
/* Every check of cuBLASLt's double finds its planted mistake with all others off. Without the
 * mistake nothing is found, and products are right. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "tests/emulation/doubles/findings.h"

enum { M = 16, N = 24, K = 40, ROOM = 4096, WORKSPACE = 1 << 20, ALIGNMENT = 16 };

/* In row order d [n, m] is a [n, k] by b [k, m]; as column-major matrices the order is b, a. */
struct use {
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS, schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint64_t flags =
        CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
    bool bias = true, forgets_algorithm = false, of_other = false;
    int64_t aux_ld = M, ld = M, k_of_a = K;
    int shift = 0, favourite = 0; /* elements by which d starts later; the algorithm */
    size_t workspace_bytes = WORKSPACE;
};

static cudaStream_t stream;
static float *matrices; /* b, a, d, aux and bias, ROOM elements each */
static void *workspace;
static cublasLtHandle_t handle;

static float *matrix(int i)
{
    return matrices + (size_t)i * ROOM;
}

static void set(cublasLtMatmulDesc_t what, cublasLtMatmulDescAttributes_t name, const void *value,
                size_t bytes)
{
    (void)cublasLtMatmulDescSetAttribute(what, name, value, bytes);
}

static void describe(const struct use &use, uint32_t epilogue, cublasLtMatmulDescOpaque_t *what)
{
    const void *bias = matrix(4), *aux = matrix(3);
    (void)cublasLtMatmulDescInit_internal(what, sizeof(*what), use.compute, CUDA_R_32F);
    set(what, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
    if (use.bias) set(what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
    set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof(aux));
    set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &use.aux_ld, sizeof(use.aux_ld));
}

static void prefer(const struct use &use, cublasLtMatmulPreferenceOpaque_t *out)
{
    const uint64_t bytes = WORKSPACE;
    const uint32_t alignment = ALIGNMENT;
    (void)cublasLtMatmulPreferenceInit_internal(out, sizeof(*out));
    (void)cublasLtMatmulPreferenceSetAttribute(out, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &bytes, sizeof(bytes));
    (void)cublasLtMatmulPreferenceSetAttribute(out, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                               &use.schemes, sizeof(use.schemes));
    (void)cublasLtMatmulPreferenceSetAttribute(out, CUBLASLT_MATMUL_PREF_IMPL_MASK, &use.flags,
                                               sizeof(use.flags));
    (void)cublasLtMatmulPreferenceSetAttribute(out, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                               &alignment, sizeof(alignment));
}

static cublasStatus_t multiply(const struct use &use)
{
    cublasLtMatmulDescOpaque_t what, other;
    cublasLtMatrixLayoutOpaque_t b, a, d;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t results[4];
    const float alpha = 1, beta = 0;
    int found = 0;
    describe(use, use.epilogue, &what);
    describe(use, use.epilogue ^ CUBLASLT_EPILOGUE_GELU_AUX, &other);
    (void)cublasLtMatrixLayoutInit_internal(&b, sizeof(b), CUDA_R_32F, M, K, use.ld);
    (void)cublasLtMatrixLayoutInit_internal(&a, sizeof(a), CUDA_R_32F, (uint64_t)use.k_of_a, N, K);
    (void)cublasLtMatrixLayoutInit_internal(&d, sizeof(d), CUDA_R_32F, M, N, M);
    prefer(use, &preference);
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, use.of_other ? &other : &what, &b, &a, &d, &d, &preference, 4, results, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found < 4) return CUBLAS_STATUS_NOT_SUPPORTED;
    float *to = matrix(2) + use.shift;
    return cublasLtMatmul(handle, &what, &alpha, matrix(0), &b, matrix(1), &a, &beta, to, &d, to,
                          &d, use.forgets_algorithm ? NULL : &results[use.favourite].algo,
                          workspace, use.workspace_bytes, stream);
}

static void await(void)
{
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        usleep(100);
    }
}

static const struct planted {
    const char *name;
    enum double_check check;
    void (*make)(struct use *use);
} planted[] = {
    {"an operand begins 4 bytes later", DOUBLE_MISALIGNED, [](struct use *u) { u->shift = 1; }},
    {"the workspace is too small", DOUBLE_WORKSPACE,
     [](struct use *u) {
         u->favourite = 1;
         u->workspace_bytes = 64;
     }},
    {"the bias is not given", DOUBLE_EPILOGUE, [](struct use *u) { u->bias = false; }},
    {"the stride of GELU's matrix is odd", DOUBLE_EPILOGUE,
     [](struct use *u) {
         u->epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
         u->aux_ld = M + 1;
     }},
    {"the epilogue is no epilogue", DOUBLE_EPILOGUE,
     [](struct use *u) { u->epilogue = CUBLASLT_EPILOGUE_RELU_BIAS; }},
    {"columns overlap", DOUBLE_LAYOUT, [](struct use *u) { u->ld = M - 1; }},
    {"matrices have two k", DOUBLE_LAYOUT, [](struct use *u) { u->k_of_a = K - 8; }},
    {"the compute type is TF32", DOUBLE_TF32,
     [](struct use *u) { u->compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
    {"any way to compute is preferred", DOUBLE_TF32, [](struct use *u) { u->flags = ~0ULL; }},
    {"no algorithm is given", DOUBLE_ALGORITHM, [](struct use *u) { u->forgets_algorithm = true; }},
    {"the algorithm is another epilogue's", DOUBLE_ALGORITHM,
     [](struct use *u) { u->of_other = true; }},
    {"any order of sums is preferred", DOUBLE_ATOMIC,
     [](struct use *u) { u->schemes = CUBLASLT_REDUCTION_SCHEME_MASK; }},
};
enum { N_PLANTED = sizeof(planted) / sizeof(planted[0]) };

static int count_findings(enum double_check check, bool *others)
{
    int count = 0;
    char text[512];
    for (int i = 0; i < DOUBLE_CHECK_COUNT; i++) {
        const int found = weft_double_take((enum double_check)i, text, sizeof(text));
        if (found > 0) printf("# %s: %s\n", weft_double_check_name((enum double_check)i), text);
        if (i == check) count = found;
        *others = *others || (i != check && found > 0);
    }
    return count;
}

static bool is_right(void)
{
    bool right = true;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++) {
            double sum = (double)matrix(4)[j];
            for (int l = 0; l < K; l++) {
                sum += (double)matrix(1)[i * K + l] * (double)matrix(0)[l * M + j];
            }
            right = right && fabs(sum - (double)matrix(2)[i * M + j]) < 1e-4;
        }
    }
    return right;
}

static int tell(bool good, int n, const char *what)
{
    printf("%sok %d - %s\n", good ? "" : "not ", n, what);
    return good ? 0 : 1;
}

int main(void)
{
    int n = 0, failed = 0;
    bool others = false, found[DOUBLE_CHECK_COUNT] = {};
    (void)cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
    (void)cudaHostAlloc((void **)&matrices, 5 * ROOM * sizeof(float), 0);
    (void)cudaMalloc(&workspace, WORKSPACE);
    (void)cublasLtCreate(&handle);
    for (int i = 0; i < 5 * ROOM; i++) {
        matrices[i] = (float)(i * 37 % 101 - 50) / 64;
    }
    for (int favourite = 0; favourite < 4; favourite++) {
        struct use use;
        use.favourite = favourite;
        const bool good = multiply(use) == CUBLAS_STATUS_SUCCESS;
        await();
        failed +=
            tell(good && is_right() && count_findings(DOUBLE_CHECK_COUNT, &others) == 0 && !others,
                 ++n, "a product of any algorithm is right, and nothing is found");
    }
    for (const struct planted &p : planted) {
        struct use use;
        p.make(&use);
        weft_double_enable(1u << p.check);
        (void)multiply(use);
        await();
        const bool good = count_findings(p.check, &others) > 0;
        failed += tell(good, ++n, p.name);
        found[p.check] = found[p.check] || good;
    }
    for (int i = DOUBLE_OF_CUBLASLT; i < DOUBLE_CHECK_COUNT; i++) {
        failed += tell(found[i], ++n, weft_double_check_name((enum double_check)i));
    }
    weft_double_enable(UINT32_MAX);
    (void)cublasLtDestroy(handle);
    (void)cudaFree(workspace);
    (void)cudaFreeHost(matrices);
    (void)cudaStreamDestroy(stream);
    printf("1..%d\n", n);
    return failed > 0;
}
