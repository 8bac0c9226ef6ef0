/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/finite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"

enum { LOOK_ELEMENTS = 1 << 16, OUTCOME_TEXT_BYTES = 1000 };

struct outcome {
    int32_t status;
    char text[OUTCOME_TEXT_BYTES];
};

/* Has no branch in the loop, so the compiler makes vectors. A NaN is below no limit. */
static bool all_below(const float *values, int64_t n, float limit)
{
    int above = 0;
    for (int64_t i = 0; i < n; i++)
        above |= !(fabsf(values[i]) < limit);
    return above == 0;
}

/* Index of the first value that is not finite in the dtype; n if all are. */
static int64_t find_infinite(const float *values, int64_t n, enum weft_dtype dtype)
{
    const float limit = weft_dtype_limit(dtype);
    int64_t at = 0;
    if (all_below(values, n, limit)) return n;
    while (fabsf(values[at]) < limit)
        at++;
    return at;
}

/* The narrowest dtype that holds a finite value which `dtype` does not. */
static enum weft_dtype wider_dtype(float value, enum weft_dtype dtype)
{
    const bool fits_bf16 = dtype == WEFT_F16 && fabsf(value) < weft_dtype_limit(WEFT_BF16);
    return fits_bf16 ? WEFT_BF16 : WEFT_F32;
}

enum weft_status weft_finite_check_read(const char *path, const char *tensor, int64_t first,
                                        int64_t n, const float *values, enum weft_dtype dtype,
                                        struct weft_error *err)
{
    const int64_t at = find_infinite(values, n, dtype);
    if (at == n) return WEFT_OK;
    if (!isfinite(values[at]))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: element %" PRId64 " of tensor %s is %g: training begins with finite "
                         "parameters; give an earlier checkpoint, or another file",
                         path, first + at, tensor, weft_units_unsigned_nan((double)values[at]));
    return weft_fail(err, WEFT_E_DATA,
                     "%s: element %" PRId64 " of tensor %s is %g, which is infinite in %s: set "
                     "train.precision.compute to \"%s\", which holds it",
                     path, first + at, tensor, (double)values[at], weft_dtype_name(dtype),
                     weft_dtype_name(wider_dtype(values[at], dtype)));
}

enum weft_status weft_finite_check(const struct weft_model *model,
                                   const struct weft_save_piece *piece, int64_t from, int64_t n,
                                   const float *values, struct weft_error *err)
{
    if (piece->state != WEFT_STATE_PARAMETER) return WEFT_OK;
    const int64_t at = find_infinite(values, n, piece->dtype);
    if (at == n) return WEFT_OK;
    return weft_fail(err, WEFT_E_NUMERIC,
                     "the model is dead: element %" PRId64 " of parameter %s is %g%s%s",
                     piece->first + from + at, model->tensors[piece->tensor].name,
                     weft_units_unsigned_nan((double)values[at]),
                     isfinite(values[at]) ? ", which is infinite in " : "",
                     isfinite(values[at]) ? weft_dtype_name(piece->dtype) : "");
}

static enum weft_status check_pieces(const struct weft_model *model,
                                     const struct weft_save_source *source, float *buffer,
                                     struct weft_error *err)
{
    struct weft_save_piece piece;
    source->rewind(source->context);
    while (source->next(source->context, &piece)) {
        if (piece.state != WEFT_STATE_PARAMETER) continue;
        for (int64_t from = 0; from < piece.count; from += LOOK_ELEMENTS) {
            int64_t left = piece.count - from, n = left < LOOK_ELEMENTS ? left : LOOK_ELEMENTS;
            WEFT_TRY(source->read(source->context, from, n, buffer, err));
            WEFT_TRY(weft_finite_check(model, &piece, from, n, buffer, err));
        }
    }
    return WEFT_OK;
}

static enum weft_status agree_on_first(struct weft_comm *comm, enum weft_status status,
                                       const struct weft_error *own, struct weft_error *err)
{
    int32_t ranks = weft_comm_ranks(comm), first = 0;
    struct outcome mine = {.status = (int32_t)status}, *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' outcomes");
    snprintf(mine.text, sizeof mine.text, "%.*s", OUTCOME_TEXT_BYTES - 1, own->text);
    status = weft_comm_exchange(comm, &mine, sizeof mine, all, err);
    while (status == WEFT_OK && first < ranks && all[first].status == WEFT_OK)
        first++;
    if (status == WEFT_OK && first < ranks)
        status = ranks == 1
                     ? weft_fail(err, (enum weft_status)all[first].status, "%s", all[first].text)
                     : weft_fail_of_rank(err, (enum weft_status)all[first].status, first,
                                         all[first].text);
    free(all);
    return status;
}

enum weft_status weft_finite_check_all(const struct weft_model *model,
                                       const struct weft_save_source *source,
                                       struct weft_comm *comm, struct weft_error *err)
{
    struct weft_error own = {0};
    float *buffer = malloc(LOOK_ELEMENTS * sizeof *buffer);
    enum weft_status status = buffer == NULL ? weft_fail_memory(&own, "a buffer for parameters")
                                             : check_pieces(model, source, buffer, &own);
    free(buffer);
    return agree_on_first(comm, status, &own, err);
}
