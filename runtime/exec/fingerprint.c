#include <stdlib.h>
#include <string.h>

#include "runtime/exec/parts.h"

/* The finaliser of splitmix64 (Steele, Lea and Flood 2014), a bijection that mixes all bits. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* One element of one tensor; two independent hashes of it are added up. */
static void add_element(struct weft_hash *sum, uint64_t name, uint64_t element, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t place = mix(name + element * UINT64_C(0x9e3779b97f4a7c15));
    sum->high += mix(place ^ bits);
    sum->low += mix(place + ((uint64_t)bits << 32 | 0x5bd1e995u));
}

enum weft_status weft_exec_fingerprint(struct weft_exec *exec, struct weft_hash *out,
                                       struct weft_error *err)
{
    const struct weft_tensor *tensors = exec->options.config->model->tensors;
    struct weft_hash mine = {0}, sum = {0};
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        for (int64_t i = 0; i < unit->n_own; i++) {
            const struct weft_piece *piece = &unit->own[i];
            const float *values = exec_values_at(unit, piece);
            uint64_t name = weft_hash_string(tensors[piece->tensor].name);
            for (int64_t e = 0; e < piece->count; e++)
                add_element(&mine, name, (uint64_t)(piece->tensor_begin + e), values[e]);
        }
    }
    struct weft_hash *all = calloc((size_t)exec->ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' fingerprints");
    enum weft_status status = weft_comm_exchange(exec->options.comm, &mine, sizeof mine, all, err);
    for (int32_t r = 0; r < exec->ranks && status == WEFT_OK; r++) {
        sum.high += all[r].high;
        sum.low += all[r].low;
    }
    free(all);
    if (status == WEFT_OK) *out = sum;
    return status;
}
