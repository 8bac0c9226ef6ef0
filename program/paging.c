/* SPDX-License-Identifier: Apache-2.0 */
#include "program/paging.h"

#include "memory_model/pages/share.h"
#include "program/inputs.h"
#include "program/lifetime.h"

/* Whether placements do not change a buffer's life: it is of micro-steps and does not move. */
static bool lives_alike(const struct weft_program *program, const struct weft_buffer *buffer)
{
    const enum weft_buffer_owner owner = weft_buffer_owner(buffer->kind);
    if (buffer->kind == WEFT_BUFFER_RESTORED || buffer->kind == WEFT_BUFFER_RESTORED_OUTPUT)
        return false;
    if (buffer->kind == WEFT_BUFFER_SAVED)
        return !weft_program_saves_offloaded(program, buffer->index);
    if (buffer->kind == WEFT_BUFFER_OUTPUT)
        return !weft_program_moves_output(program, buffer->index);
    return owner == WEFT_OWNER_LAYER || owner == WEFT_OWNER_MICRO;
}

static bool may_share(const struct weft_program *program, const struct weft_buffer *buffer,
                      int64_t page_bytes)
{
    return buffer->bytes < page_bytes && lives_alike(program, buffer);
}

static enum weft_status share_pages(const struct weft_program *program, int64_t page_bytes,
                                    struct weft_pool *pool, struct weft_paged_buffer *paged,
                                    struct weft_error *err)
{
    struct weft_small_buffer *small =
        weft_pool_array(pool, (size_t)program->n_buffers, sizeof *small);
    int32_t n_small = 0, n_pages;
    if (small == NULL) return weft_fail_memory(err, "paging");
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        if (may_share(program, buffer, page_bytes))
            small[n_small++] = (struct weft_small_buffer){buffer->bytes, buffer->lives[0], -1};
    }
    WEFT_TRY(weft_share_pages(small, n_small, program->n_slots, page_bytes, &n_pages, err));
    n_small = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        if (may_share(program, &program->buffers[b], page_bytes))
            paged[b].shares = small[n_small++].shares;
    }
    return WEFT_OK;
}

static int64_t most_pages(const struct weft_program *program, int64_t page_bytes,
                          int64_t most_bytes)
{
    if (most_bytes == 0) return 0;
    int64_t n = (most_bytes - weft_program_outside_bytes(program)) / page_bytes;
    return n > 1 ? n : 1;
}

enum weft_status weft_program_page(const struct weft_program *program, int64_t page_bytes,
                                   int64_t most_bytes, const struct weft_page_lists *lists,
                                   struct weft_work *work, struct weft_paging **out,
                                   struct weft_error *err)
{
    enum weft_status status;
    struct weft_pool pool = {0};
    bool listed = lists != NULL && lists->n_lists > 0;
    if (listed) page_bytes = lists->page_bytes;
    if (page_bytes < WEFT_PAGE_LEAST_BYTES)
        return weft_fail(err, WEFT_E_INTERNAL, "program: its pages have no size");
    struct weft_paged_buffer *paged =
        weft_pool_array(&pool, (size_t)program->n_buffers, sizeof *paged);
    if (paged == NULL) {
        status = weft_fail_memory(err, "paging");
        goto done;
    }
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        paged[b] = (struct weft_paged_buffer){
            .bytes = buffer->bytes,
            .n_pieces = buffer->n_pieces,
            .lives = buffer->lives,
            .is_resident = weft_buffer_persists(program, buffer),
            .shares = -1,
        };
    }
    WEFT_TRY_GOTO(done, share_pages(program, page_bytes, &pool, paged, err));
    struct weft_paging_inputs inputs = {
        .buffers = paged,
        .n_buffers = program->n_buffers,
        .n_slots = program->n_slots,
        .page_bytes = page_bytes,
        .most_pages = most_pages(program, page_bytes, most_bytes),
    };
    status = listed ? weft_paging_restore(&inputs, lists, out, err)
                    : weft_paging_create(&inputs, work, out, err);
done:
    weft_pool_finish(&pool);
    return status;
}
