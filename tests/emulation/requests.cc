/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/requests.h"

#include <algorithm>
#include <unordered_map>

enum { LANES = 32, SECTOR_BYTES = 32, WORD_BYTES = 4, BANKS = 32 };

struct request {
    bool write, shared;
    size_t bytes;
    uintptr_t addresses[LANES]; /* 0: the lane does not take part */
};

struct place_hash {
    size_t operator()(const std::pair<const void *, uint32_t> &place) const
    {
        return std::hash<const void *>()(place.first) * 31 + place.second;
    }
};

static std::unordered_map<const void *, std::vector<uint32_t>> times;
static std::unordered_map<std::pair<const void *, uint32_t>, struct request, place_hash> requests;

void emu_requests_add(const void *site, uint32_t lane, const void *address, size_t bytes,
                      bool write, bool shared)
{
    std::vector<uint32_t> &of_site = times[site];
    if (of_site.empty()) of_site.resize(LANES);
    struct request &request = requests[{site, of_site[lane]++}];
    request.write = write;
    request.shared = shared;
    request.bytes = std::max(request.bytes, bytes);
    request.addresses[lane] = (uintptr_t)address;
}

/* Counts the units of `unit` bytes, and the bytes, that sorted addresses touch. */
static void count_touched(const struct request *r, size_t unit, int64_t *units, int64_t *bytes)
{
    uintptr_t next_unit = 0, next_byte = 0;
    *units = *bytes = 0;
    for (uintptr_t begin : r->addresses) {
        if (begin == 0) continue;
        const uintptr_t end = begin + r->bytes;
        const uintptr_t first = std::max(begin / unit, next_unit), last = (end - 1) / unit;
        if (last + 1 > first) *units += (int64_t)(last + 1 - first);
        next_unit = std::max(next_unit, last + 1);
        const uintptr_t from = std::max(begin, next_byte);
        if (end > from) *bytes += (int64_t)(end - from);
        next_byte = std::max(next_byte, end);
    }
}

static void add_global(const struct request *r, struct emu_traffic *traffic)
{
    int64_t sectors, bytes;
    count_touched(r, SECTOR_BYTES, &sectors, &bytes);
    traffic->requests++;
    traffic->sectors += sectors;
    traffic->least_sectors += (bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
    (r->write ? traffic->bytes_written : traffic->bytes_read) += sectors * SECTOR_BYTES;
}

/* Lanes are served in order, in groups with as many words as there are banks. A word that several
 * lanes read is read once. */
static void add_shared(const struct request *r, struct emu_traffic *traffic)
{
    const int words = r->bytes > WORD_BYTES ? (int)r->bytes / WORD_BYTES : 1;
    const int group = LANES / words;
    traffic->shared_requests++;
    for (int first = 0; first < LANES; first += group) {
        std::vector<uintptr_t> of_bank[BANKS];
        size_t most = 0;
        for (int i = first; i < first + group; i++) {
            if (r->addresses[i] == 0) continue;
            for (int word = 0; word < words; word++) {
                const uintptr_t at = r->addresses[i] / WORD_BYTES + (uintptr_t)word;
                std::vector<uintptr_t> &bank = of_bank[at % BANKS];
                if (std::find(bank.begin(), bank.end(), at) == bank.end()) bank.push_back(at);
                most = std::max(most, bank.size());
            }
        }
        traffic->passes += (int64_t)most;
        traffic->least_passes += most > 0;
    }
}

void emu_requests_end(struct emu_traffic *traffic)
{
    for (auto &entry : requests) {
        struct request &request = entry.second;
        if (request.shared) {
            add_shared(&request, traffic);
        } else {
            std::sort(request.addresses, request.addresses + LANES);
            add_global(&request, traffic);
        }
    }
    requests.clear();
    times.clear();
}
