/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores and their input: a warp's products of 16 x 8 x 16, matrices of 8 x 8 from shared
 * memory, and asynchronous copies to it. T is bf16 or f16. Two of them make a word, the first in
 * its lower half.
 *
 * Fragments are as in the PTX ISA. Lane l = 4 g + t has, of c [16, 8], rows g (words 0, 1) and g +
 * 8 (2, 3), columns 2 t and 2 t + 1. Of a [16, 16] it has words for the same rows, columns 2 t, 2 t
 * + 1 (words 0, 1) and 8 more (2, 3). Of b [16, 8] it has column g, rows as a's columns. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_TENSOR_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_TENSOR_H

#include "runtime/nn/cuda/kernels/access.h"
#include "runtime/nn/cuda/kernels/approximate.h"

#ifdef __CUDACC__

/* c += a b */
template <typename T>
GPU void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
GPU void multiply_add<bf16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
GPU void multiply_add<f16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Word i of lane 4 g + t is elements 2 t and 2 t + 1 of row g of matrix i. Lanes 8 i to 8 i + 7
 * give the addresses of its rows. Transposed, it is elements g of rows 2 t and 2 t + 1. */
GPU void load_matrices(uint32_t (&to)[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}
GPU void load_matrices_turned(uint32_t (&to)[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

/* Starts to copy 16 bytes, or writes 16 zeros if not `there`. A copy has ended for its thread once
 * at most N of its later committed groups are pending. Other threads see it after a barrier. */
GPU void start_copy(void *shared, const void *from, bool there)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared), bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}
GPU void commit_copies(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> GPU void wait_for_copies(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#else

template <typename T>
GPU void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    const uint32_t b[2] = {b0, b1};
    if (std::is_same<T, bf16>::value) {
        emu_mma_bf16(c, a, b);
    } else {
        emu_mma_f16(c, a, b);
    }
}
GPU void load_matrices(uint32_t (&to)[4], const void *row)
{
    emu_load_matrices(to, row, false);
}
GPU void load_matrices_turned(uint32_t (&to)[4], const void *row)
{
    emu_load_matrices(to, row, true);
}
GPU void start_copy(void *shared, const void *from, bool there)
{
    emu_start_copy(shared, from, there);
}
GPU void commit_copies(void)
{
    emu_commit_copies();
}
template <int N> GPU void wait_for_copies(void)
{
    emu_wait_for_copies(N);
}
#endif

#endif
