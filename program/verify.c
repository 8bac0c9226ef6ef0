/* SPDX-License-Identifier: Apache-2.0 */
#include "program/verify.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "program/lifetime.h"
#include "program/program_text.h"

static enum weft_status check_limit(const struct weft_program *program, int64_t limit_bytes,
                                    struct weft_error *err)
{
    int64_t pages_bytes;
    if (!weft_checked_mul(program->paging->n_pages, program->paging->page_bytes, &pages_bytes) ||
        pages_bytes != program->arena_bytes) {
        return weft_fail(err, WEFT_E_DATA,
                         "program: %d pages of %" PRId64 " bytes are no arena of %" PRId64 " bytes",
                         program->paging->n_pages, program->paging->page_bytes,
                         program->arena_bytes);
    }
    int64_t outside_bytes;
    if (program->base_bytes < 0 || program->staging_bytes < 0 || program->arena_bytes < 0 ||
        !weft_checked_add(program->base_bytes, program->staging_bytes, &outside_bytes) ||
        outside_bytes > limit_bytes || program->arena_bytes > limit_bytes - outside_bytes) {
        return weft_fail(err, WEFT_E_DATA,
                         "program: base %" PRId64 " bytes, ring %" PRId64
                         " bytes and arena %" PRId64 " bytes exceed the limit of %" PRId64 " bytes",
                         program->base_bytes, program->staging_bytes, program->arena_bytes,
                         limit_bytes);
    }
    return WEFT_OK;
}

static enum weft_status compare_lives(const struct weft_program *program,
                                      const struct weft_life *lives, struct weft_error *err)
{
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        for (int32_t p = 0; p < buffer->n_pieces; p++, lives++) {
            struct weft_life said = buffer->lives[p];
            if (said.first == lives->first && said.last == lives->last) continue;
            char name[WEFT_PROGRAM_NAME_BYTES];
            return weft_fail(err, WEFT_E_DATA,
                             "program: %s is said to live in slots %d to %d; its instructions use "
                             "it in %d to %d",
                             weft_program_piece_name(program, b, p, name), said.first, said.last,
                             lives->first, lives->last);
        }
    }
    return WEFT_OK;
}

static enum weft_status check_live(const struct weft_program *program, const int64_t *rows,
                                   struct weft_error *err)
{
    int64_t most = 0;
    for (int32_t s = 0; s < program->n_slots; s++) {
        int64_t live = -weft_program_outside_bytes(program);
        for (int32_t c = 0; c < WEFT_CATEGORY_COUNT; c++)
            live += rows[s * WEFT_CATEGORY_COUNT + c];
        if (live > most) most = live;
    }
    if (most != program->live_bytes || most > program->arena_bytes) {
        return weft_fail(err, WEFT_E_DATA,
                         "program: at most %" PRId64 " bytes are live; it says %" PRId64
                         ", in an arena of %" PRId64,
                         most, program->live_bytes, program->arena_bytes);
    }
    return WEFT_OK;
}

/* Compares the lives used for paging with the lives by the instructions. */
static enum weft_status check_lives(const struct weft_program *program, struct weft_error *err)
{
    size_t n_rows = (size_t)program->n_slots * WEFT_CATEGORY_COUNT;
    struct weft_life *lives = calloc((size_t)weft_program_pieces(program) + 1, sizeof *lives);
    int64_t *rows = calloc(n_rows, sizeof *rows);
    enum weft_status status;
    if (lives == NULL || rows == NULL) {
        status = weft_fail_memory(err, "lifetimes");
        goto done;
    }
    WEFT_TRY_GOTO(done, weft_program_lives(program, lives, err));
    WEFT_TRY_GOTO(done, compare_lives(program, lives, err));
    weft_program_live(program, rows);
    status = check_live(program, rows, err);
done:
    free(lives);
    free(rows);
    return status;
}

enum weft_status weft_program_verify(const struct weft_program *program, int64_t limit_bytes,
                                     struct weft_error *err)
{
    WEFT_TRY(weft_verify_form(program, err));
    WEFT_TRY(check_limit(program, limit_bytes, err));
    struct weft_order order;
    WEFT_TRY(weft_order_init(&order, program, err));
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_verify_step(program, &order, err));
    WEFT_TRY_GOTO(done, weft_verify_memory(program, &order, err));
    status = check_lives(program, err);
done:
    weft_order_finish(&order);
    return status;
}
