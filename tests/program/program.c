/* SPDX-License-Identifier: Apache-2.0 */
#include "program/program.h"
#include "program/program_text.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/program/random_model.h"

Test(program, names_and_streams)
{
    cr_assert_str_eq(weft_op_name(WEFT_OP_ALL_GATHER), "all_gather");
    cr_assert_eq(weft_op_stream(WEFT_OP_ALL_GATHER), WEFT_STREAM_CHANNEL);
    cr_assert_eq(weft_op_stream(WEFT_OP_AGREE), WEFT_STREAM_CHANNEL);
    cr_assert_eq(weft_op_stream(WEFT_OP_FINISH), WEFT_STREAM_COMPUTE);
    cr_assert_str_eq(weft_buffer_kind_name(WEFT_BUFFER_RECORD_SUM), "record_sum");
}

Test(program, every_buffer_is_found)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        struct weft_program *program = random_program(&random, plan);
        for (int32_t b = 0; b < program->n_buffers; b++) {
            const struct weft_buffer *at = &program->buffers[b];
            cr_assert_eq(weft_program_buffer(program, at->kind, at->index, at->instance), b);
        }
        cr_assert_eq(weft_program_buffer(program, WEFT_BUFFER_FULL, program->n_units, 0), -1);
        cr_assert_eq(weft_program_buffer(program, WEFT_BUFFER_INPUT, 0, 0), -1);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    weft_program_destroy(NULL);
}

Test(program, dump_has_a_line_for_each)
{
    struct random_case random;
    struct weft_text text;
    random_case_init_plain(&random, 5);
    struct weft_plan *plan = random_plan(&random, 1);
    struct weft_program *program = random_program(&random, plan);
    weft_text_init(&text);
    weft_program_dump(program, plan, &text);
    int lines = 0;
    for (const char *at = weft_text_chars(&text); *at != '\0'; at++)
        lines += *at == '\n';
    cr_assert_eq(lines, 2 + program->n_buffers + program->n_instructions);
    cr_assert(strstr(weft_text_chars(&text), "slot 0 U:") != NULL);
    cr_assert(strstr(weft_text_chars(&text), "reads record_sum") != NULL);
    weft_text_finish(&text);
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}

Test(program, prediction_of_the_arena)
{
    struct random_case random;
    struct weft_error err = {0};
    random_case_init(&random, 7);
    struct weft_plan *plan = random_plan(&random, 0);
    struct weft_program *program = random_program(&random, plan);
    struct weft_prediction *said = &plan->prediction;
    cr_assert_eq(weft_program_check_prediction(program, plan, &err), WEFT_OK);
    cr_assert_eq(weft_paging_list(program->paging, &plan->pool, &plan->pages, &err), WEFT_OK);
    said->arena_bytes = program->arena_bytes;
    said->total_bytes = program->arena_bytes + program->base_bytes;
    cr_assert_eq(weft_program_check_prediction(program, plan, &err), WEFT_OK);
    said->total_bytes--;
    err = (struct weft_error){0};
    cr_assert_eq(weft_program_check_prediction(program, plan, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "its program takes") != NULL, "%s", err.text);
    said->total_bytes++;
    said->arena_bytes--;
    err = (struct weft_error){0};
    cr_assert_eq(weft_program_check_prediction(program, plan, &err), WEFT_E_DATA);
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    random_case_finish(&random);
}
