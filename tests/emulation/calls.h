/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a kernel with parameters that were copied at its launch. A part of emu.h. */
#ifndef WEFT_TESTS_EMULATION_CALLS_H
#define WEFT_TESTS_EMULATION_CALLS_H

#include <tuple>
#include <typeinfo>
#include <utility>

#include <cuda_runtime_api.h>

typedef void emu_call(const void *kernel, const void *parameters);
struct emu_kernel {
    const void *code;
    emu_call *call;
    const void *parameters;
    size_t parameter_bytes;
};
cudaError_t emu_launch(const struct emu_kernel *kernel, dim3 grid, dim3 block, size_t shared_bytes,
                       cudaStream_t stream);

template <typename... P> struct emu_parameters {
    std::tuple<P...> values;
    template <size_t... I>
    emu_parameters(void **from, std::index_sequence<I...>) : values(*(P *)from[I]...)
    {
    }
    static void call(const void *code, const void *values)
    {
        std::apply((void (*)(P...))code, ((const emu_parameters<P...> *)values)->values);
    }
};

/* Calls a kernel by its parameters' types, for doubles/, which know only its name. */
struct emu_signature {
    const char *type; /* mangled type of a function with these parameters */
    void *(*copy)(void **arguments);
    void (*drop)(void *copy);
    emu_call *call;
    size_t bytes;
};
bool emu_signature_add(const struct emu_signature *signature);

template <typename... P> struct emu_signed {
    static void *copy(void **arguments)
    {
        return new emu_parameters<P...>(arguments, std::index_sequence_for<P...>());
    }
    static void drop(void *copy)
    {
        delete (emu_parameters<P...> *)copy;
    }
    static const struct emu_signature signature;
    static const bool known;
};
template <typename... P> const struct emu_signature emu_signed<P...>::signature = {
    typeid(void(P...)).name(), copy, drop, emu_parameters<P...>::call, sizeof(emu_parameters<P...>)
};
template <typename... P>
const bool emu_signed<P...>::known = emu_signature_add(&emu_signed<P...>::signature);

/* CUDA's template of this name: copies the parameters at the call. */
template <typename... P>
static inline cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                                           void **arguments, size_t shared_bytes,
                                           cudaStream_t stream)
{
    const emu_parameters<P...> parameters(arguments, std::index_sequence_for<P...>());
    const struct emu_kernel what = {(const void *)kernel, emu_parameters<P...>::call, &parameters,
                                    sizeof(parameters)};
    (void)emu_signed<P...>::known;
    return emu_launch(&what, grid, block, shared_bytes, stream);
}

#endif
