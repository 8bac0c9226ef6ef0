/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by cuDNN. Only this file knows its headers: the library's own, and its header-only
 * frontend, which builds graphs. The library is optional and opened on demand. Backward uses the
 * deterministic algorithm alone, so bits repeat for one version, engine and kind of GPU. */
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/device/cuda/calls.h"
#include "runtime/nn/cuda/products/libraries.h"

namespace cudnn_frontend
{
void *cudnn_dlhandle;
}
namespace fe = cudnn_frontend;

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)
static const char file_name[] = "libcudnn.so." TEXT_OF(CUDNN_MAJOR);

enum { VERSIONS = 10000, RUNTIME_VERSIONS = 1000 }; /* of a major version */

struct weft_cuda_attending {
    cudnnHandle_t handle; /* NULL: not made */
    cudaStream_t stream;  /* of trials; NULL: not made, as are the events */
    cudaEvent_t from, to;
    char title[320], reason[512];
};

enum tensor { QUERY = 1, KEY, VALUE, OUTPUT, STATISTICS, D_OUTPUT, D_QUERY, D_KEY, D_VALUE };

struct weft_cuda_attending_plan {
    struct weft_cuda_attending *library;
    int64_t hidden, bytes; /* of an element */
    fe::graph::Graph forward, backward;
    struct weft_cuda_attending_facts facts;
};

/* Creation and destruction */

static void cudnn_close(struct weft_cuda_attending *library)
{
    if (library == NULL) return;
    if (library->handle != NULL) fe::detail::destroy_handle(library->handle);
    if (library->from != NULL) cudaEventDestroy(library->from);
    if (library->to != NULL) cudaEventDestroy(library->to);
    if (library->stream != NULL) cudaStreamDestroy(library->stream);
    free(library);
}

/* The file stays open: the frontend keeps functions of it. */
static enum weft_status open_file(struct weft_error *err)
{
    if (fe::cudnn_dlhandle == NULL) fe::cudnn_dlhandle = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
    if (fe::cudnn_dlhandle == NULL) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s cannot be opened: %s. Install cuDNN %d (docs/gpu.md), or attend by "
                         "WEFT_ATTENTION=own",
                         file_name, dlerror(), CUDNN_MAJOR);
    }
    if (dlsym(fe::cudnn_dlhandle, "cudnnGetVersion") == NULL)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "%s has no cudnnGetVersion: it is not cuDNN",
                         file_name);
    const size_t version = fe::detail::get_backend_version();
    if (version / VERSIONS == CUDNN_MAJOR) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "%s says that it is version %zu, and this build is for %d.x: see what "
                     "LD_LIBRARY_PATH finds",
                     file_name, version, CUDNN_MAJOR);
}

static enum weft_status ready_library(struct weft_cuda_attending *library, struct weft_error *err)
{
    struct cudaDeviceProp gpu;
    int ordinal = 0;
    cudaError_t code = cudaGetDevice(&ordinal);
    if (code == cudaSuccess) code = cudaGetDeviceProperties(&gpu, ordinal);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&library->stream, cudaStreamNonBlocking, 0);
    if (code == cudaSuccess) code = cudaEventCreateWithFlags(&library->from, 0);
    if (code == cudaSuccess) code = cudaEventCreateWithFlags(&library->to, 0);
    if (code != cudaSuccess) return weft_cuda_fail(code, "make ready for cuDNN", err);
    const cudnnStatus_t status = fe::detail::create_handle(&library->handle);
    if (status != CUDNN_STATUS_SUCCESS) {
        library->handle = NULL;
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "cuDNN cannot begin: %s (%d). It may be of another CUDA than the driver; "
                         "WEFT_ATTENTION=own attends without it",
                         fe::detail::get_error_string(status), (int)status);
    }
    const size_t version = fe::detail::get_backend_version();
    snprintf(library->title, sizeof library->title, "cudnn %zu.%zu.%zu, %s", version / VERSIONS,
             version / 100 % 100, version % 100, gpu.name);
    return WEFT_OK;
}

static enum weft_status fail_by_exception(const char *what, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_ENVIRONMENT, "cuDNN's frontend cannot: %.400s", what);
}

static enum weft_status cudnn_open(struct weft_cuda_attending **out, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct weft_cuda_attending *library = (struct weft_cuda_attending *)calloc(1, sizeof *library);
    if (library == NULL) return weft_fail_memory(err, "a library of attention");
    /* The frontend opens the runtime by name, and otherwise takes an older major version first. */
    char runtime[32];
    snprintf(runtime, sizeof runtime, "libcudart.so.%d", CUDART_VERSION / RUNTIME_VERSIONS);
    (void)setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime, 0);
    try {
        status = open_file(err);
        if (status == WEFT_OK) status = ready_library(library, err);
    } catch (const std::exception &e) {
        status = fail_by_exception(e.what(), err);
    }
    if (status != WEFT_OK) {
        cudnn_close(library);
        return status;
    }
    *out = library;
    return WEFT_OK;
}

static const char *cudnn_title(const struct weft_cuda_attending *library)
{
    return library->title;
}

static const char *cudnn_explain(const struct weft_cuda_attending *library)
{
    return library->reason;
}

/* Plans */

typedef std::shared_ptr<fe::graph::Tensor_attributes> tensor_ptr;

/* Heads of [samples, heads, seq_len, size] in rows of `stride` elements. */
static fe::graph::Tensor_attributes heads_of(const struct weft_cuda_attention *a, int64_t stride,
                                             enum tensor uid)
{
    const int64_t size = a->hidden / a->heads;
    return fe::graph::Tensor_attributes()
        .set_uid(uid)
        .set_dim({a->samples, a->heads, a->seq_len, size})
        .set_stride({a->seq_len * stride, size, stride, 1});
}

static fe::graph::Tensor_attributes statistics_of(const struct weft_cuda_attention *a)
{
    return fe::graph::Tensor_attributes()
        .set_uid(STATISTICS)
        .set_dim({a->samples, a->heads, a->seq_len, 1})
        .set_stride({a->heads * a->seq_len, a->seq_len, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
}

static void give_output(const tensor_ptr &tensor, const fe::graph::Tensor_attributes &like)
{
    tensor->set_output(true)
        .set_uid(like.get_uid())
        .set_dim(like.get_dim())
        .set_stride(like.get_stride());
}

static void begin_graph(const struct weft_cuda_attention *a, fe::graph::Graph *graph)
{
    const fe::DataType_t io =
        a->dtype == WEFT_BF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
    graph->set_io_data_type(io)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
}

static float scale_of(const struct weft_cuda_attention *a)
{
    return (float)(1 / sqrt((double)(a->hidden / a->heads)));
}

static void draw_forward(const struct weft_cuda_attention *a, fe::graph::Graph *graph)
{
    begin_graph(a, graph);
    const tensor_ptr q = graph->tensor(heads_of(a, 3 * a->hidden, QUERY)),
                     k = graph->tensor(heads_of(a, 3 * a->hidden, KEY)),
                     v = graph->tensor(heads_of(a, 3 * a->hidden, VALUE));
    auto attributes =
        fe::graph::SDPA_attributes().set_generate_stats(true).set_causal_mask(true).set_attn_scale(
            scale_of(a));
    const auto outputs = graph->sdpa(q, k, v, attributes);
    give_output(outputs[0], heads_of(a, a->hidden, OUTPUT));
    give_output(outputs[1], statistics_of(a));
    outputs[1]->set_data_type(fe::DataType_t::FLOAT);
}

static void draw_backward(const struct weft_cuda_attention *a, bool ordered,
                          fe::graph::Graph *graph)
{
    begin_graph(a, graph);
    const tensor_ptr q = graph->tensor(heads_of(a, 3 * a->hidden, QUERY)),
                     k = graph->tensor(heads_of(a, 3 * a->hidden, KEY)),
                     v = graph->tensor(heads_of(a, 3 * a->hidden, VALUE)),
                     o = graph->tensor(heads_of(a, a->hidden, OUTPUT)),
                     d = graph->tensor(heads_of(a, a->hidden, D_OUTPUT)),
                     s = graph->tensor(statistics_of(a));
    auto attributes = fe::graph::SDPA_backward_attributes()
                          .set_causal_mask(true)
                          .set_attn_scale(scale_of(a))
                          .set_deterministic_algorithm(ordered);
    const auto outputs = graph->sdpa_backward(q, k, v, o, d, s, attributes);
    give_output(outputs[0], heads_of(a, 3 * a->hidden, D_QUERY));
    give_output(outputs[1], heads_of(a, 3 * a->hidden, D_KEY));
    give_output(outputs[2], heads_of(a, 3 * a->hidden, D_VALUE));
}

/* Builds the heuristic's favourite, and reads its name and workspace. */
static fe::error_t build_graph(struct weft_cuda_attending *library, fe::graph::Graph *graph,
                               char (&name)[96], int64_t *bytes)
{
    std::string text;
    fe::error_t error = graph->build(library->handle, {fe::HeurMode_t::A});
    if (error.is_good()) error = graph->get_workspace_size(*bytes);
    if (error.is_good()) error = graph->get_plan_name(text);
    snprintf(name, sizeof name, "%s", text.c_str());
    return error;
}

static enum weft_status prepare_plan(struct weft_cuda_attending_plan *plan,
                                     const struct weft_cuda_attention *shape, bool ordered,
                                     struct weft_error *err)
{
    struct weft_cuda_attending_facts *facts = &plan->facts;
    draw_forward(shape, &plan->forward);
    draw_backward(shape, ordered, &plan->backward);
    fe::error_t error =
        build_graph(plan->library, &plan->forward, facts->forward, &facts->forward_bytes);
    if (error.is_good())
        error =
            build_graph(plan->library, &plan->backward, facts->backward, &facts->backward_bytes);
    if (error.is_good()) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT, "%s cannot attend here: %.400s", plan->library->title,
                     error.get_message().c_str());
}

static void cudnn_release(struct weft_cuda_attending_plan *plan)
{
    delete plan;
}

static enum weft_status cudnn_prepare(struct weft_cuda_attending *library,
                                      const struct weft_cuda_attention *shape, bool ordered,
                                      struct weft_cuda_attending_plan **out, struct weft_error *err)
{
    struct weft_cuda_attending_plan *plan = NULL;
    enum weft_status status = WEFT_OK;
    try {
        plan = new weft_cuda_attending_plan();
        plan->library = library;
        plan->hidden = shape->hidden;
        plan->bytes = 2;
        status = prepare_plan(plan, shape, ordered, err);
    } catch (const std::exception &e) {
        status = fail_by_exception(e.what(), err);
    }
    if (status != WEFT_OK) {
        cudnn_release(plan);
        return status;
    }
    *out = plan;
    return WEFT_OK;
}

static const struct weft_cuda_attending_facts *cudnn_facts(
    const struct weft_cuda_attending_plan *plan)
{
    return &plan->facts;
}

/* Running */

typedef std::unordered_map<fe::graph::Tensor_attributes::uid_t, void *> operands;

static void *part_of(const struct weft_cuda_attending_plan *plan, const void *qkv, int64_t part)
{
    return (char *)qkv + part * plan->hidden * plan->bytes;
}

static int run_graph(struct weft_cuda_attending_plan *plan, const fe::graph::Graph &graph,
                     operands &given, void *workspace, struct CUstream_st *on)
{
    struct weft_cuda_attending *library = plan->library;
    library->reason[0] = '\0';
    const cudnnStatus_t status = fe::detail::set_stream(library->handle, on);
    if (status != CUDNN_STATUS_SUCCESS) {
        snprintf(library->reason, sizeof library->reason, "%s",
                 fe::detail::get_error_string(status));
        return WEFT_CUDA_ATTENDING - (int)status;
    }
    fe::error_t error = graph.execute(library->handle, given, workspace);
    if (error.is_good()) return 0;
    snprintf(library->reason, sizeof library->reason, "%s", error.get_message().c_str());
    return WEFT_CUDA_ATTENDING - (int)error.get_code();
}

static int cudnn_forward(struct weft_cuda_attending_plan *plan, const void *qkv, void *output,
                         float *statistics, void *workspace, struct CUstream_st *on)
{
    try {
        operands given = {{QUERY, part_of(plan, qkv, 0)},
                          {KEY, part_of(plan, qkv, 1)},
                          {VALUE, part_of(plan, qkv, 2)},
                          {OUTPUT, output},
                          {STATISTICS, statistics}};
        return run_graph(plan, plan->forward, given, workspace, on);
    } catch (const std::exception &e) {
        snprintf(plan->library->reason, sizeof plan->library->reason, "%s", e.what());
        return WEFT_CUDA_ATTENDING;
    }
}

static int cudnn_backward(struct weft_cuda_attending_plan *plan, const void *qkv,
                          const void *output, const float *statistics, const void *d_output,
                          void *d_qkv, void *workspace, struct CUstream_st *on)
{
    try {
        operands given = {{QUERY, part_of(plan, qkv, 0)},     {KEY, part_of(plan, qkv, 1)},
                          {VALUE, part_of(plan, qkv, 2)},     {OUTPUT, (void *)output},
                          {STATISTICS, (void *)statistics},   {D_OUTPUT, (void *)d_output},
                          {D_QUERY, part_of(plan, d_qkv, 0)}, {D_KEY, part_of(plan, d_qkv, 1)},
                          {D_VALUE, part_of(plan, d_qkv, 2)}};
        return run_graph(plan, plan->backward, given, workspace, on);
    } catch (const std::exception &e) {
        snprintf(plan->library->reason, sizeof plan->library->reason, "%s", e.what());
        return WEFT_CUDA_ATTENDING;
    }
}

static struct CUstream_st *cudnn_stream(const struct weft_cuda_attending *library)
{
    return library->stream;
}

static int cudnn_begin(const struct weft_cuda_attending *library)
{
    return (int)cudaEventRecord(library->from, library->stream);
}

static int cudnn_end(const struct weft_cuda_attending *library, double *us)
{
    float ms = 0;
    cudaError_t code = cudaEventRecord(library->to, library->stream);
    const cudaError_t awaited = weft_cuda_await(NULL, library->stream);
    if (code == cudaSuccess) code = awaited;
    if (code == cudaSuccess) code = cudaEventElapsedTime(&ms, library->from, library->to);
    *us = 1000 * (double)ms;
    return (int)code;
}

const struct weft_cuda_attending_ops weft_cuda_cudnn = {
    "cudnn",       cudnn_open,  cudnn_close,   cudnn_title,    cudnn_prepare,
    cudnn_release, cudnn_facts, cudnn_forward, cudnn_backward, cudnn_stream,
    cudnn_begin,   cudnn_end,   cudnn_explain,
};
