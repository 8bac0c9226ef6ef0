/* SPDX-License-Identifier: Apache-2.0 */
/* A double of libcuda: the functions that map memory. A cell is an unnamed file. A range is
 * inaccessible until a cell is mapped there and access is set. */
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda.h>

#include "tests/emulation/doubles/double.h"

enum { GRANULARITY = 2 << 20 };
static const size_t MEMORY_BYTES = (size_t)4 << 30; /* the same as in cudaMemGetInfo */

struct cell {
    int fd;
    size_t bytes;
    int maps;
    bool released;
};
struct mapped {
    size_t bytes;
    struct cell *cell;
};

/* Never freed: see handles() of cudart.cc. */
struct space {
    std::map<CUdeviceptr, size_t> reserved;
    std::map<CUdeviceptr, struct mapped> mapped;
    std::map<struct cell *, int> cells;
};

static struct space *space(void)
{
    static struct space *const all = new struct space();
    return all;
}

#define ENTER                                                                                      \
    const std::lock_guard<std::mutex> door(double_door);                                           \
    do {                                                                                           \
        const cudaError_t code_ = double_enter(__func__, DOUBLE_PLACE);                            \
        if (code_ != cudaSuccess) return (CUresult)code_;                                          \
    } while (0)

static bool is_whole(size_t value)
{
    return value > 0 && value % GRANULARITY == 0;
}

/* True if [at, at + bytes) lies in one reservation. */
static bool is_reserved(CUdeviceptr at, size_t bytes)
{
    auto next = space()->reserved.upper_bound(at);
    if (next == space()->reserved.begin()) return false;
    --next;
    return at + bytes <= next->first + next->second;
}

static bool overlaps(CUdeviceptr at, size_t bytes)
{
    auto next = space()->mapped.lower_bound(at + bytes);
    if (next == space()->mapped.begin()) return false;
    --next;
    return next->first + next->second.bytes > at;
}

static void drop_cell(struct cell *cell)
{
    if (cell->maps > 0 || !cell->released) return;
    close(cell->fd);
    space()->cells.erase(cell);
    double_memory_add_cell(-(int64_t)cell->bytes);
    delete cell;
}

/* cudart's double reports findings, and it is destroyed later. */
__attribute__((destructor)) static void look_for_leaks(void)
{
    const size_t ranges = space()->reserved.size(), cells = space()->cells.size();
    if (ranges + cells == 0) return;
    weft_double_find(DOUBLE_LEAK, "%zu ranges of addresses and %zu cells are left", ranges, cells);
}

extern "C" {

CUresult cuInit(unsigned flags)
{
    ENTER;
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_SUCCESS ? "no error" : "an error of the double";
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *what,
                                       CUmemAllocationGranularity_flags option)
{
    ENTER;
    (void)what;
    (void)option;
    *bytes = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
    ENTER;
    if (!is_whole(bytes) || alignment > GRANULARITY || wanted != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    char *memory = (char *)mmap(NULL, bytes + GRANULARITY, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const size_t before = (GRANULARITY - (uintptr_t)memory % GRANULARITY) % GRANULARITY;
    if (before > 0) munmap(memory, before);
    munmap(memory + before + bytes, GRANULARITY - before);
    *at = (CUdeviceptr)(memory + before);
    space()->reserved[*at] = bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    ENTER;
    const auto found = space()->reserved.find(at);
    if (found == space()->reserved.end() || found->second != bytes || overlaps(at, bytes)) {
        weft_double_find(DOUBLE_FREED_TWICE,
                         "%#llx is given back, and is not reserved or not "
                         "empty",
                         at);
        return CUDA_ERROR_INVALID_VALUE;
    }
    munmap((void *)at, bytes);
    space()->reserved.erase(found);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *what, unsigned long long flags)
{
    ENTER;
    if (!is_whole(bytes) || flags != 0 || what->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        what->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (double_memory_device_bytes() + bytes > MEMORY_BYTES) return CUDA_ERROR_OUT_OF_MEMORY;
    const int fd = memfd_create("weft-double", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        if (fd >= 0) close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct cell *made = new cell{fd, bytes, 0, false};
    space()->cells[made] = 1;
    double_memory_add_cell((int64_t)bytes);
    *handle = (CUmemGenericAllocationHandle)made;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER;
    struct cell *cell = (struct cell *)handle;
    if (space()->cells.count(cell) == 0 || cell->released) {
        weft_double_find(DOUBLE_FREED_TWICE, "a cell is released that is not there");
        return CUDA_ERROR_INVALID_VALUE;
    }
    cell->released = true;
    drop_cell(cell);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    ENTER;
    struct cell *cell = (struct cell *)handle;
    if (space()->cells.count(cell) == 0 || cell->released || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_whole(bytes) || at % GRANULARITY != 0 || offset != 0 || bytes > cell->bytes) {
        weft_double_find(DOUBLE_BOUNDS, "%zu bytes from %zu on of a cell of %zu cannot be mapped",
                         bytes, offset, cell->bytes);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_reserved(at, bytes) || overlaps(at, bytes)) {
        weft_double_find(DOUBLE_BOUNDS, "a cell is mapped where nothing is reserved, or where "
                                        "another is");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (mmap((void *)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, cell->fd, 0) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    cell->maps++;
    space()->mapped[at] = {bytes, cell};
    double_memory_add((void *)at, bytes, DOUBLE_MAPPED);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    ENTER;
    if (n != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
        !double_memory_is_device((void *)at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return mprotect((void *)at, bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
}

/* Writes a word of pinned memory, which the host may read meanwhile. */
CUresult cuStreamWriteValue32(CUstream given, CUdeviceptr at, cuuint32_t word, unsigned flags)
{
    ENTER;
    struct double_stream *stream = (struct double_stream *)given;
    if (flags != 0 || at % sizeof(uint32_t) != 0 ||
        !double_memory_has((void *)at, sizeof(uint32_t), DOUBLE_PINNED))
        return CUDA_ERROR_INVALID_VALUE;
    double_issue(stream, "a word", [=](uint32_t id) {
        (void)id;
        __atomic_store_n((uint32_t *)at, word, __ATOMIC_SEQ_CST);
    });
    return CUDA_SUCCESS;
}

/* Waits until a word of pinned memory, which the host writes, is `word` or later (modulo 2^32). */
CUresult cuStreamWaitValue32(CUstream given, CUdeviceptr at, cuuint32_t word, unsigned flags)
{
    ENTER;
    struct double_stream *stream = (struct double_stream *)given;
    if (flags != CU_STREAM_WAIT_VALUE_GEQ || at % sizeof(uint32_t) != 0 ||
        !double_memory_has((void *)at, sizeof(uint32_t), DOUBLE_PINNED))
        return CUDA_ERROR_INVALID_VALUE;
    if (double_drops("a wait for a word")) return CUDA_SUCCESS;
    double_issue(stream, "a wait for a word", nullptr, NULL, false, [=] {
        return (int32_t)(__atomic_load_n((uint32_t *)at, __ATOMIC_SEQ_CST) - word) >= 0;
    });
    return CUDA_SUCCESS;
}

/* Unmaps whole pieces, as they were mapped. */
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    ENTER;
    const CUdeviceptr end = at + bytes;
    while (at < end) {
        const auto found = space()->mapped.find(at);
        if (found == space()->mapped.end() || at + found->second.bytes > end) {
            weft_double_find(DOUBLE_FREED_TWICE, "%#llx is unmapped, and nothing is mapped there",
                             at);
            return CUDA_ERROR_INVALID_VALUE;
        }
        const struct mapped piece = found->second;
        double_memory_remove((void *)at, DOUBLE_MAPPED);
        if (mmap((void *)at, piece.bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
            abort();
        space()->mapped.erase(found);
        piece.cell->maps--;
        drop_cell(piece.cell);
        at += piece.bytes;
    }
    return CUDA_SUCCESS;
}

} /* extern "C" */
