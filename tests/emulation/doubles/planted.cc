/* SPDX-License-Identifier: Apache-2.0 */
/* Every check of the doubles finds its planted mistake with all others off. Without the mistake
 * nothing is found. */
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/emulation/doubles/findings.h"

extern "C" bool weft_double_watches(void);

enum { BYTES = 4096, PAGE = 2 << 20 };

static cudaStream_t a, b;
static void *device, *pinned;

static void await(cudaStream_t stream)
{
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        usleep(100);
    }
}

static void uses_the_default_stream(bool mistake)
{
    (void)cudaMemsetAsync(device, 1, BYTES, mistake ? NULL : a);
}

static void copies_unpinned_memory(bool mistake)
{
    static char own[BYTES];
    (void)cudaMemcpyAsync(device, mistake ? own : pinned, BYTES, cudaMemcpyHostToDevice, a);
}

/* Allocates pages and pins them while `use` runs. */
static void with_pinned_pages(void (*use)(void *memory, bool mistake), bool mistake)
{
    void *memory =
        mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)cudaHostRegister(memory, BYTES, cudaHostRegisterDefault);
    use(memory, mistake);
    munmap(memory, 2 * BYTES);
}

static void copy_and_unpin(void *memory, bool mistake)
{
    (void)cudaMemcpyAsync(device, memory, BYTES + (mistake ? 1 : 0), cudaMemcpyHostToDevice, a);
    await(a);
    (void)cudaHostUnregister(memory);
}

static void copies_more_than_was_pinned(bool mistake)
{
    with_pinned_pages(copy_and_unpin, mistake);
}

static void unpin_and_again(void *memory, bool mistake)
{
    (void)cudaHostUnregister(memory);
    if (mistake) (void)cudaHostUnregister(memory);
}

static void unpins_twice(bool mistake)
{
    with_pinned_pages(unpin_and_again, mistake);
}

static void unmap_and_unpin(void *memory, bool mistake)
{
    if (mistake) munmap(memory, BYTES);
    (void)cudaHostUnregister(memory);
}

static void unpins_what_is_gone(bool mistake)
{
    with_pinned_pages(unmap_and_unpin, mistake);
}

static void copy_and_go_on(void *memory, bool mistake)
{
    (void)cudaMemcpyAsync(memory, device, BYTES, cudaMemcpyDeviceToHost, a);
    usleep(20000);
    if (!mistake) await(a);
    (void)cudaHostUnregister(memory);
}

static void unpins_while_a_stream_copies(bool mistake)
{
    with_pinned_pages(copy_and_go_on, mistake);
}

static void waits_for_no_record(bool mistake)
{
    cudaEvent_t event;
    (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (!mistake) (void)cudaEventRecord(event, b);
    (void)cudaStreamWaitEvent(a, event, 0);
    (void)cudaEventDestroy(event);
}

static void frees_twice(bool mistake)
{
    void *memory = NULL;
    (void)cudaMalloc(&memory, BYTES);
    (void)cudaFree(memory);
    if (mistake) (void)cudaFree(memory);
}

static void destroys_an_event_twice(bool mistake)
{
    cudaEvent_t event;
    (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    (void)cudaEventDestroy(event);
    if (mistake) (void)cudaEventDestroy(event);
}

/* The stream has finished by then. The mistake is that the host did not check it. */
static void frees_what_a_stream_may_use(bool mistake)
{
    void *memory = NULL;
    (void)cudaMalloc(&memory, BYTES);
    (void)cudaMemsetAsync(memory, 1, BYTES, a);
    usleep(20000);
    if (!mistake) await(a);
    (void)cudaFree(memory);
}

static void leaves_memory_behind(bool mistake)
{
    void *memory = NULL;
    (void)cudaMalloc(&memory, BYTES);
    if (!mistake) (void)cudaFree(memory);
    /* The program's own objects exist in both cases. */
    (void)cudaFree(device);
    (void)cudaFreeHost(pinned);
    (void)cudaStreamDestroy(a);
    (void)cudaStreamDestroy(b);
    weft_double_look_for_leaks();
    if (mistake) (void)cudaFree(memory);
    (void)cudaMalloc(&device, BYTES);
    (void)cudaHostAlloc(&pinned, BYTES, 0);
    (void)cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, 0);
    (void)cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, 0);
}

/* Registers as nvcc's host code does: void norm_pack(unsigned long const *, unsigned long *) of
 * sums.cu. */
static const char host_name[] = "the module's";
extern "C" void __cudaRegisterFunction(void **handle, const char *host, char *device_name,
                                       const char *name, int limit, uint3 *thread, uint3 *block,
                                       dim3 *block_size, dim3 *grid_size, int *warp_size);

static void launch_pack(const char *name, unsigned threads, void *bins, cudaStream_t stream)
{
    static const size_t words_at = 64 << 10;
    void *words = (char *)device + words_at;
    void *arguments[] = {&bins, &words};
    __cudaRegisterFunction(NULL, host_name, NULL, name, -1, NULL, NULL, NULL, NULL, NULL);
    (void)cudaLaunchKernel(host_name, dim3(1), dim3(threads), arguments, 16 << 10, stream);
}

static void launches_too_many_threads(bool mistake)
{
    launch_pack("_Z9norm_packPKmPm", mistake ? 2048 : 32, device, a);
}

static void launches_what_is_not_there(bool mistake)
{
    launch_pack(mistake ? "_Z9norm_lackPKmPm" : "_Z9norm_packPKmPm", 32, device, a);
}

static void waits_in_cuda(bool mistake)
{
    (void)cudaMemsetAsync(device, 1, BYTES, a);
    if (mistake) {
        (void)cudaStreamSynchronize(a);
    } else {
        await(a);
    }
}

static void fills_beyond_memory(bool mistake)
{
    (void)cudaMemsetAsync(device, 1, (128 << 10) + (mistake ? 1 : 0), a);
}

static void fills_in_two_streams(bool mistake)
{
    cudaEvent_t event;
    (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    (void)cudaMemsetAsync(device, 1, BYTES, a);
    (void)cudaEventRecord(event, a);
    usleep(20000); /* timing alone gives no order */
    if (!mistake) (void)cudaStreamWaitEvent(b, event, 0);
    (void)cudaMemsetAsync((char *)device + BYTES - 1, 2, BYTES, b);
    (void)cudaEventDestroy(event);
}

static void reads_in_a_kernel(bool mistake)
{
    cudaEvent_t event;
    (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    (void)cudaMemsetAsync(device, 0, BYTES, a);
    (void)cudaEventRecord(event, a);
    usleep(20000);
    if (!mistake) (void)cudaStreamWaitEvent(b, event, 0);
    launch_pack("_Z9norm_packPKmPm", 32, device, b);
    (void)cudaEventDestroy(event);
}

/* The cell has two pages. */
static void maps_from_the_middle_of_a_cell(bool mistake)
{
    CUmemAllocationProp what;
    CUmemGenericAllocationHandle cell;
    CUdeviceptr at;
    memset(&what, 0, sizeof(what));
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    (void)cuMemCreate(&cell, 2 * PAGE, &what, 0);
    (void)cuMemAddressReserve(&at, 2 * PAGE, 0, 0, 0);
    if (cuMemMap(at, PAGE, mistake ? PAGE : 0, cell, 0) == CUDA_SUCCESS) (void)cuMemUnmap(at, PAGE);
    (void)cuMemRelease(cell);
    (void)cuMemAddressFree(at, 2 * PAGE);
}

static void gives_back_what_is_mapped(bool mistake)
{
    CUmemAllocationProp what;
    CUmemGenericAllocationHandle cell;
    CUdeviceptr at;
    memset(&what, 0, sizeof(what));
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    (void)cuMemCreate(&cell, PAGE, &what, 0);
    (void)cuMemAddressReserve(&at, PAGE, 0, 0, 0);
    (void)cuMemMap(at, PAGE, 0, cell, 0);
    (void)cuMemRelease(cell);
    if (mistake) (void)cuMemAddressFree(at, PAGE);
    (void)cuMemUnmap(at, PAGE);
    (void)cuMemAddressFree(at, PAGE);
}

static const struct planted {
    const char *name;
    enum double_check check;
    void (*run)(bool mistake);
    bool needs_watch;
} planted[] = {
    {"uses the default stream", DOUBLE_DEFAULT_STREAM, uses_the_default_stream, false},
    {"copies unpinned memory", DOUBLE_UNPINNED, copies_unpinned_memory, false},
    {"copies more than was pinned", DOUBLE_UNPINNED, copies_more_than_was_pinned, false},
    {"unpins twice", DOUBLE_FREED_TWICE, unpins_twice, false},
    {"unpins what is gone", DOUBLE_FREED_TWICE, unpins_what_is_gone, false},
    {"unpins while a stream copies", DOUBLE_FREED_EARLY, unpins_while_a_stream_copies, false},
    {"waits for an event of no record", DOUBLE_NEVER_RECORDED, waits_for_no_record, false},
    {"frees twice", DOUBLE_FREED_TWICE, frees_twice, false},
    {"destroys an event twice", DOUBLE_FREED_TWICE, destroys_an_event_twice, false},
    {"frees what a stream may use", DOUBLE_FREED_EARLY, frees_what_a_stream_may_use, false},
    {"leaves memory behind", DOUBLE_LEAK, leaves_memory_behind, false},
    {"launches too many threads", DOUBLE_GEOMETRY, launches_too_many_threads, false},
    {"launches a kernel that is not there", DOUBLE_KERNEL, launches_what_is_not_there, false},
    {"waits in CUDA", DOUBLE_BLOCKING, waits_in_cuda, false},
    {"fills beyond its memory", DOUBLE_BOUNDS, fills_beyond_memory, false},
    {"maps from the middle of a cell", DOUBLE_BOUNDS, maps_from_the_middle_of_a_cell, false},
    {"gives back what is mapped", DOUBLE_FREED_TWICE, gives_back_what_is_mapped, false},
    {"fills in two streams", DOUBLE_ORDER, fills_in_two_streams, false},
    {"reads in a kernel what another stream fills", DOUBLE_ORDER, reads_in_a_kernel, true},
};
enum { N_PLANTED = sizeof(planted) / sizeof(planted[0]) };

/* Returns the number of findings of `check`. *others: there are findings of other checks. */
static int take_findings(enum double_check check, bool *others)
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

static int run_case(const struct planted *p, bool mistake)
{
    bool others = false;
    (void)cudaMalloc(&device, 128 << 10);
    (void)cudaHostAlloc(&pinned, BYTES, 0);
    (void)cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, 0);
    (void)cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, 0);
    weft_double_enable(mistake ? 1u << p->check : UINT32_MAX);
    p->run(mistake);
    await(a);
    await(b);
    const int found = take_findings(p->check, &others);
    (void)cudaFree(device);
    (void)cudaFreeHost(pinned);
    (void)cudaStreamDestroy(a);
    (void)cudaStreamDestroy(b);
    bool late = false;
    const bool clean = take_findings(DOUBLE_CHECK_COUNT, &late) == 0 && !late && !others;
    return clean && (found > 0) == mistake;
}

int main(void)
{
    int n = 0, failed = 0;
    bool found[DOUBLE_CHECK_COUNT] = {};
    for (int i = 0; i < N_PLANTED; i++) {
        const struct planted *p = &planted[i];
        if (p->needs_watch && !weft_double_watches()) continue;
        for (int mistake = 0; mistake < 2; mistake++) {
            const bool good = run_case(p, mistake != 0);
            printf("%sok %d - %s%s\n", good ? "" : "not ", ++n,
                   mistake != 0 ? "" : "nothing is found where nothing ", p->name);
            failed += !good;
            found[p->check] = found[p->check] || (good && mistake != 0);
        }
    }
    for (int i = 0; i < DOUBLE_OF_NCCL; i++) {
        printf("%sok %d - %s has found something\n", found[i] ? "" : "not ", ++n,
               weft_double_check_name((enum double_check)i));
        failed += !found[i];
    }
    printf("1..%d\n", n);
    return failed > 0;
}
