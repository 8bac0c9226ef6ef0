#include "runtime/arena/copy.h"

/* The same with addresses of this process. */
struct copy_task {
    struct weft_copier *copier;
    enum weft_copy_direction direction;
    int32_t n;
    struct weft_memory_span here[WEFT_ARENA_MOST_PIECES], there[WEFT_ARENA_MOST_PIECES];
};
_Static_assert(sizeof(struct copy_task) <= WEFT_TASK_BYTES, "the argument of a task");

static enum weft_status copy_pieces(struct weft_stream *stream, const void *argument,
                                    struct weft_error *err)
{
    const struct copy_task *task = argument;
    const bool down = task->direction == WEFT_COPY_DOWN;
    const struct weft_memory_span *to = down ? task->there : task->here;
    const struct weft_memory_span *from = down ? task->here : task->there;
    int64_t ticket;
    (void)stream;
    WEFT_TRY(weft_copier_submit(task->copier, task->direction, to, task->n, from, task->n, &ticket,
                                err));
    return weft_copier_wait(task->copier, task->direction, ticket, err);
}

void weft_arena_copy(struct weft_arena *arena, struct weft_stream *stream,
                     const struct weft_arena_copy *copy)
{
    unsigned char *memory = weft_arena_memory(arena);
    const unsigned char *address = weft_arena_address(arena);
    struct copy_task task = {.copier = copy->copier, .direction = copy->direction, .n = copy->n};
    for (int32_t i = 0; i < copy->n; i++) {
        const struct weft_memory_span there = copy->there[i];
        task.there[i] = there;
        if (memory != NULL)
            task.here[i] = (struct weft_memory_span){
                memory + ((unsigned char *)copy->at[i] - address), there.bytes};
        else if (copy->direction == WEFT_COPY_DOWN)
            weft_arena_read(arena, stream, copy->at[i], there.bytes, there.at);
        else
            weft_arena_write(arena, stream, copy->at[i], there.at, there.bytes);
    }
    if (memory != NULL) weft_stream_push(stream, copy_pieces, &task, sizeof task);
}
