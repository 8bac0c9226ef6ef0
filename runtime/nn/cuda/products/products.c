/* SPDX-License-Identifier: Apache-2.0 */
/* Products by cuBLASLt. Only this file knows its header. The library is optional and opened on
 * demand. Sums are fp32 of the operands as they are: no TF32, and no split of k except into fp32
 * parts added in a fixed order. So bits repeat for one algorithm, version and kind of GPU. */
#include "runtime/nn/cuda/products/libraries.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/gpu.h"

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)
static const char file_name[] = "libcublasLt.so." TEXT_OF(CUBLAS_VER_MAJOR);

enum { SMALL_WORKSPACE = 4 << 20, LARGE_WORKSPACE = 32 << 20, LARGE_FROM = 9, VERSIONS = 10000 };
enum { AUX_STRIDE = 8 }; /* divides an epilogue's second stride */

#define FUNCTIONS(X)                                                                               \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusName)                                                                       \
    X(cublasLtMatmulDescInit_internal)                                                             \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutInit_internal)                                                           \
    X(cublasLtMatmulPreferenceInit_internal)                                                       \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulAlgoCheck)                                                                     \
    X(cublasLtMatmulAlgoCapGetAttribute)                                                           \
    X(cublasLtMatmulAlgoConfigGetAttribute)                                                        \
    X(cublasLtMatmul)

struct weft_cuda_library {
    void *file;
    cublasLtHandle_t handle; /* NULL: not made */
    cudaStream_t stream;     /* of trials; NULL: not made */
    float *factors;          /* 0 and 1, readable by the GPU; NULL: not made */
    int64_t workspace_bytes;
    char title[320];
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

_Static_assert(sizeof(struct weft_cuda_algorithm) == sizeof(cublasLtMatmulAlgo_t),
               "an algorithm is cuBLASLt's");

static int code_of(cublasStatus_t status)
{
    return -(int)status;
}

static const char *products_explain(const struct weft_cuda_library *library, int code)
{
    return library->cublasLtGetStatusName((cublasStatus_t)-code);
}

/* Creation and destruction */

static void products_close(struct weft_cuda_library *library)
{
    if (library == NULL) return;
    if (library->handle != NULL) library->cublasLtDestroy(library->handle);
    if (library->stream != NULL) cudaStreamDestroy(library->stream);
    if (library->factors != NULL) cudaFreeHost(library->factors);
    if (library->file != NULL) dlclose(library->file);
    free(library);
}

static enum weft_status find_functions(struct weft_cuda_library *library, struct weft_error *err)
{
    library->file = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
    if (library->file == NULL) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s cannot be opened: %s. Install cuBLAS of CUDA %d (docs/gpu.md), or "
                         "multiply by WEFT_GEMM=own",
                         file_name, dlerror(), CUBLAS_VER_MAJOR);
    }
#define FIND(name)                                                                                 \
    {                                                                                              \
        void *address = dlsym(library->file, #name);                                               \
        if (address == NULL) {                                                                     \
            return weft_fail(err, WEFT_E_ENVIRONMENT, "%s has no %s: it is not that of CUDA %d",   \
                             file_name, #name, CUBLAS_VER_MAJOR);                                  \
        }                                                                                          \
        memcpy((void *)&library->name, &address, sizeof address);                                  \
    }
    FUNCTIONS(FIND)
#undef FIND
    return WEFT_OK;
}

static enum weft_status check_version(struct weft_cuda_library *library, struct weft_error *err)
{
    const size_t version = library->cublasLtGetVersion();
    if (version / VERSIONS == CUBLAS_VER_MAJOR) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "%s says that it is version %zu, and this build is for %d.x: see what "
                     "LD_LIBRARY_PATH finds",
                     file_name, version, CUBLAS_VER_MAJOR);
}

static cudaError_t make_factors(struct weft_cuda_library *library)
{
    void *factors = NULL;
    const cudaError_t code = cudaHostAlloc(&factors, 2 * sizeof *library->factors,
                                           cudaHostAllocMapped | cudaHostAllocPortable);
    if (code != cudaSuccess) return code;
    library->factors = factors;
    library->factors[0] = 0;
    library->factors[1] = 1;
    return cudaSuccess;
}

static enum weft_status ready_library(struct weft_cuda_library *library, struct weft_error *err)
{
    struct cudaDeviceProp gpu;
    int ordinal = 0;
    cudaError_t code = cudaGetDevice(&ordinal);
    if (code == cudaSuccess) code = cudaGetDeviceProperties(&gpu, ordinal);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&library->stream, cudaStreamNonBlocking, 0);
    if (code == cudaSuccess) code = make_factors(library);
    if (code != cudaSuccess) return weft_cuda_fail(code, "make ready for cuBLASLt", err);
    const cublasStatus_t status = library->cublasLtCreate(&library->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        library->handle = NULL;
        return weft_fail(err,
                         status == CUBLAS_STATUS_ALLOC_FAILED ? WEFT_E_SYSTEM : WEFT_E_ENVIRONMENT,
                         "cuBLASLt cannot begin: %s (%d). It may be of another CUDA than the "
                         "driver; WEFT_GEMM=own multiplies without it",
                         library->cublasLtGetStatusName(status), (int)status);
    }
    const size_t version = library->cublasLtGetVersion();
    library->workspace_bytes = gpu.major >= LARGE_FROM ? LARGE_WORKSPACE : SMALL_WORKSPACE;
    snprintf(library->title, sizeof library->title, "cublaslt %zu.%zu.%zu, %s", version / VERSIONS,
             version / 100 % 100, version % 100, gpu.name);
    return WEFT_OK;
}

static enum weft_status products_open(struct weft_cuda_library **out, struct weft_error *err)
{
    struct weft_cuda_library *library = calloc(1, sizeof *library);
    if (library == NULL) return weft_fail_memory(err, "a library of products");
    enum weft_status status = find_functions(library, err);
    if (status == WEFT_OK) status = check_version(library, err);
    if (status == WEFT_OK) status = ready_library(library, err);
    if (status != WEFT_OK) {
        products_close(library);
        return status;
    }
    *out = library;
    return WEFT_OK;
}

static const char *products_title(const struct weft_cuda_library *library)
{
    return library->title;
}

static int64_t products_workspace_bytes(const struct weft_cuda_library *library)
{
    return library->workspace_bytes;
}

/* Descriptions: its rows are our columns, so c transposed = op(b) transposed, op(a) transposed */

struct description {
    cublasLtMatmulDescOpaque_t matmul;
    cublasLtMatrixLayoutOpaque_t a, b, c; /* d has c's layout too */
};

static cudaDataType_t type_of(enum weft_dtype dtype)
{
    switch (dtype) {
    case WEFT_BF16:
        return CUDA_R_16BF;
    case WEFT_F16:
        return CUDA_R_16F;
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        break;
    }
    return CUDA_R_32F;
}

/* Returns CUBLASLT_EPILOGUE_DEFAULT - 1 if cuBLASLt has none. */
static uint32_t epilogue_of(const struct weft_product *p)
{
    const struct weft_product_finish *f = &p->finish;
    const uint32_t none = CUBLASLT_EPILOGUE_DEFAULT - 1;
    if (f->column_sums != NULL || p->triangle != WEFT_NO_TRIANGLE) return none;
    if (f->residual != NULL && p->accumulate) return none;
    if ((f->gelu != NULL || f->gelu_input != NULL) && p->c_stride % AUX_STRIDE != 0) return none;
    if (f->gelu_input != NULL) {
        const bool alone = f->bias == NULL && f->residual == NULL && f->gelu == NULL;
        return alone && !p->accumulate ? CUBLASLT_EPILOGUE_DGELU : none;
    }
    if (f->gelu != NULL)
        return f->bias != NULL ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return f->bias != NULL ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static cublasStatus_t set_attribute(const struct weft_cuda_library *l, struct description *d,
                                    cublasLtMatmulDescAttributes_t what, const void *value,
                                    size_t bytes)
{
    return l->cublasLtMatmulDescSetAttribute(&d->matmul, what, value, bytes);
}

static cublasStatus_t describe_finish(const struct weft_cuda_library *l,
                                      const struct weft_product *p, struct description *d)
{
    const uint32_t epilogue = epilogue_of(p);
    const void *bias = p->finish.bias;
    /* c is GELU's input in both directions. */
    const void *aux = p->finish.gelu_input != NULL ? p->finish.gelu_input : p->c;
    const int64_t stride = p->c_stride;
    if (epilogue < CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_NOT_SUPPORTED;
    cublasStatus_t status =
        set_attribute(l, d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS && bias != NULL)
        status = set_attribute(l, d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (p->finish.gelu == NULL && p->finish.gelu_input == NULL) return status;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_attribute(l, d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_attribute(l, d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &stride, sizeof stride);
    return status;
}

static cublasStatus_t describe_layout(const struct weft_cuda_library *l, enum weft_dtype dtype,
                                      int64_t rows, int64_t columns, int64_t stride,
                                      cublasLtMatrixLayoutOpaque_t *out)
{
    return l->cublasLtMatrixLayoutInit_internal(out, sizeof *out, type_of(dtype), (uint64_t)columns,
                                                (uint64_t)rows, stride);
}

static cublasStatus_t describe_product(const struct weft_cuda_library *l,
                                       const struct weft_cuda_request *asked, struct description *d)
{
    const struct weft_product *p = &asked->product;
    const int32_t first = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                  second = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                  mode = asked->times != NULL ? CUBLASLT_POINTER_MODE_DEVICE
                                              : CUBLASLT_POINTER_MODE_HOST;
    cublasStatus_t status = l->cublasLtMatmulDescInit_internal(&d->matmul, sizeof d->matmul,
                                                               CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_attribute(l, d, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_attribute(l, d, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_attribute(l, d, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    if (status == CUBLAS_STATUS_SUCCESS) status = describe_finish(l, p, d);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = describe_layout(l, p->dtype, p->transpose_b ? p->n : p->k,
                                 p->transpose_b ? p->k : p->n, p->b_stride, &d->a);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = describe_layout(l, p->dtype, p->transpose_a ? p->k : p->m,
                                 p->transpose_a ? p->m : p->k, p->a_stride, &d->b);
    }
    if (status == CUBLAS_STATUS_SUCCESS)
        status = describe_layout(l, p->c_dtype, p->m, p->n, p->c_stride, &d->c);
    return status;
}

/* Choosing */

/* f32 products use neither TF32 nor parts in bf16. */
static uint64_t allowed_flags(const struct weft_product *p)
{
    const uint64_t sums = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA |
                          CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F |
                          CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
    if (p->dtype == WEFT_F32) return sums;
    return sums | CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F |
           CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
}

static cublasStatus_t prefer_algorithms(const struct weft_cuda_library *l,
                                        const struct weft_product *p,
                                        cublasLtMatmulPreferenceOpaque_t *out)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t most_bytes = (uint64_t)l->workspace_bytes, flags = allowed_flags(p);
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                   alignment = WEFT_CUDA_OPERAND_ALIGNMENT;
    cublasStatus_t status = l->cublasLtMatmulPreferenceInit_internal(out, sizeof *out);
#define PREFER(what, value)                                                                        \
    if (status == CUBLAS_STATUS_SUCCESS)                                                           \
    status = l->cublasLtMatmulPreferenceSetAttribute(out, what, &(value), sizeof(value))
    PREFER(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_bytes);
    PREFER(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    PREFER(CUBLASLT_MATMUL_PREF_IMPL_MASK, flags);
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        PREFER(alignments[i], alignment);
    }
#undef PREFER
    return status;
}

/* Refuses algorithms with other sums. Bits repeat if k is not split, or if its parts are added as
 * fp32 in a fixed order. */
static const char *refuse_sums(const struct weft_cuda_library *l, const struct weft_product *p,
                               const cublasLtMatmulAlgo_t *algorithm)
{
    uint64_t flags = 0;
    uint32_t scheme = 0;
    size_t written = 0;
    cublasStatus_t status = l->cublasLtMatmulAlgoCapGetAttribute(
        algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags, &written);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = l->cublasLtMatmulAlgoConfigGetAttribute(
            algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme, &written);
    }
    if (status != CUBLAS_STATUS_SUCCESS) return l->cublasLtGetStatusName(status);
    if ((flags & ~allowed_flags(p)) != 0) return "its sums or operands are not as asked for";
    if (scheme != CUBLASLT_REDUCTION_SCHEME_NONE &&
        scheme != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
        return "its bits may differ from run to run";
    return NULL;
}

static const char *products_refuses(const struct weft_cuda_library *l,
                                    const struct weft_cuda_request *asked,
                                    const struct weft_cuda_algorithm *algorithm)
{
    struct description d;
    cublasLtMatmulAlgo_t given;
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_SUCCESS};
    memcpy(&given, algorithm, sizeof given);
    cublasStatus_t status = describe_product(l, asked, &d);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = l->cublasLtMatmulAlgoCheck(l->handle, &d.matmul, &d.a, &d.b, &d.c, &d.c, &given,
                                            &result);
    }
    if (status == CUBLAS_STATUS_SUCCESS) status = result.state;
    if (status != CUBLAS_STATUS_SUCCESS) return l->cublasLtGetStatusName(status);
    if (result.workspaceSize > (size_t)l->workspace_bytes) return "it wants more workspace";
    return refuse_sums(l, &asked->product, &given);
}

static int32_t fact_of(const struct weft_cuda_library *l, const cublasLtMatmulAlgo_t *algorithm,
                       cublasLtMatmulAlgoConfigAttributes_t what)
{
    int32_t value = -1;
    size_t written = 0;
    (void)l->cublasLtMatmulAlgoConfigGetAttribute(algorithm, what, &value, sizeof value, &written);
    return value;
}

static const char *name_scheme(int32_t scheme)
{
    if (scheme == CUBLASLT_REDUCTION_SCHEME_NONE) return "none";
    return scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ? "fp32 in order" : "another";
}

static void products_facts(const struct weft_cuda_library *l, const struct weft_cuda_request *asked,
                           const struct weft_cuda_algorithm *algorithm,
                           struct weft_cuda_algorithm_facts *out)
{
    struct description d;
    cublasLtMatmulAlgo_t given;
    cublasLtMatmulHeuristicResult_t result = {.workspaceSize = 0};
    memcpy(&given, algorithm, sizeof given);
    if (describe_product(l, asked, &d) == CUBLAS_STATUS_SUCCESS) {
        (void)l->cublasLtMatmulAlgoCheck(l->handle, &d.matmul, &d.a, &d.b, &d.c, &d.c, &given,
                                         &result);
    }
    *out = (struct weft_cuda_algorithm_facts){
        .id = fact_of(l, &given, CUBLASLT_ALGO_CONFIG_ID),
        .tile = fact_of(l, &given, CUBLASLT_ALGO_CONFIG_TILE_ID),
        .stages = fact_of(l, &given, CUBLASLT_ALGO_CONFIG_STAGES_ID),
        .parts = fact_of(l, &given, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
        .scheme = name_scheme(fact_of(l, &given, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)),
        .workspace_bytes = (int64_t)result.workspaceSize};
}

static int products_candidates(const struct weft_cuda_library *l,
                               const struct weft_cuda_request *asked,
                               struct weft_cuda_algorithm out[WEFT_CUDA_MOST_CANDIDATES])
{
    struct description d;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t results[WEFT_CUDA_MOST_CANDIDATES];
    int found = 0, n = 0;
    if (describe_product(l, asked, &d) != CUBLAS_STATUS_SUCCESS ||
        prefer_algorithms(l, &asked->product, &preference) != CUBLAS_STATUS_SUCCESS ||
        l->cublasLtMatmulAlgoGetHeuristic(l->handle, &d.matmul, &d.a, &d.b, &d.c, &d.c, &preference,
                                          WEFT_CUDA_MOST_CANDIDATES, results,
                                          &found) != CUBLAS_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < found; i++) {
        if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
        memcpy(&out[n], &results[i].algo, sizeof *out);
        if (products_refuses(l, asked, &out[n]) == NULL) n++;
    }
    return n;
}

/* Running */

static bool is_aligned(const void *operand)
{
    return (uintptr_t)operand % WEFT_CUDA_OPERAND_ALIGNMENT == 0;
}

static bool are_aligned(const struct weft_product *p)
{
    const struct weft_product_finish *f = &p->finish;
    return is_aligned(p->a) && is_aligned(p->b) && is_aligned(p->c) && is_aligned(f->bias) &&
           is_aligned(f->residual) && is_aligned(f->gelu_input) && is_aligned(f->gelu);
}

static int products_run(const struct weft_cuda_library *l, const struct weft_cuda_request *asked,
                        const struct weft_cuda_algorithm *algorithm, void *workspace,
                        struct CUstream_st *on)
{
    const struct weft_product *p = &asked->product;
    const bool adds = p->accumulate || p->finish.residual != NULL, timed = asked->times != NULL;
    const float one = p->alpha, beta = adds ? 1 : 0;
    struct description d;
    cublasLtMatmulAlgo_t given;
    if (!are_aligned(p)) return cudaErrorMisalignedAddress;
    /* The GPU's factor replaces alpha. */
    if (timed && p->alpha != 1) return cudaErrorInvalidValue;
    memcpy(&given, algorithm, sizeof given);
    cublasStatus_t status = describe_product(l, asked, &d);
    void *result = p->finish.gelu != NULL ? p->finish.gelu : p->c;
    const void *added = p->finish.residual != NULL ? p->finish.residual : result;
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = l->cublasLtMatmul(l->handle, &d.matmul, timed ? asked->times : &one, p->b, &d.a,
                                   p->a, &d.b, timed ? &l->factors[adds] : &beta, added, &d.c,
                                   result, &d.c, &given, workspace, (size_t)l->workspace_bytes, on);
    }
    return code_of(status);
}

static struct CUstream_st *products_stream(const struct weft_cuda_library *l)
{
    return l->stream;
}

static int products_await(const struct weft_cuda_library *l)
{
    return (int)weft_cuda_await(NULL, l->stream);
}

const struct weft_cuda_library_ops weft_cuda_cublaslt = {
    .name = "cublaslt",
    .open = products_open,
    .close = products_close,
    .title = products_title,
    .workspace_bytes = products_workspace_bytes,
    .candidates = products_candidates,
    .refuses = products_refuses,
    .facts = products_facts,
    .run = products_run,
    .stream = products_stream,
    .await = products_await,
    .explain = products_explain,
};
