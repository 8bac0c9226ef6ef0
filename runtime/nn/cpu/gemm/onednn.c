/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that includes oneDNN. fp32 uses dnnl_sgemm, not the matmul primitive. It is as fast
 * on the layers' shapes, needs no object for each shape, and is in the v2 and v3 APIs. bf16 has
 * only the primitive, and its C API changed from v2 to v3. With v3 the emulation does bf16, and the
 * description says so. */
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/nn/cpu/gemm/multiplier.h"
#include "runtime/nn/cpu/kernels/kernels.h"

#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
/* Declared here because omp.h belongs to the compiler, and clang's is not always installed. */
void omp_set_num_threads(int threads);
#else
static void omp_set_num_threads(int threads)
{
    (void)threads;
}
#endif

/* Layers have some twenty kinds of product, and attention has one more for each 64 rows. */
enum { MATMULS = 128 };

/* Sizes of transposed f32 operands: TURNED_SIDE rows or columns of c and TURNED_PIECE of k, of both
 * operands. The stride is not a multiple of a page, because rows would then share a few sets of a
 * cache. */
enum {
    TURNED_SIDE = 1536,
    TURNED_PIECE = 384,
    TURNED_STRIDE = TURNED_PIECE + 16,
    TURNED_ELEMENTS = 2 * TURNED_SIDE * TURNED_STRIDE
};

/* A primitive for one kind of product. Its memory objects get their data at each run. */
struct matmul {
    struct weft_product kind; /* without a, b and c; m 0: empty */
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, c;
};

/* A thread's own part of the state. */
struct worker {
    dnnl_stream_t stream;
    struct matmul matmuls[MATMULS];
};

struct state {
    bool narrow; /* has products of the 16-bit dtype */
    int32_t threads;
    dnnl_engine_t engine;
    float *turned;           /* [TURNED_ELEMENTS]; NULL if transposing does not pay */
    struct worker workers[]; /* [threads] */
};

static void drop_matmul(struct matmul *matmul)
{
    if (matmul->primitive) dnnl_primitive_destroy(matmul->primitive);
    if (matmul->a) dnnl_memory_destroy(matmul->a);
    if (matmul->b) dnnl_memory_destroy(matmul->b);
    if (matmul->c) dnnl_memory_destroy(matmul->c);
    *matmul = (struct matmul){0};
}

static void close_state(void *opaque)
{
    struct state *state = opaque;
    if (!state) return;
    for (int32_t i = 0; i < state->threads; i++) {
        struct worker *worker = &state->workers[i];
        for (int j = 0; j < MATMULS; j++) {
            drop_matmul(&worker->matmuls[j]);
        }
        if (worker->stream) dnnl_stream_destroy(worker->stream);
    }
    if (state->engine) dnnl_engine_destroy(state->engine);
    free(state->turned);
    free(state);
}

static bool has_dtype(struct state *state, enum weft_dtype dtype);

/* oneDNN chooses other kernels, and may split sums, for other numbers of threads. So each call has
 * one, and threads share the parts of a product. OpenMP keeps this number for each calling thread,
 * and for each thread of a region, so it is set at each use. */
static void take_one_thread(void)
{
    omp_set_num_threads(1);
}

static bool open_engine(struct state *state)
{
    take_one_thread();
    if (dnnl_engine_create(&state->engine, dnnl_cpu, 0) != dnnl_success) return false;
    for (int32_t i = 0; i < state->threads; i++) {
        if (dnnl_stream_create(&state->workers[i].stream, state->engine,
                               dnnl_stream_default_flags) != dnnl_success)
            return false;
    }
    return true;
}

static enum weft_status open_state(int32_t threads, enum weft_dtype dtype, void **out,
                                   struct weft_error *err)
{
    struct state *state = calloc(1, sizeof(*state) + (size_t)threads * sizeof(*state->workers));
    if (!state) return weft_fail_memory(err, "oneDNN");
    state->threads = threads;
    if (!open_engine(state)) {
        close_state(state);
        return weft_fail(err, WEFT_E_ENVIRONMENT, "oneDNN has no engine for this CPU");
    }
    if (weft_kernels_best()->turn) {
        state->turned = aligned_alloc(64, TURNED_ELEMENTS * sizeof(*state->turned));
        if (!state->turned) {
            close_state(state);
            return weft_fail_memory(err, "operands of oneDNN");
        }
    }
    state->narrow = dtype != WEFT_F32 && has_dtype(state, dtype);
    *out = state;
    return WEFT_OK;
}

static void write_version(const void *state, char *text, size_t bytes)
{
    (void)state;
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, bytes, "%d.%d.%d", v->major, v->minor, v->patch);
}

/* The name without "cpu_isa_". */
static const char *show_instructions(void)
{
    const char *name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
    const size_t prefix = strlen("cpu_isa_");
    return strncmp(name, "cpu_isa_", prefix) == 0 ? name + prefix : name;
}

static enum weft_status fail_product(const struct weft_product *p, dnnl_status_t failed,
                                     struct weft_error *err)
{
    return weft_fail(
        err, WEFT_E_SYSTEM, "oneDNN could not multiply [%lld, %lld] by [%lld, %lld] (status %d)",
        (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n, (int)failed);
}

#if DNNL_VERSION_MAJOR == 2

static bool same_kind(const struct weft_product *a, const struct weft_product *b)
{
    return a->transpose_a == b->transpose_a && a->transpose_b == b->transpose_b &&
           a->dtype == b->dtype && a->c_dtype == b->c_dtype && a->m == b->m && a->n == b->n &&
           a->k == b->k && a->a_stride == b->a_stride && a->b_stride == b->b_stride &&
           a->c_stride == b->c_stride && a->alpha == b->alpha && a->accumulate == b->accumulate;
}

static dnnl_status_t describe_operand(dnnl_memory_desc_t *out, int64_t rows, int64_t columns,
                                      enum weft_dtype dtype, bool transposed, int64_t stride)
{
    const dnnl_dims_t dims = {rows, columns};
    const dnnl_dims_t strides = {transposed ? 1 : stride, transposed ? stride : 1};
    return dnnl_memory_desc_init_by_strides(out, 2, dims, dtype == WEFT_F32 ? dnnl_f32 : dnnl_bf16,
                                            strides);
}

static dnnl_status_t set_scale_and_sum(dnnl_primitive_attr_t attributes,
                                       const struct weft_product *p)
{
    dnnl_post_ops_t post_ops = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&post_ops);
    if (status == dnnl_success && p->alpha != 1) {
        status = dnnl_post_ops_append_eltwise(post_ops, 1, dnnl_eltwise_linear, p->alpha, 0);
    }
    if (status == dnnl_success && p->accumulate) status = dnnl_post_ops_append_sum(post_ops, 1);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attributes, post_ops);
    if (post_ops) dnnl_post_ops_destroy(post_ops);
    return status;
}

static dnnl_status_t create_primitive(const struct state *state, const struct weft_product *p,
                                      const dnnl_memory_desc_t of[3], dnnl_primitive_t *out)
{
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t primitive_desc = NULL;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, &of[0], &of[1], NULL, &of[2]);
    if (status == dnnl_success) status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success) status = set_scale_and_sum(attributes, p);
    if (status == dnnl_success)
        status =
            dnnl_primitive_desc_create(&primitive_desc, &desc, attributes, state->engine, NULL);
    if (status == dnnl_success) status = dnnl_primitive_create(out, primitive_desc);
    if (primitive_desc) dnnl_primitive_desc_destroy(primitive_desc);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t create_matmul(const struct state *state, const struct weft_product *p,
                                   struct matmul *out)
{
    dnnl_memory_desc_t of[3];
    dnnl_status_t status =
        describe_operand(&of[0], p->m, p->k, p->dtype, p->transpose_a, p->a_stride);
    if (status == dnnl_success)
        status = describe_operand(&of[1], p->k, p->n, p->dtype, p->transpose_b, p->b_stride);
    if (status == dnnl_success)
        status = describe_operand(&of[2], p->m, p->n, p->c_dtype, false, p->c_stride);
    if (status == dnnl_success) status = create_primitive(state, p, of, &out->primitive);
    if (status == dnnl_success)
        status = dnnl_memory_create(&out->a, &of[0], state->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&out->b, &of[1], state->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&out->c, &of[2], state->engine, DNNL_MEMORY_NONE);
    if (status != dnnl_success) {
        drop_matmul(out);
        return status;
    }
    out->kind = *p;
    return dnnl_success;
}

/* Finds the primitive for this kind of product, or makes it. The search begins at a place given by
 * the sizes. If all places are taken, it replaces the first one. */
static dnnl_status_t find_matmul(const struct state *state, struct worker *worker,
                                 const struct weft_product *p, struct matmul **out)
{
    const uint64_t mixed = ((uint64_t)p->m * 31 + (uint64_t)p->n) * 31 + (uint64_t)p->k +
                           7 * p->transpose_a + 13 * p->transpose_b;
    const size_t first = (size_t)(mixed % MATMULS);
    for (size_t i = 0; i < MATMULS; i++) {
        struct matmul *matmul = &worker->matmuls[(first + i) % MATMULS];
        *out = matmul;
        if (matmul->kind.m == 0) return create_matmul(state, p, matmul);
        if (same_kind(&matmul->kind, p)) return dnnl_success;
    }
    *out = &worker->matmuls[first];
    drop_matmul(*out);
    return create_matmul(state, p, *out);
}

/* Drops const: a memory object's data is not const, though a and b are only read. */
static void *drop_const(const void *data)
{
    union {
        const void *from;
        void *to;
    } same = {data};
    return same.to;
}

static dnnl_status_t run_matmul(const struct state *state, struct worker *worker,
                                const struct weft_product *p)
{
    struct matmul *matmul = NULL;
    dnnl_status_t status = find_matmul(state, worker, p, &matmul);
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(matmul->a, drop_const(p->a));
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(matmul->b, drop_const(p->b));
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(matmul->c, p->c);
    if (status == dnnl_success) {
        const dnnl_exec_arg_t arguments[] = {
            {DNNL_ARG_SRC, matmul->a}, {DNNL_ARG_WEIGHTS, matmul->b}, {DNNL_ARG_DST, matmul->c}};
        status = dnnl_primitive_execute(matmul->primitive, worker->stream, 3, arguments);
    }
    if (status == dnnl_success) status = dnnl_stream_wait(worker->stream);
    return status;
}

static bool has_dtype(struct state *state, enum weft_dtype dtype)
{
    const struct weft_product probe = {.dtype = WEFT_BF16,
                                       .c_dtype = WEFT_BF16,
                                       .m = 64,
                                       .n = 64,
                                       .k = 64,
                                       .a_stride = 64,
                                       .b_stride = 64,
                                       .c_stride = 64,
                                       .alpha = 1};
    struct matmul made = {0};
    const bool can = dtype == WEFT_BF16 && create_matmul(state, &probe, &made) == dnnl_success;
    drop_matmul(&made);
    return can;
}

#else

static dnnl_status_t run_matmul(const struct state *state, struct worker *worker,
                                const struct weft_product *p)
{
    (void)state, (void)worker, (void)p;
    return dnnl_unimplemented;
}

static bool has_dtype(struct state *state, enum weft_dtype dtype)
{
    (void)state;
    (void)dtype;
    return false;
}

#endif

static dnnl_status_t run_sgemm(const struct weft_product *p)
{
    return dnnl_sgemm(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', p->m, p->n, p->k,
                      p->alpha, p->a, p->a_stride, p->b, p->b_stride, p->accumulate ? 1.0f : 0.0f,
                      p->c, p->c_stride);
}

/* A piece of a product: at most m rows and n columns of c from [i, j] on, and `depth` of k. */
static struct weft_product piece_of(const struct weft_product *p, int64_t i, int64_t j, int64_t k,
                                    int64_t m, int64_t n, int64_t depth)
{
    struct weft_product piece = *p;
    const int64_t a_at = p->transpose_a ? k * p->a_stride + i : i * p->a_stride + k;
    const int64_t b_at = p->transpose_b ? j * p->b_stride + k : k * p->b_stride + j;
    const int64_t bytes = weft_dtype_bytes(p->dtype), c_bytes = weft_dtype_bytes(p->c_dtype);
    piece.a = (const char *)p->a + a_at * bytes;
    piece.b = (const char *)p->b + b_at * bytes;
    piece.c = (char *)p->c + (i * p->c_stride + j) * c_bytes;
    piece.m = m < p->m - i ? m : p->m - i;
    piece.n = n < p->n - j ? n : p->n - j;
    piece.k = depth < p->k - k ? depth : p->k - k;
    piece.accumulate = p->accumulate || k > 0;
    return piece;
}

/* Parts of a product's rows, or of its columns if there are more. They follow from the shape alone,
 * so bits do too. They are even in number, for two threads. Smaller ones pack an operand too often:
 * with 256 rows or columns a product takes up to a fifth longer, with 512 up to a twentieth. */
static int64_t parts_of(const struct weft_product *p)
{
    enum { LEAST = 256, TWO_PARTS = 1024 };
    const int64_t longer = p->m > p->n ? p->m : p->n;
    return longer < LEAST ? 1 : 2 * ((longer + TWO_PARTS - 1) / TWO_PARTS);
}

/* Rounds up to whole lines of a cache. */
static int64_t share_of(int64_t size, int64_t parts)
{
    enum { LINE = 16 };
    const int64_t share = (size + parts - 1) / parts;
    return (share + LINE - 1) / LINE * LINE;
}

/* Part `i` of `parts`; the last ones may be empty. */
static struct weft_product part_of(const struct weft_product *p, int64_t i, int64_t parts)
{
    const bool rows = p->m > p->n;
    const int64_t size = rows ? p->m : p->n, share = share_of(size, parts);
    const int64_t at = i * share < size ? i * share : size;
    return rows ? piece_of(p, at, 0, 0, share, p->n, p->k)
                : piece_of(p, 0, at, 0, p->m, share, p->k);
}

static dnnl_status_t run_part(struct state *state, int32_t thread, const struct weft_product *part)
{
    take_one_thread();
    if (part->m == 0 || part->n == 0) return dnnl_success;
    return part->dtype == WEFT_F32 ? run_sgemm(part)
                                   : run_matmul(state, &state->workers[thread], part);
}

/* A thread takes every `threads`th part. */
static enum weft_status run_parts(struct state *state, const struct weft_product *p,
                                  struct weft_error *err)
{
    const int64_t parts = parts_of(p);
    const int32_t threads = state->threads;
    dnnl_status_t failed = dnnl_success;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1 && parts > 1)
#endif
    for (int32_t thread = 0; thread < threads; thread++) {
        for (int64_t i = thread; i < parts; i += threads) {
            const struct weft_product part = part_of(p, i, parts);
            const dnnl_status_t status = run_part(state, thread, &part);
            if (status == dnnl_success) continue;
#ifdef _OPENMP
#pragma omp atomic write
#endif
            failed = status;
        }
    }
    return failed == dnnl_success ? WEFT_OK : fail_product(p, failed, err);
}

/* Transposes [k, n] floats into rows of k. Threads share columns. */
static void turn_operand(const struct state *state, int64_t k, int64_t n, const float *from,
                         int64_t from_stride, float *to, int64_t to_stride)
{
    const int32_t threads = state->threads;
    const int64_t share = share_of(n, threads);
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
#endif
    for (int32_t i = 0; i < threads; i++) {
        const int64_t at = i * share, left = n - at;
        if (left > 0)
            weft_kernels_best()->turn(k, left < share ? left : share, from + at, from_stride,
                                      to + at * to_stride, to_stride);
    }
}

static void turn_b(const struct state *state, struct weft_product *p, float *to, int64_t stride)
{
    turn_operand(state, p->k, p->n, p->b, p->b_stride, to, stride);
    p->transpose_b = true;
    p->b = to;
    p->b_stride = stride;
}

static void turn_a(const struct state *state, struct weft_product *p, float *to, int64_t stride)
{
    turn_operand(state, p->k, p->m, p->a, p->a_stride, to, stride);
    p->transpose_a = false;
    p->a = to;
    p->a_stride = stride;
}

/* Products of gradients by weights have a and b both stored by k, and run in pieces of k. Packing
 * takes a line from each row of a piece. With 2048 rows in different pages a product takes up to a
 * third longer. Transposed operands, with k along rows, are up to a tenth faster. */
static enum weft_status run_by_k(struct state *state, const struct weft_product *p,
                                 struct weft_error *err)
{
    enum { PIECE = 512, LEAST_TURNED = 256 };
    const bool turned = state->turned && p->m >= LEAST_TURNED && p->n >= LEAST_TURNED;
    const int64_t side = turned ? TURNED_SIDE : INT64_MAX, piece = turned ? TURNED_PIECE : PIECE;
    for (int64_t j = 0; j < p->n; j += side < p->n ? side : p->n) {
        for (int64_t i = 0; i < p->m; i += side < p->m ? side : p->m) {
            for (int64_t k = 0; k < p->k; k += piece) {
                struct weft_product q = piece_of(p, i, j, k, side, side, piece);
                if (turned) {
                    turn_a(state, &q, state->turned, TURNED_STRIDE);
                    turn_b(state, &q, state->turned + TURNED_SIDE * TURNED_STRIDE, TURNED_STRIDE);
                }
                WEFT_TRY(run_parts(state, &q, err));
            }
        }
    }
    return WEFT_OK;
}

/* Transposes weights that are wider than high, if c has enough rows to repay it. */
static enum weft_status run_f32(struct state *state, const struct weft_product *p,
                                struct weft_error *err)
{
    enum { LEAST_ROWS = 1024, PAD = TURNED_STRIDE - TURNED_PIECE };
    if (p->transpose_a && !p->transpose_b) return run_by_k(state, p, err);
    struct weft_product turned = *p;
    if (state->turned && !p->transpose_b && p->m >= LEAST_ROWS && p->n <= p->k &&
        p->k <= TURNED_ELEMENTS && p->n * (p->k + PAD) <= TURNED_ELEMENTS)
        turn_b(state, &turned, state->turned, p->k + PAD);
    return run_parts(state, &turned, err);
}

static enum weft_status run_onednn(void *opaque, const struct weft_multiplier_link *next,
                                   const struct weft_product *p, struct weft_error *err)
{
    (void)next;
    struct state *state = opaque;
    return p->dtype == WEFT_F32 ? run_f32(state, p, err) : run_parts(state, p, err);
}

static bool covers_product(const void *opaque, const struct weft_product *product)
{
    const struct state *state = opaque;
    return product->dtype == WEFT_F32 || state->narrow;
}

const struct weft_multiplier weft_multiplier_onednn = {
    .name = "onednn",
    .title = "oneDNN",
    .dtypes = WEFT_EVERY_DTYPE,
    .open = open_state,
    .close = close_state,
    .version = write_version,
    .instructions = show_instructions,
    .covers = covers_product,
    .run = run_onednn,
};
