/* Programs of plans whose units are away at random: they are what verify accepts, and it refuses
 * what would use state that is not there. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "program/lifetime.h"
#include "program/predict.h"
#include "program/trace.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

enum { CASES = TEST_CASES(60, 20) };

struct away_case {
    struct random_case random;
    struct weft_plan *plan;
    struct weft_program *program;
};

/* False where nothing is away. */
static bool open_case(struct away_case *c, uint64_t seed)
{
    random_case_init_tiers(&c->random, seed);
    c->plan = random_plan(&c->random, seed);
    c->program = random_program(&c->random, c->plan);
    return c->program->homes != NULL;
}

static void close_case(struct away_case *c)
{
    weft_program_destroy(c->program);
    weft_plan_destroy(c->plan);
    random_case_finish(&c->random);
}

static enum weft_status verify_case(const struct away_case *c, struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_program_verify(c->program, INT64_MAX, err);
}

/* The first instruction that brings a unit's state, and that takes one away. */
static int32_t find_bringing(const struct weft_program *program)
{
    int32_t i = 0;
    while (!weft_op_brings_state(program->instructions[i].op))
        i++;
    return i;
}

static int32_t find_taking(const struct weft_program *program)
{
    int32_t i = 0;
    while (!weft_op_takes_state(program->instructions[i].op))
        i++;
    return i;
}

/* By category and slot; and all of it in the other tier. */
static void check_rows_away(const struct away_case *c, uint64_t seed)
{
    const struct weft_plan *plan = c->plan;
    const size_t n = (size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows), *live = calloc(n, sizeof *live);
    weft_plan_rows(plan, 0, rows);
    weft_program_live(c->program, live);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(rows[i], live[i], "seed %d, slot %s, %s: planned %lld, live %lld", (int)seed,
                     plan->problem->slot_names[i / WEFT_CATEGORY_COUNT],
                     weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)),
                     (long long)rows[i], (long long)live[i]);
    free(rows);
    free(live);
}

static void check_times_away(const struct away_case *c)
{
    struct weft_trace *trace = NULL;
    struct weft_trace_summary summary;
    struct weft_error err = {0};
    cr_assert_eq(weft_simulate(c->program, &trace, &err), WEFT_OK);
    weft_trace_summarise(c->program, trace, &summary);
    cr_assert_eq(summary.step_ns, c->plan->prediction.step_ns);
    cr_assert_eq(summary.exposed_ns, c->plan->prediction.exposed_ns);
    weft_trace_destroy(trace);
}

Test(away, what_is_planned_of_state_is_what_the_program_holds_and_takes)
{
    int32_t n_seen = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct away_case c;
        if (open_case(&c, seed)) {
            n_seen++;
            check_rows_away(&c, seed);
            check_times_away(&c);
        }
        close_case(&c);
    }
    cr_assert_gt(n_seen, CASES / 4);
}

Test(away, programs_are_accepted_and_their_state_does_not_persist)
{
    int32_t n_seen = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct away_case c;
        struct weft_error err;
        if (open_case(&c, seed)) {
            n_seen++;
            cr_assert_eq(verify_case(&c, &err), WEFT_OK, "seed %d: %s", (int)seed, err.text);
            for (int32_t b = 0; b < c.program->n_buffers; b++) {
                const struct weft_buffer *buffer = &c.program->buffers[b];
                if (!weft_buffer_is_state(buffer->kind)) continue;
                const bool away = weft_program_is_away(c.program, buffer->index);
                cr_assert_eq(weft_buffer_persists(c.program, buffer), !away);
            }
        }
        close_case(&c);
    }
    cr_assert_gt(n_seen, CASES / 4);
}

/* A change of a program, false where it cannot be made; and a word of what verify says of it. */
struct change {
    bool (*make)(struct weft_program *program);
    const char *says;
};

static int32_t find_update(const struct weft_program *program, int32_t unit)
{
    int32_t i = 0;
    while (program->instructions[i].op != WEFT_OP_UPDATE || program->instructions[i].unit != unit)
        i++;
    return i;
}

/* Nothing up to the update waits for the lane from where its state comes on. */
static bool forget_read(struct weft_program *program)
{
    const int32_t read = find_bringing(program);
    const int32_t update = find_update(program, program->instructions[read].unit);
    const struct weft_instruction *last = &program->instructions[update];
    for (int32_t d = 0; d < last->first_dependency + last->n_dependencies; d++) {
        int32_t *before = &program->dependencies[d];
        if (*before >= read &&
            program->instructions[*before].lane == program->instructions[read].lane)
            *before = 0;
    }
    return true;
}

/* It is written from the beginning of the update's slot on; false where the lane would wait. */
static bool forget_update(struct weft_program *program)
{
    const int32_t write = find_taking(program);
    struct weft_instruction *at = &program->instructions[write];
    const int32_t update = find_update(program, at->unit);
    for (int32_t i = update; i < write; i++) /* whose lane waits in its stead */
        if (program->instructions[i].lane == at->lane) return false;
    at->slot = program->instructions[update].slot;
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        int32_t mark = 0;
        while (program->instructions[mark].op != WEFT_OP_MARK ||
               program->instructions[mark].slot != at->slot)
            mark++;
        program->dependencies[at->first_dependency + d] = mark;
    }
    return true;
}

/* Nobody waits for what the lane does from where state goes last on. */
static bool forget_write(struct weft_program *program)
{
    int32_t write = program->n_instructions - 1;
    while (!weft_op_takes_state(program->instructions[write].op))
        write--;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t d = 0; d < at->n_dependencies; d++) {
            int32_t *before = &program->dependencies[at->first_dependency + d];
            if (*before >= write &&
                program->instructions[*before].lane == program->instructions[write].lane)
                *before = 0;
        }
    }
    return true;
}

static bool read_another_unit(struct weft_program *program)
{
    struct weft_instruction *at = &program->instructions[find_bringing(program)];
    at->unit = (at->unit + 1) % program->n_units;
    return program->n_units > 1;
}

static bool move_over_the_network(struct weft_program *program)
{
    program->instructions[find_taking(program)].lane = WEFT_LANE_FIRST;
    return true;
}

static bool say_that_it_is_here(struct weft_program *program)
{
    program->homes[program->instructions[find_bringing(program)].unit] = WEFT_HOME_DEVICE;
    return true;
}

/* As if its home were another. */
static bool move_from_another_home(struct weft_program *program)
{
    enum weft_home *home = &program->homes[program->instructions[find_bringing(program)].unit];
    *home = *home == WEFT_HOME_DISK ? WEFT_HOME_HOST : WEFT_HOME_DISK;
    return true;
}

Test(away, what_would_use_state_that_is_not_there_is_refused)
{
    static const struct change changes[] = {
        {forget_read, "state is there"},
        {forget_update, "its side of the unit's update"},
        {read_another_unit, "state"},
        {move_over_the_network, "a lane that does not do it"},
        {say_that_it_is_here, "is not away"},
        {forget_write, "has been written"},
        {move_from_another_home, "has another home"},
    };
    int32_t n_made[sizeof changes / sizeof *changes] = {0};
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
            struct away_case c;
            struct weft_error err;
            if (open_case(&c, seed) && changes[i].make(c.program)) {
                cr_assert_eq(verify_case(&c, &err), WEFT_E_DATA, "seed %d, change %d", (int)seed,
                             (int)i);
                n_made[i] += strstr(err.text, changes[i].says) != NULL;
            }
            close_case(&c);
        }
    }
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        cr_assert_gt(n_made[i], 0, "change %d is never told as what it is", (int)i);
}
