/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of a tensor's elements. Each reads every array once and writes the changed ones. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/kernels.h"
#include "runtime/nn/cuda/kernels/squares.h"
#include "runtime/nn/optimizers.h"

static_assert(sizeof(struct weft_cuda_step) == 64 && offsetof(struct weft_cuda_step, adamw) == 8 &&
                  sizeof(struct weft_adamw) == 40 && offsetof(struct weft_cuda_step, sgd) == 48,
              "three wide accesses have AdamW's scalars, the fourth SGD's");

/* Returns false if this step updates nothing. */
GPU bool read_adamw(const struct weft_cuda_step *step, float decay, struct weft_adamw *to)
{
    const uint4 a = load_16(step), b = load_16((const uint4 *)step + 1),
                c = load_16((const uint4 *)step + 2);
    *to = (struct weft_adamw){.lr = weft_float_of(a.z),
                              .eps = weft_float_of(a.w),
                              .decay = decay,
                              .clip = weft_float_of(b.y),
                              .beta1 = weft_float_of(b.z),
                              .beta2 = weft_float_of(b.w),
                              .rest1 = weft_float_of(c.x),
                              .rest2 = weft_float_of(c.y),
                              .correction1 = weft_float_of(c.z),
                              .correction2 = weft_float_of(c.w)};
    return a.x == 0;
}

GPU bool read_sgd(const struct weft_cuda_step *step, float decay, struct weft_sgd *to)
{
    const uint4 a = load_16(step), d = load_16((const uint4 *)step + 3);
    *to = (struct weft_sgd){.lr = weft_float_of(d.x),
                            .momentum = weft_float_of(d.y),
                            .decay = decay,
                            .clip = weft_float_of(d.w)};
    return a.x == 0;
}

/* The arrays of an update. T is the gradient's element, C the copy's. */
template <typename T, typename C> struct update_arrays {
    float *parameters;
    const T *gradients;
    float *moment1, *moment2;
    C *copy;

    bool is_aligned(int64_t i) const
    {
        return group_begins(parameters, 4, i) && group_begins(gradients, 4, i) &&
               group_begins(moment1, 4, i) && group_begins(moment2, 4, i) &&
               group_begins(copy, 4, i);
    }
};

/* An update of elements. O has the function of one of runtime/nn/optimizers/. */
template <typename T, typename C, typename O, int MOMENTS> struct update_op : update_arrays<T, C> {
    enum { GROUP = 4 };
    const struct weft_cuda_step *step;
    float decay;

    template <int N> GPU void at(int64_t i) const
    {
        struct weft_scalars s;
        float p[N], gradient[N], m[N], v[N];
        if (!O::read(step, decay, &s)) return;
        load<N>(this->parameters + i, p);
        load<N>(this->gradients + i, gradient);
        if constexpr (MOMENTS > 0) load<N>(this->moment1 + i, m);
        if constexpr (MOMENTS > 1) load<N>(this->moment2 + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) {
            struct weft_element e = {p[j], 0, 0};
            if constexpr (MOMENTS > 0) e.moment1 = m[j];
            if constexpr (MOMENTS > 1) e.moment2 = v[j];
            e = O::update(s, MOMENTS, gradient[j], e);
            p[j] = e.parameter;
            m[j] = e.moment1;
            v[j] = e.moment2;
        }
        if constexpr (MOMENTS > 0) store<N>(m, this->moment1 + i);
        if constexpr (MOMENTS > 1) store<N>(v, this->moment2 + i);
        store<N>(p, this->parameters + i);
        if (this->copy != NULL) store<N>(p, this->copy + i);
    }
};

/* The scalars that a kernel reads: SGD's are in words of their own. */
template <bool SGD>
GPU bool read_scalars(const struct weft_cuda_step *step, float decay, struct weft_scalars *to)
{
    if constexpr (SGD) return read_sgd(step, decay, &to->sgd);
    return read_adamw(step, decay, &to->adamw);
}

#define UPDATE(type, name, least, most)                                                            \
    struct name##_of_elements {                                                                    \
        enum { LEAST = least, MOST = most };                                                       \
        GPU static bool read(const struct weft_cuda_step *step, float decay,                       \
                             struct weft_scalars *to)                                              \
        {                                                                                          \
            return read_scalars<WEFT_##type == WEFT_SGD>(step, decay, to);                         \
        }                                                                                          \
        GPU static struct weft_element update(const struct weft_scalars &s, int moments,           \
                                              float gradient, const struct weft_element &from)     \
        {                                                                                          \
            return name##_update(s, moments, gradient, from);                                      \
        }                                                                                          \
    };
WEFT_ELEMENT_OPTIMIZERS(UPDATE)
#undef UPDATE

template <typename T> struct lamb_moments_op : update_arrays<T, float> {
    enum { GROUP = 4 };
    const struct weft_cuda_step *step;

    template <int N> GPU void at(int64_t i) const
    {
        struct weft_adamw a;
        float gradient[N], m[N], v[N];
        if (!read_adamw(step, 0, &a)) return;
        load<N>(this->gradients + i, gradient);
        load<N>(this->moment1 + i, m);
        load<N>(this->moment2 + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float g = a.clip * gradient[j];
            m[j] = adam_moment1(a, m[j], g);
            v[j] = adam_moment2(a, v[j], g);
        }
        store<N>(m, this->moment1 + i);
        store<N>(v, this->moment2 + i);
    }
};

/* LAMB's step of an element, computed once for the norm and once for the update. */
GPU float lamb_step(const struct weft_adamw &a, float parameter, float moment1, float moment2)
{
    return adam_step(a, moment1, moment2) + a.decay * parameter;
}

struct lamb_steps {
    enum { ARRAYS = 3 };
    typedef float element;
    const struct weft_cuda_step *step;
    float decay;
    const float *arrays[ARRAYS]; /* parameters and moments */

    GPU const float *array(int i) const
    {
        return arrays[i];
    }
    GPU float value(const float *of_arrays) const
    {
        struct weft_adamw a;
        (void)read_adamw(step, decay, &a);
        return lamb_step(a, of_arrays[0], of_arrays[1], of_arrays[2]);
    }
    bool is_aligned(int64_t i) const
    {
        enum { GROUP = squares_of<lamb_steps>::GROUP };
        return group_begins(arrays[0], GROUP, i) && group_begins(arrays[1], GROUP, i) &&
               group_begins(arrays[2], GROUP, i);
    }
};

template <typename C> struct lamb_apply_op : update_arrays<float, C> {
    enum { GROUP = 4 };
    const struct weft_cuda_step *step;
    float decay;
    const float *trust;

    template <int N> GPU void at(int64_t i) const
    {
        struct weft_adamw a;
        float p[N], m[N], v[N];
        if (!read_adamw(step, decay, &a)) return;
        const float by = -(a.lr * (trust != NULL ? *trust : 1.0f));
        load<N>(this->parameters + i, p);
        load<N>(this->moment1 + i, m);
        load<N>(this->moment2 + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) {
            p[j] = p[j] + by * lamb_step(a, p[j], m[j], v[j]);
        }
        store<N>(p, this->parameters + i);
        if (this->copy != NULL) store<N>(p, this->copy + i);
    }
};

template <typename T, typename C> static update_arrays<T, C> arrays_of(const struct weft_update *u)
{
    return {u->parameters, (const T *)u->gradients, u->moment1, u->moment2, (C *)u->copy};
}

/* Calls fn with elements of the gradient's dtype and of the copy's. A gradient of 16 bits has a
 * copy of the same dtype, or none. */
template <typename F> static int with_dtypes(const struct weft_update *u, F fn)
{
    if (u->gradient_dtype == WEFT_F32) {
        const enum weft_dtype dtype = u->copy == NULL ? WEFT_F32 : u->copy_dtype;
        return with_dtype(dtype, [&](auto copy) { return fn(float(), copy); });
    }
    if (u->copy != NULL && u->copy_dtype != u->gradient_dtype) return cudaErrorInvalidValue;
    return with_dtype(u->gradient_dtype, [&](auto both) { return fn(both, both); });
}

template <typename O>
static int launch_update(const struct weft_cuda_step *step, float decay,
                         const struct weft_update *u, struct CUstream_st *stream)
{
    return with_dtypes(u, [&](auto gradient, auto copy) {
        typedef decltype(gradient) T;
        typedef decltype(copy) C;
        const update_arrays<T, C> arrays = arrays_of<T, C>(u);
        if constexpr (O::LEAST == 0) {
            if (u->moment1 == NULL)
                return launch_each(update_op<T, C, O, 0>{arrays, step, decay}, u->n, stream);
        }
        return launch_each(update_op<T, C, O, O::MOST>{arrays, step, decay}, u->n, stream);
    });
}

int weft_cuda_update(enum weft_optimizer_type type, const struct weft_cuda_step *step, float decay,
                     const struct weft_update *u, struct CUstream_st *stream)
{
#define UPDATE(row, name, least, most)                                                             \
    if (type == WEFT_##row) return launch_update<name##_of_elements>(step, decay, u, stream);
    WEFT_ELEMENT_OPTIMIZERS(UPDATE)
#undef UPDATE
    return cudaErrorInvalidValue;
}

int weft_cuda_lamb_moments(const struct weft_cuda_step *step, const struct weft_update *u,
                           struct CUstream_st *stream)
{
    return with_dtype(u->gradient_dtype, [&](auto gradient) {
        typedef decltype(gradient) T;
        update_arrays<T, float> arrays = arrays_of<T, float>(u);
        arrays.parameters = arrays.copy = NULL;
        return launch_each(lamb_moments_op<T>{arrays, step}, u->n, stream);
    });
}

int weft_cuda_lamb_squares(const struct weft_cuda_step *step, float decay,
                           const struct weft_update *u, uint64_t *bins, struct CUstream_st *stream)
{
    const lamb_steps source = {step, decay, {u->parameters, u->moment1, u->moment2}};
    return launch_squares(source, u->n, bins, stream);
}

int weft_cuda_lamb_apply(const struct weft_cuda_step *step, float decay, const float *trust,
                         const struct weft_update *u, struct CUstream_st *stream)
{
    return with_dtype(u->copy_dtype, [&](auto copy) {
        typedef decltype(copy) C;
        update_arrays<float, C> arrays = arrays_of<float, C>(u);
        arrays.gradients = NULL;
        return launch_each(lamb_apply_op<C>{arrays, step, decay, trust}, u->n, stream);
    });
}
