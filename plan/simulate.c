#include <stdlib.h>

#include "plan/lifetime.h"
#include "plan/placement.h"
#include "plan/trace.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

enum weft_status weft_simulate(const struct weft_program *program, struct weft_trace **out,
                               struct weft_error *err)
{
    struct weft_trace *trace;
    WEFT_TRY(weft_trace_create(program, "simulated", &trace, err));
    int64_t free_ns[WEFT_STREAM_COUNT] = {0};
    /* Issue order is an order of both streams in which every dependency comes first. */
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        int64_t *stream_ns = &free_ns[weft_op_stream(at->op)];
        int64_t start_ns = *stream_ns;
        for (int32_t d = 0; d < at->n_dependencies; d++) {
            int32_t before = program->dependencies[at->first_dependency + d];
            start_ns = later(start_ns, trace->records[before].end_ns);
        }
        *stream_ns = start_ns + at->ns;
        trace->records[i] = (struct weft_record){start_ns, *stream_ns};
    }
    weft_program_live(program, trace->live_bytes);
    *out = trace;
    return WEFT_OK;
}

void weft_simulate_plan(const struct weft_plan *plan, int64_t *scratch, struct weft_prediction *out)
{
    const struct weft_problem *problem = plan->problem;
    int32_t n_slots = problem->n_slots;
    int64_t *start_ns = scratch;          /* of slots */
    int64_t *due = scratch + n_slots;     /* last placement that a slot waits for */
    int64_t *blocking = due + n_slots;    /* last that its compute waits for */
    int64_t *end_ns = blocking + n_slots; /* of placements */
    for (int32_t s = 0; s < n_slots; s++)
        due[s] = blocking[s] = -1;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        (weft_placement_blocks(at) ? blocking : due)[at->deadline] = i;
    }

    int64_t compute_ns = 0, channel_ns = 0, clock_ns = 0, channel_free_ns = 0, exposed_ns = 0;
    int32_t next = 0; /* placement whose end is not known yet */
    for (int32_t s = 0; s < n_slots; s++) {
        int64_t idle_ns = clock_ns;
        start_ns[s] = clock_ns;
        for (int wait = 0; wait < 2; wait++) {
            /* What is due was launched in slots whose starts are known. */
            int64_t last = (wait == 0 ? due : blocking)[s];
            for (; next <= last; next++) {
                const struct weft_placement *at = &plan->placements[next];
                int64_t block_ns = problem->items[at->item].block_ns;
                channel_free_ns = later(channel_free_ns, start_ns[at->launch]) + block_ns;
                channel_ns += block_ns;
                end_ns[next] = channel_free_ns;
            }
            if (last >= 0) clock_ns = later(clock_ns, end_ns[last]);
            if (wait == 0) start_ns[s] = clock_ns;
        }
        exposed_ns += clock_ns - idle_ns;
        int64_t slot_ns = weft_plan_slot_ns(plan, s);
        compute_ns += slot_ns;
        clock_ns += slot_ns;
    }
    /* The sum over ranks at the end of the norm slot is behind everything on the channel. */
    int64_t agreed_ns = later(clock_ns, channel_free_ns) + problem->agree_ns;
    out->exposed_ns = exposed_ns + agreed_ns - clock_ns;
    out->step_ns = agreed_ns;
    out->compute_ns = compute_ns;
    out->channel_ns = channel_ns + problem->agree_ns;
}
