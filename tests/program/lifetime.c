/* SPDX-License-Identifier: Apache-2.0 */
#include "program/lifetime.h"

#include <criterion/criterion.h>
#include <string.h>

/* Slots: 0 and 1 gather and use, 2 reduces, 3 waits. There is one buffer each for gathered, made
 * and reduced values. The next period's first instruction reads the last one. */
enum { FULL, GRADIENT, REDUCED, N_BUFFERS };

static struct weft_instruction instructions_lifetime[] = {
    {.op = WEFT_OP_MARK, .slot = 0},
    {.op = WEFT_OP_UPDATE, .slot = 0, .n_operands = 1},
    {.op = WEFT_OP_ALL_GATHER,
     .lane = 1,
     .slot = 0,
     .n_dependencies = 1,
     .first_operand = 1,
     .n_operands = 1},
    {.op = WEFT_OP_MARK, .slot = 1, .first_dependency = 1, .n_dependencies = 1},
    {.op = WEFT_OP_BACKWARD, .slot = 1, .first_operand = 2, .n_operands = 2},
    {.op = WEFT_OP_MARK, .slot = 2},
    {.op = WEFT_OP_REDUCE_SCATTER,
     .lane = 1,
     .slot = 2,
     .first_dependency = 2,
     .n_dependencies = 1,
     .first_operand = 4,
     .n_operands = 2},
    {.op = WEFT_OP_MARK, .slot = 3, .first_dependency = 3, .n_dependencies = 1},
};
static const struct weft_operand operands[] = {
    {REDUCED, -1, false, true},  {FULL, -1, true, false},     {FULL, -1, false, false},
    {GRADIENT, -1, true, false}, {GRADIENT, 0, false, false}, {REDUCED, -1, true, false},
};
static const int32_t dependencies_lifetime[] = {0, 2, 5, 6};
static struct weft_way ways[] = {{.policy = WEFT_POLICY_SDP}};

static struct weft_program hand_program_lifetime(struct weft_buffer *buffers)
{
    static const enum weft_buffer_kind kinds[] = {WEFT_BUFFER_FULL, WEFT_BUFFER_GRADIENT,
                                                  WEFT_BUFFER_REDUCED};
    for (int b = 0; b < N_BUFFERS; b++)
        buffers[b] = (struct weft_buffer){.kind = kinds[b], .bytes = 256, .n_pieces = 1};
    return (struct weft_program){.n_slots = 4,
                                 .n_lanes = 2,
                                 .n_instructions = 8,
                                 .instructions = instructions_lifetime,
                                 .dependencies = (int32_t *)dependencies_lifetime,
                                 .operands = (struct weft_operand *)operands,
                                 .n_buffers = N_BUFFERS,
                                 .buffers = buffers,
                                 .ways = ways,
                                 .n_units = 1};
}

static void expect_lifetime(struct weft_life life, int32_t first, int32_t last)
{
    cr_assert_eq(life.first, first, "%d", life.first);
    cr_assert_eq(life.last, last, "%d", life.last);
}

Test(lifetime, by_hand)
{
    struct weft_buffer buffers[N_BUFFERS];
    struct weft_program program = hand_program_lifetime(buffers);
    struct weft_life lives[N_BUFFERS];
    struct weft_error err = {0};
    cr_assert_eq(weft_program_pieces(&program), N_BUFFERS);
    cr_assert_eq(weft_program_lives(&program, lives, &err), WEFT_OK, "%s", err.text);
    expect_lifetime(lives[FULL], 0, 1);     /* launched in 0, read in 1 */
    expect_lifetime(lives[GRADIENT], 1, 2); /* over by the mark of 3 */
    expect_lifetime(lives[REDUCED], 2, 0);  /* to the next period's update */
}

/* Without the mark that waits for it the reduction may run until the period's end. */
Test(lifetime, what_nobody_waits_for_is_live_to_the_end)
{
    struct weft_buffer buffers[N_BUFFERS];
    struct weft_program program = hand_program_lifetime(buffers);
    struct weft_life lives[N_BUFFERS];
    struct weft_error err = {0};
    instructions_lifetime[7].n_dependencies = 0;
    cr_assert_eq(weft_program_lives(&program, lives, &err), WEFT_OK);
    instructions_lifetime[7].n_dependencies = 1;
    expect_lifetime(lives[GRADIENT], 1, 3);
}

Test(lifetime, resident_parameters_persist)
{
    struct weft_buffer buffers[N_BUFFERS];
    struct weft_program program = hand_program_lifetime(buffers);
    struct weft_life lives[N_BUFFERS];
    struct weft_error err = {0};
    ways[0].policy = WEFT_POLICY_ZERO1;
    cr_assert_eq(weft_program_lives(&program, lives, &err), WEFT_OK);
    ways[0].policy = WEFT_POLICY_SDP;
    expect_lifetime(lives[FULL], 0, 3);
    expect_lifetime(lives[GRADIENT], 1, 2);
}

Test(lifetime, unwritten_is_an_error)
{
    struct weft_buffer buffers[N_BUFFERS];
    struct weft_program program = hand_program_lifetime(buffers);
    struct weft_life lives[N_BUFFERS];
    struct weft_error err = {0};
    program.n_instructions = 4;
    cr_assert_eq(weft_program_lives(&program, lives, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "nothing writes gradient 0") != NULL, "%s", err.text);
}

Test(lifetime, live_bytes_wrap)
{
    struct weft_buffer buffers[N_BUFFERS];
    struct weft_program program = hand_program_lifetime(buffers);
    static const struct weft_life lives[] = {{0, 1}, {1, 2}, {2, 0}};
    int64_t rows[4 * WEFT_CATEGORY_COUNT];
    for (int b = 0; b < N_BUFFERS; b++) {
        buffers[b].lives = &lives[b];
        buffers[b].category = WEFT_CATEGORY_FULL_GRADIENTS;
    }
    program.base_bytes = 9;
    weft_program_live(&program, rows);
    static const int64_t expected[] = {512, 512, 512, 256};
    for (int s = 0; s < 4; s++) {
        cr_assert_eq(rows[s * WEFT_CATEGORY_COUNT + WEFT_CATEGORY_FULL_GRADIENTS], expected[s]);
        cr_assert_eq(rows[s * WEFT_CATEGORY_COUNT + WEFT_CATEGORY_BASE], 9);
    }
}
