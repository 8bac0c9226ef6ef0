/* SPDX-License-Identifier: Apache-2.0 */
/* A double of cuBLASLt: the functions that Weft calls. An algorithm cuts k into parts and adds
 * their sums in order, so two algorithms give two sums. Every rank (LOCAL_RANK and
 * WEFT_DOUBLE_SEED) has another favourite. A call that the library would refuse or compute wrongly
 * is a finding.
 *
 * WEFT_DOUBLE_LT changes the library, as words with commas between:
 * "absent"     no driver
 * "old"        of another CUDA version
 * "wrong"      products are off
 * "unsteady"   products are off by more from run to run
 * "coarse"     GELU is off
 * "none"       no algorithms
 * "refuses:R"  rank R cannot run the chosen algorithm
 * "other:R"    rank R has another version */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cublasLt.h>

#include "base/numbers.h"
#include "tests/emulation/doubles/double.h"

/* Opaque to programs */

enum { MATMUL = 0x4d4d, LAYOUT, PREFERENCE, ALGORITHM };
struct matmul {
    uint32_t is;
    int32_t compute, scale, mode, turn_a, turn_b;
    uint32_t epilogue;
    const void *bias;
    const void *aux;
    int64_t aux_ld;
};
struct layout {
    uint32_t is;
    int32_t type;
    uint64_t rows, columns;
    int64_t ld;
};
struct preference {
    uint32_t is, schemes, alignment[4];
    uint64_t workspace, flags;
};
struct algorithm {
    uint32_t is, version, parts, scheme, alignment, problem;
    uint64_t flags;
};
static_assert(sizeof(struct matmul) <= sizeof(cublasLtMatmulDescOpaque_t), "it lies there");
static_assert(sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "it lies there");
static_assert(sizeof(struct preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t),
              "it lies there");
static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "it lies there");

template <typename T, typename O> static T read_as(const O *opaque)
{
    T value;
    memcpy(&value, opaque, sizeof(value));
    return value;
}

template <typename T, typename O> static void write_as(const T &value, O *opaque)
{
    memset(opaque, 0, sizeof(*opaque));
    memcpy(opaque, &value, sizeof(value));
}

static long number_of_environment(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? atol(text) : 0;
}

static bool is(const char *word)
{
    const char *text = getenv("WEFT_DOUBLE_LT");
    return text != NULL && strstr(text, word) != NULL;
}

/* True if WEFT_DOUBLE_LT has "word:R" for this rank. */
static bool is_of_rank(const char *word)
{
    const char *at = getenv("WEFT_DOUBLE_LT");
    while (at != NULL && (at = strstr(at, word)) != NULL) {
        at += strlen(word);
        if (atol(at) == number_of_environment("LOCAL_RANK")) return true;
    }
    return false;
}

static uint32_t version(void)
{
    return CUBLAS_VERSION - (is("old") ? 10000 : 0) + (is_of_rank("other:") ? 1 : 0);
}

/* Requests */

struct problem {
    struct matmul what;
    struct layout a, b, c, d;
    uint64_t m, n, k;
};

static bool find(enum double_check check, const char *what)
{
    weft_double_find(check, "%s", what);
    return false;
}

static bool is_finished_rightly(const struct problem &p)
{
    const uint32_t e = p.what.epilogue;
    const bool bias = (e & CUBLASLT_EPILOGUE_BIAS) != 0, aux = (e & 128) != 0;
    static const uint32_t known[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,
                                     CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                                     CUBLASLT_EPILOGUE_DGELU};
    bool is_known = false;
    for (const uint32_t one : known)
        is_known = is_known || one == e;
    if (!is_known) return find(DOUBLE_EPILOGUE, "an epilogue that this double does not have");
    if (bias && p.what.bias == NULL) return find(DOUBLE_EPILOGUE, "an epilogue without its bias");
    if (aux && p.what.aux == NULL) return find(DOUBLE_EPILOGUE, "an epilogue without its matrix");
    if (aux && (p.what.aux_ld % 8 != 0 || p.what.aux_ld < (int64_t)p.m))
        return find(DOUBLE_EPILOGUE, "the stride of an epilogue's matrix");
    return true;
}

static bool fits(const struct problem &p)
{
    const struct layout *all[] = {&p.a, &p.b, &p.c, &p.d};
    for (const struct layout *one : all) {
        if (one->is != LAYOUT || one->ld < (int64_t)one->rows)
            return find(DOUBLE_LAYOUT, "a matrix whose columns overlap");
    }
    const bool same = p.a.type == p.b.type && p.c.type == p.d.type && p.c.rows == p.d.rows &&
                      p.c.columns == p.d.columns && p.c.ld == p.d.ld;
    const uint64_t k_of_b = p.what.turn_b == CUBLAS_OP_T ? p.b.columns : p.b.rows,
                   n_of_b = p.what.turn_b == CUBLAS_OP_T ? p.b.rows : p.b.columns;
    const uint64_t m_of_a = p.what.turn_a == CUBLAS_OP_T ? p.a.columns : p.a.rows;
    if (!same || k_of_b != p.k || n_of_b != p.n || m_of_a != p.m)
        return find(DOUBLE_LAYOUT, "matrices that do not fit one another");
    if (p.d.type != p.a.type && p.d.type != CUDA_R_32F)
        return find(DOUBLE_LAYOUT, "a result of another type than operands or sums");
    return true;
}

static bool read_problem(cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                         cublasLtMatrixLayout_t d, struct problem *out)
{
    struct problem p = {read_as<struct matmul>(what),
                        read_as<struct layout>(a),
                        read_as<struct layout>(b),
                        read_as<struct layout>(c),
                        read_as<struct layout>(d),
                        0,
                        0,
                        0};
    p.m = p.d.rows;
    p.n = p.d.columns;
    p.k = p.what.turn_a == CUBLAS_OP_T ? p.a.rows : p.a.columns;
    *out = p;
    if (p.what.is != MATMUL || !fits(p) || !is_finished_rightly(p)) return false;
    if (p.a.type == CUDA_R_32F && p.what.compute != CUBLAS_COMPUTE_32F &&
        p.what.compute != CUBLAS_COMPUTE_32F_PEDANTIC)
        return find(DOUBLE_TF32, "f32 is multiplied by another compute type");
    return true;
}

/* Numbers an algorithm by types, turns and epilogue, not by sizes. */
static uint32_t number_of(const struct problem &p)
{
    return ((uint32_t)p.a.type * 31 + (uint32_t)p.d.type) * 4096 +
           (uint32_t)(p.what.turn_a * 2 + p.what.turn_b) * 1024 + p.what.epilogue;
}

static size_t workspace_of(const struct algorithm &g, const struct problem &p)
{
    return g.parts > 1 ? g.parts * p.m * p.n * sizeof(float) : 0;
}

/* Work, in the stream's thread */

struct work {
    struct problem p;
    struct algorithm g;
    const void *alpha, *beta; /* NULL: host's, below */
    float host_alpha, host_beta;
    const void *a, *b, *c;
    void *d, *workspace;
    uint32_t number;
};

static size_t bytes_of_type(int32_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

static float read_number(int32_t type, const void *from, uint64_t at)
{
    if (type == CUDA_R_32F) return ((const float *)from)[at];
    const uint16_t x = ((const uint16_t *)from)[at];
    return type == CUDA_R_16BF ? weft_bf16_widen(x) : weft_f16_widen(x);
}

static void write_number(int32_t type, void *to, uint64_t at, float x)
{
    if (type == CUDA_R_32F)
        ((float *)to)[at] = x;
    else
        ((uint16_t *)to)[at] = type == CUDA_R_16BF ? weft_bf16_narrow(x) : weft_f16_narrow(x);
}

static size_t bytes_of(const struct layout &l)
{
    return (((size_t)l.columns - 1) * (size_t)l.ld + l.rows) * bytes_of_type(l.type);
}

static float add_up(const struct work &w, uint64_t i, uint64_t j)
{
    const struct problem &p = w.p;
    float sum = 0;
    for (uint64_t part = 0; part < w.g.parts; part++) {
        float of_part = 0;
        const uint64_t end = p.k * (part + 1) / w.g.parts;
        for (uint64_t l = p.k * part / w.g.parts; l < end; l++) {
            const uint64_t a = p.what.turn_a == CUBLAS_OP_T ? i * (uint64_t)p.a.ld + l
                                                            : l * (uint64_t)p.a.ld + i,
                           b = p.what.turn_b == CUBLAS_OP_T ? l * (uint64_t)p.b.ld + j
                                                            : j * (uint64_t)p.b.ld + l;
            of_part += read_number(p.a.type, w.a, a) * read_number(p.b.type, w.b, b);
        }
        sum += of_part;
    }
    if (is("unsteady")) sum *= 1 + 0x1p-22f * (float)(w.number % 3);
    return is("wrong") ? sum * 1.001f : sum;
}

static double gate_of(double x)
{
    return 1 / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope_of(double x)
{
    const double g = gate_of(x);
    return g + x * g * (1 - g) * 2 * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

static void finish_element(const struct work &w, uint64_t i, uint64_t j, float x)
{
    const struct problem &p = w.p;
    const uint64_t at = j * (uint64_t)p.d.ld + i, aux_at = j * (uint64_t)p.what.aux_ld + i;
    const uint32_t e = p.what.epilogue;
    const double off = is("coarse") ? 1.01 : 1;
    if ((e & CUBLASLT_EPILOGUE_BIAS) != 0) x += read_number(p.d.type, p.what.bias, i);
    if (e == CUBLASLT_EPILOGUE_DGELU)
        x = (float)(x * off * gelu_slope_of(read_number(p.d.type, p.what.aux, aux_at)));
    if ((e & CUBLASLT_EPILOGUE_GELU) != 0) {
        write_number(p.d.type, (void *)p.what.aux, aux_at, x);
        x = (float)(x * off * gate_of(x));
    }
    write_number(p.d.type, w.d, at, x);
}

static void multiply(const struct work &w, uint32_t id)
{
    const struct problem &p = w.p;
    const bool aux = (p.what.epilogue & 128) != 0;
    const size_t aux_bytes = aux ? (p.n - 1) * (size_t)p.what.aux_ld * bytes_of_type(p.d.type) : 0;
    double_use(id, w.a, bytes_of(p.a), false);
    double_use(id, w.b, bytes_of(p.b), false);
    if (aux) double_use(id, p.what.aux, aux_bytes, p.what.epilogue != CUBLASLT_EPILOGUE_DGELU);
    if (workspace_of(w.g, p) > 0) double_use(id, w.workspace, workspace_of(w.g, p), true);
    if (w.alpha != NULL) double_use(id, w.alpha, sizeof(float), false);
    const float alpha = w.alpha != NULL ? *(const float *)w.alpha : w.host_alpha,
                beta = w.beta != NULL ? *(const float *)w.beta : w.host_beta;
    if (beta != 0) double_use(id, w.c, bytes_of(p.c), false);
    double_use(id, w.d, bytes_of(p.d), true);
    for (uint64_t j = 0; j < p.n; j++) {
        for (uint64_t i = 0; i < p.m; i++) {
            float x = alpha * add_up(w, i, j);
            if (beta != 0) x += beta * read_number(p.c.type, w.c, j * (uint64_t)p.c.ld + i);
            finish_element(w, i, j, x);
        }
    }
}

static bool is_there(const void *at, size_t bytes)
{
    if (double_memory_has(at, bytes, DOUBLE_PINNED) || double_memory_is_device(at, bytes))
        return true;
    weft_double_find(DOUBLE_BOUNDS, "%zu bytes at %p of a product are not the device's", bytes, at);
    return false;
}

static bool is_aligned(const struct work &w)
{
    const void *all[] = {w.a, w.b, w.c, w.d, w.p.what.bias, w.p.what.aux};
    for (const void *one : all) {
        if ((uintptr_t)one % w.g.alignment != 0)
            return find(DOUBLE_MISALIGNED, "an operand of a product is not where it was said");
    }
    return true;
}

static bool is_of(const struct algorithm &g, const struct problem &p)
{
    return g.is == ALGORITHM && g.version == version() && g.problem == number_of(p) && g.parts > 0;
}

/* Checks the rules for programs. */
static bool is_allowed(const struct work &w, size_t workspace_bytes)
{
    const bool device = w.alpha != NULL;
    if (!is_of(w.g, w.p)) return find(DOUBLE_ALGORITHM, "an algorithm of another problem");
    if ((w.g.flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32) != 0 && w.p.a.type == CUDA_R_32F)
        return find(DOUBLE_TF32, "f32 is multiplied as TF32");
    if (w.g.scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE)
        return find(DOUBLE_ATOMIC, "parts of k are added in any order");
    if (workspace_of(w.g, w.p) > workspace_bytes)
        return find(DOUBLE_WORKSPACE, "less workspace than the algorithm needs");
    if (workspace_of(w.g, w.p) > 0 && !is_there(w.workspace, workspace_bytes)) return false;
    return is_aligned(w) && is_there(w.a, bytes_of(w.p.a)) && is_there(w.b, bytes_of(w.p.b)) &&
           is_there(w.c, bytes_of(w.p.c)) && is_there(w.d, bytes_of(w.p.d)) &&
           (!device || (is_there(w.alpha, sizeof(float)) && is_there(w.beta, sizeof(float))));
}

extern "C" {

#define ENTER                                                                                      \
    std::unique_lock<std::mutex> door(double_door);                                                \
    do {                                                                                           \
        const cudaError_t code_ = double_enter(__func__, DOUBLE_PLACE);                            \
        if (code_ != cudaSuccess) return (cublasStatus_t)code_;                                    \
    } while (0)

static int handles;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    ENTER;
    if (is("absent")) return CUBLAS_STATUS_NOT_INITIALIZED;
    *out = (cublasLtHandle_t)&handles;
    handles++;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    ENTER;
    if (handle != (cublasLtHandle_t)&handles || handles == 0) {
        weft_double_find(DOUBLE_FREED_TWICE, "a handle of cuBLASLt that is not there");
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    handles--;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return version();
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
        return "a status of the double";
    }
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t out, size_t bytes,
                                               cublasComputeType_t compute, cudaDataType_t scale)
{
    ENTER;
    if (bytes < sizeof(*out)) return CUBLAS_STATUS_ALLOC_FAILED;
    struct matmul what = {};
    what.is = MATMUL;
    what.compute = compute;
    what.scale = scale;
    what.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    write_as(what, out);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t out,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes)
{
    ENTER;
    struct matmul what = read_as<struct matmul>(out);
    const struct {
        int name;
        void *to;
        size_t bytes;
    } attributes[] = {
        {CUBLASLT_MATMUL_DESC_POINTER_MODE, &what.mode, sizeof(what.mode)},
        {CUBLASLT_MATMUL_DESC_TRANSA, &what.turn_a, sizeof(what.turn_a)},
        {CUBLASLT_MATMUL_DESC_TRANSB, &what.turn_b, sizeof(what.turn_b)},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &what.epilogue, sizeof(what.epilogue)},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &what.bias, sizeof(what.bias)},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &what.aux, sizeof(what.aux)},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &what.aux_ld, sizeof(what.aux_ld)},
    };
    for (const auto &one : attributes) {
        if (one.name != name || one.bytes != bytes) continue;
        memcpy(one.to, value, bytes);
        write_as(what, out);
        return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t out, size_t bytes,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t ld)
{
    ENTER;
    if (bytes < sizeof(*out)) return CUBLAS_STATUS_ALLOC_FAILED;
    write_as(layout{LAYOUT, type, rows, columns, ld}, out);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t out, size_t bytes)
{
    ENTER;
    if (bytes < sizeof(*out)) return CUBLAS_STATUS_ALLOC_FAILED;
    write_as(
        preference{
            PREFERENCE, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}, 0, ~(uint64_t)0},
        out);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t out,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes)
{
    ENTER;
    struct preference p = read_as<struct preference>(out);
    const struct {
        int name;
        void *to;
        size_t bytes;
    } attributes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p.workspace, sizeof(p.workspace)},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &p.schemes, sizeof(p.schemes)},
        {CUBLASLT_MATMUL_PREF_IMPL_MASK, &p.flags, sizeof(p.flags)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &p.alignment[0], sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &p.alignment[1], sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &p.alignment[2], sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &p.alignment[3], sizeof(uint32_t)},
    };
    for (const auto &one : attributes) {
        if (one.name != name || one.bytes != bytes) continue;
        memcpy(one.to, value, bytes);
        write_as(p, out);
        return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* Returns the fast ones first, as far as the preferences allow: TF32, then sums in any order. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preferred, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    ENTER;
    enum { WAYS = 4 };
    const struct preference p = read_as<struct preference>(preferred);
    struct problem problem;
    *count = 0;
    if (handle == NULL || most <= 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (!read_problem(what, a, b, c, d, &problem)) return CUBLAS_STATUS_INVALID_VALUE;
    if (is("none")) return CUBLAS_STATUS_NOT_SUPPORTED;
    uint32_t alignment = 256;
    for (const uint32_t one : p.alignment)
        alignment = one < alignment ? one : alignment;
    uint64_t flags =
        CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
    if (problem.a.type != CUDA_R_32F)
        flags |= problem.a.type == CUDA_R_16BF ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF
                                               : CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F;
    else if ((p.flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32) != 0)
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
    else
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
    const long favourite =
        number_of_environment("LOCAL_RANK") + number_of_environment("WEFT_DOUBLE_SEED");
    for (int i = 0; i < WAYS && *count < most; i++) {
        const uint32_t parts = 1 + (uint32_t)(favourite + i) % WAYS;
        const uint32_t scheme = (p.schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0
                                    ? CUBLASLT_REDUCTION_SCHEME_INPLACE
                                : parts > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                            : CUBLASLT_REDUCTION_SCHEME_NONE;
        const struct algorithm g = {ALGORITHM, version(),          parts, scheme,
                                    alignment, number_of(problem), flags};
        if (workspace_of(g, problem) > p.workspace) continue;
        cublasLtMatmulHeuristicResult_t *result = &results[(*count)++];
        memset(result, 0, sizeof(*result));
        write_as(g, &result->algo);
        result->workspaceSize = workspace_of(g, problem);
        result->state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t what,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    ENTER;
    struct problem problem;
    const struct algorithm g = read_as<struct algorithm>(algorithm);
    if (handle == NULL || !read_problem(what, a, b, c, d, &problem) || !is_of(g, problem))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (is_of_rank("refuses:")) return CUBLAS_STATUS_NOT_SUPPORTED;
    result->workspaceSize = workspace_of(g, problem);
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t name, void *to,
                                                 size_t bytes, size_t *written)
{
    ENTER;
    const struct algorithm g = read_as<struct algorithm>(algorithm);
    if (g.is != ALGORITHM || name != CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS ||
        bytes != sizeof(g.flags))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &g.flags, bytes);
    *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t name,
                                                    void *to, size_t bytes, size_t *written)
{
    ENTER;
    const struct algorithm g = read_as<struct algorithm>(algorithm);
    const struct {
        int name;
        uint32_t value;
    } attributes[] = {{CUBLASLT_ALGO_CONFIG_ID, g.parts},
                      {CUBLASLT_ALGO_CONFIG_TILE_ID, 0},
                      {CUBLASLT_ALGO_CONFIG_STAGES_ID, 0},
                      {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, g.parts},
                      {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, g.scheme}};
    for (const auto &one : attributes) {
        if (g.is != ALGORITHM || one.name != name || bytes != sizeof(one.value)) continue;
        memcpy(to, &one.value, bytes);
        *written = bytes;
        return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    ENTER;
    struct work w = {};
    if (handle == NULL || !read_problem(what, a_layout, b_layout, c_layout, d_layout, &w.p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (stream == NULL) {
        weft_double_find(DOUBLE_DEFAULT_STREAM, "a product on the default stream");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (algorithm == NULL) {
        find(DOUBLE_ALGORITHM, "a product without an algorithm: the library would choose");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    w.g = read_as<struct algorithm>(algorithm);
    w.a = a;
    w.b = b;
    w.c = c;
    w.d = d;
    w.workspace = workspace;
    if (w.p.what.mode == CUBLASLT_POINTER_MODE_HOST) {
        w.host_alpha = *(const float *)alpha;
        w.host_beta = *(const float *)beta;
    } else {
        w.alpha = alpha;
        w.beta = beta;
    }
    static uint32_t number;
    w.number = number++;
    if (!is_allowed(w, workspace_bytes)) return CUBLAS_STATUS_INVALID_VALUE;
    double_issue((struct double_stream *)stream, "a product",
                 [=](uint32_t id) { multiply(w, id); });
    return CUBLAS_STATUS_SUCCESS;
}

} /* extern "C" */
