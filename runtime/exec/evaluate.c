/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation is a forward alone, of the first micro-step: the program up to its backward,
 * without updates, carried work and other micro-steps. After a start it makes shards on the host,
 * as updates do. Every instruction keeps its place in the order, so the addresses hold. */
#include "runtime/exec/exec.h"
#include "runtime/exec/parts.h"

/* Index after the last forward of the first pass. A backward before the first forward does not end
 * the pass. */
static int32_t end_of_forward(const struct weft_program *program)
{
    int32_t end = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        enum weft_op op = program->instructions[i].op;
        if (op == WEFT_OP_FORWARD) end = i + 1;
        if (op == WEFT_OP_BACKWARD && end > 0) break;
    }
    return end;
}

static bool is_of_forward(const struct weft_instruction *at)
{
    bool forward = at->op == WEFT_OP_MARK || at->op == WEFT_OP_LOAD ||
                   at->op == WEFT_OP_PARAMETERS_FETCH || at->op == WEFT_OP_ACROSS_GATHER ||
                   at->op == WEFT_OP_ALL_GATHER || at->op == WEFT_OP_FORWARD;
    return forward && !at->carried && at->micro == 0;
}

enum weft_status weft_exec_evaluate(struct weft_exec *exec, const void *input,
                                    const int32_t *targets, double *loss, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    const struct weft_step_inputs inputs = {.input = input, .targets = targets};
    int32_t end = end_of_forward(program);
    bool looks = exec->looks;
    weft_exec_turn(exec);
    exec->inputs = &inputs;
    exec->looks = false; /* an evaluation blames no step */
    for (int32_t i = 0; i < end; i++) {
        const bool renews = exec->renews && exec->bound[i].updates;
        weft_exec_issue(exec, i, renews || is_of_forward(&program->instructions[i]));
    }
    weft_exec_push_own(exec);
    enum weft_status status = weft_exec_synchronise(exec, err);
    exec->inputs = NULL;
    exec->renews = false;
    exec->looks = looks;
    if (status == WEFT_OK) *loss = exec->mailbox.loss;
    return status;
}
