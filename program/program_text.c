/* SPDX-License-Identifier: Apache-2.0 */
#include "program/program_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json/json.h"
#include "base/units.h"

enum { NAME_BYTES = 96 };

/* "full 3"; "full 3.1" for the second residency; "input"; "input.1" for the second micro-step. */
static const char *buffer_name(const struct weft_buffer *buffer, char out[NAME_BYTES])
{
    const char *kind = weft_buffer_kind_name(buffer->kind);
    if (buffer->index < 0 && buffer->instance > 0) {
        snprintf(out, NAME_BYTES, "%s.%d", kind, buffer->instance);
    } else if (buffer->index < 0) {
        snprintf(out, NAME_BYTES, "%s", kind);
    } else if (buffer->instance == 0) {
        snprintf(out, NAME_BYTES, "%s %d", kind, buffer->index);
    } else {
        snprintf(out, NAME_BYTES, "%s %d.%d", kind, buffer->index, buffer->instance);
    }
    return out;
}

const char *weft_program_instruction_name(const struct weft_program *program, int32_t index,
                                          char out[WEFT_PROGRAM_NAME_BYTES])
{
    const struct weft_instruction *at = &program->instructions[index];
    const char *op = weft_op_name(at->op);
    if (at->block >= 0 && at->unit >= 0) {
        snprintf(out, WEFT_PROGRAM_NAME_BYTES, "instruction %d (%s of unit %d, block %d)", index,
                 op, at->unit, at->block);
    } else if (at->unit >= 0) {
        snprintf(out, WEFT_PROGRAM_NAME_BYTES, "instruction %d (%s of unit %d)", index, op,
                 at->unit);
    } else if (at->layer >= 0) {
        snprintf(out, WEFT_PROGRAM_NAME_BYTES, "instruction %d (%s of layer %d)", index, op,
                 at->layer);
    } else {
        snprintf(out, WEFT_PROGRAM_NAME_BYTES, "instruction %d (%s in slot %d)", index, op,
                 at->slot);
    }
    return out;
}

const char *weft_program_piece_name(const struct weft_program *program, int32_t buffer,
                                    int32_t piece, char out[WEFT_PROGRAM_NAME_BYTES])
{
    const struct weft_buffer *at = &program->buffers[buffer];
    const char *kind = weft_buffer_kind_name(at->kind);
    if (at->index < 0) {
        snprintf(out, WEFT_PROGRAM_NAME_BYTES, "%s", kind);
    } else if (at->n_pieces == 1) {
        snprintf(out, WEFT_PROGRAM_NAME_BYTES, "%s %d.%d", kind, at->index, at->instance);
    } else {
        snprintf(out, WEFT_PROGRAM_NAME_BYTES, "%s %d.%d piece %d", kind, at->index, at->instance,
                 piece);
    }
    return out;
}

static void dump_operands(const struct weft_program *program, const struct weft_instruction *at,
                          bool writes, struct weft_text *out)
{
    const char *separator = writes ? "  writes " : "  reads ";
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        if (operand->writes != writes) continue;
        char name[NAME_BYTES];
        weft_text_addf(out, "%s%s", separator,
                       buffer_name(&program->buffers[operand->buffer], name));
        if (operand->piece >= 0) weft_text_addf(out, "[%d]", operand->piece);
        separator = ", ";
    }
}

static void dump_instruction(const struct weft_program *program, const struct weft_plan *plan,
                             int32_t i, struct weft_text *out)
{
    const struct weft_instruction *at = &program->instructions[i];
    bool computes = at->lane == WEFT_LANE_COMPUTE;
    if (at->op == WEFT_OP_MARK) {
        weft_text_addf(out, "%5d  slot %d %s", i, at->slot, plan->problem->slot_names[at->slot]);
    } else {
        weft_text_addf(out, "%5d    %s%s", i, computes ? "" : "| ", weft_op_name(at->op));
    }
    if (at->layer >= 0) weft_text_addf(out, " layer %d", at->layer);
    if (at->micro > 0) weft_text_addf(out, " of micro-step %d", at->micro + 1);
    if (at->unit >= 0) weft_text_addf(out, " %s", plan->problem->decisions[at->unit].name);
    if (at->block >= 0) weft_text_addf(out, " block %d", at->block);
    if (at->every > 1) weft_text_addf(out, " in one step of %lld", (long long)at->every);
    if (at->ns > 0) {
        char time[WEFT_UNITS_TEXT_BYTES];
        weft_text_addf(out, "  %s", weft_units_show_ns(at->ns, time));
    }
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        weft_text_addf(out, "%s%d", d == 0 ? "  after " : ", ",
                       program->dependencies[at->first_dependency + d]);
    }
    dump_operands(program, at, false, out);
    dump_operands(program, at, true, out);
    weft_text_add(out, "\n");
}

void weft_program_dump(const struct weft_program *program, const struct weft_plan *plan,
                       struct weft_text *out)
{
    char arena[WEFT_UNITS_TEXT_BYTES], live[WEFT_UNITS_TEXT_BYTES], base[WEFT_UNITS_TEXT_BYTES];
    char ring[WEFT_UNITS_TEXT_BYTES], comm[WEFT_UNITS_TEXT_BYTES];
    const bool staged = program->staging_bytes > program->comm_bytes;
    weft_text_addf(
        out, "arena %s, live at most %s, base %s%s%s%s%s; channel instructions begin with |\n",
        weft_units_show_bytes(program->arena_bytes, arena),
        weft_units_show_bytes(program->live_bytes, live),
        weft_units_show_bytes(program->base_bytes, base), staged ? ", ring " : "",
        staged ? weft_units_show_bytes(program->staging_bytes - program->comm_bytes, ring) : "",
        program->comm_bytes > 0 ? ", staging " : "",
        program->comm_bytes > 0 ? weft_units_show_bytes(program->comm_bytes, comm) : "");
    const struct weft_paging *paging = program->paging;
    weft_text_addf(out, "%d pages of %s, %d table%s, %d mappings, %s of addresses\n",
                   paging->n_pages, weft_units_show_bytes(paging->page_bytes, arena),
                   paging->n_tables, paging->n_tables == 1 ? "" : "s", paging->n_mappings,
                   weft_units_show_bytes(paging->span_bytes, live));
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        char name[NAME_BYTES];
        weft_text_addf(out,
                       "buffer %d: %s at %" PRId64 " and %" PRId64 ", %" PRId64
                       " bytes, %d piece%s, slots",
                       b, buffer_name(buffer, name), weft_program_offset(program, b, 0),
                       weft_program_offset(program, b, 1), buffer->bytes, buffer->n_pieces,
                       buffer->n_pieces == 1 ? "" : "s");
        for (int32_t p = 0; p < buffer->n_pieces; p++)
            weft_text_addf(out, " %d-%d", buffer->lives[p].first, buffer->lives[p].last);
        weft_text_add(out, "\n");
    }
    for (int32_t i = 0; i < program->n_instructions; i++)
        dump_instruction(program, plan, i, out);
}

static void write_buffer(const struct weft_program *program, int32_t b,
                         struct weft_json_writer *writer)
{
    const struct weft_buffer *buffer = &program->buffers[b];
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "kind", weft_buffer_kind_name(buffer->kind));
    weft_json_put_string(writer, "category", weft_category_key(buffer->category));
    weft_json_put_integer(writer, "index", buffer->index);
    weft_json_put_integer(writer, "instance", buffer->instance);
    weft_json_put_integer(writer, "size_bytes", buffer->bytes);
    weft_json_key(writer, "addresses");
    weft_json_begin_array(writer);
    for (int32_t t = 0; t < program->paging->n_tables; t++)
        weft_json_add_integer(writer, weft_program_offset(program, b, t));
    weft_json_end_array(writer);
    weft_json_key(writer, "lives");
    weft_json_begin_array(writer);
    for (int32_t p = 0; p < buffer->n_pieces; p++) {
        weft_json_begin_array(writer);
        weft_json_add_integer(writer, buffer->lives[p].first);
        weft_json_add_integer(writer, buffer->lives[p].last);
        weft_json_end_array(writer);
    }
    weft_json_end_array(writer);
    weft_json_end_object(writer);
}

static void write_instruction(const struct weft_program *program, const struct weft_instruction *at,
                              struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "op", weft_op_name(at->op));
    weft_json_put_integer(writer, "slot", at->slot);
    if (at->layer >= 0) weft_json_put_integer(writer, "layer", at->layer);
    if (at->micro > 0) weft_json_put_integer(writer, "micro", at->micro);
    if (at->carried) weft_json_put_bool(writer, "carried", true);
    if (at->unit >= 0) weft_json_put_integer(writer, "unit", at->unit);
    if (at->block >= 0) weft_json_put_integer(writer, "block", at->block);
    if (at->item >= 0) weft_json_put_integer(writer, "item", at->item);
    weft_json_put_integer(writer, "time_ns", at->ns);
    if (at->every > 0) weft_json_put_integer(writer, "every", at->every);
    if (at->phase > 0) weft_json_put_integer(writer, "phase", at->phase);
    weft_json_key(writer, "after");
    weft_json_begin_array(writer);
    for (int32_t d = 0; d < at->n_dependencies; d++)
        weft_json_add_integer(writer, program->dependencies[at->first_dependency + d]);
    weft_json_end_array(writer);
    weft_json_key(writer, "operands");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        weft_json_begin_object(writer);
        weft_json_put_integer(writer, "buffer", operand->buffer);
        weft_json_put_integer(writer, "piece", operand->piece);
        weft_json_put_bool(writer, "writes", operand->writes);
        if (operand->began_before) weft_json_put_bool(writer, "began_before", true);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
    weft_json_end_object(writer);
}

void weft_program_write(const struct weft_program *program, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "format", "weft-program");
    weft_json_put_integer(&writer, "version", 1);
    weft_json_put_string(&writer, "weft", WEFT_VERSION);
    weft_json_put_integer(&writer, "slots", program->n_slots);
    weft_json_put_integer(&writer, "arena_bytes", program->arena_bytes);
    weft_json_put_integer(&writer, "live_bytes", program->live_bytes);
    weft_json_put_integer(&writer, "base_bytes", program->base_bytes);
    weft_json_put_integer(&writer, "staging_bytes", program->staging_bytes);
    weft_json_put_integer(&writer, "page_bytes", program->paging->page_bytes);
    weft_json_put_integer(&writer, "pages", program->paging->n_pages);
    weft_json_key(&writer, "policies");
    weft_json_begin_array(&writer);
    for (int32_t u = 0; u < program->n_units; u++)
        weft_json_add_string(&writer, weft_policy_name(program->ways[u].policy));
    weft_json_end_array(&writer);
    weft_json_key(&writer, "buffers");
    weft_json_begin_array(&writer);
    for (int32_t b = 0; b < program->n_buffers; b++)
        write_buffer(program, b, &writer);
    weft_json_end_array(&writer);
    weft_json_key(&writer, "instructions");
    weft_json_begin_array(&writer);
    for (int32_t i = 0; i < program->n_instructions; i++)
        write_instruction(program, &program->instructions[i], &writer);
    weft_json_end_array(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}
