/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/arena/copy.h"

#include "runtime/arena/backend.h"

/* A copy with addresses of this process. */
struct copy_task {
    struct weft_copier *copier;
    enum weft_copy_direction direction;
    int32_t n;
    struct weft_memory_span here[WEFT_ARENA_MOST_PIECES], outside[WEFT_ARENA_MOST_PIECES];
};
_Static_assert(sizeof(struct copy_task) <= WEFT_TASK_BYTES, "the argument of a task");

static enum weft_status copy_pieces(struct weft_stream *stream, const void *argument,
                                    struct weft_error *err)
{
    const struct copy_task *task = argument;
    const bool down = task->direction == WEFT_COPY_DOWN;
    const struct weft_memory_span *to = down ? task->outside : task->here;
    const struct weft_memory_span *from = down ? task->here : task->outside;
    int64_t ticket;
    (void)stream;
    WEFT_TRY(weft_copier_submit(task->copier, task->direction, to, task->n, from, task->n, &ticket,
                                err));
    return weft_copier_wait(task->copier, task->direction, ticket, err);
}

bool weft_arena_copies_by_itself(const struct weft_arena *arena)
{
    return arena->ops->copy != NULL;
}

enum weft_status weft_arena_pin(struct weft_arena *arena, struct weft_memory_span memory,
                                struct weft_error *err)
{
    return arena->ops->pin == NULL ? WEFT_OK : arena->ops->pin(arena, memory, err);
}

void weft_arena_unpin(struct weft_arena *arena, struct weft_memory_span memory)
{
    if (arena->ops->unpin != NULL) arena->ops->unpin(arena, memory);
}

void weft_arena_copy(struct weft_arena *arena, struct weft_stream *stream,
                     const struct weft_arena_copy *copy)
{
    struct copy_task task = {.copier = copy->copier, .direction = copy->direction, .n = copy->n};
    if (arena->ops->copy != NULL) {
        arena->ops->copy(arena, stream, copy);
        return;
    }
    unsigned char *memory = weft_arena_memory(arena);
    const unsigned char *address = weft_arena_address(arena);
    for (int32_t i = 0; i < copy->n; i++) {
        task.outside[i] = copy->outside[i];
        task.here[i] = (struct weft_memory_span){memory + ((unsigned char *)copy->at[i] - address),
                                                 copy->outside[i].bytes};
    }
    weft_stream_push(stream, copy_pieces, &task, sizeof task);
}
