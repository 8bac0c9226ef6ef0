/* SPDX-License-Identifier: Apache-2.0 */
/* Renders the answer that a report fills: the call names it `answer`. */
#ifndef WEFT_TESTS_REPORT_ANSWER_TEXT_H
#define WEFT_TESTS_REPORT_ANSWER_TEXT_H

#include "report/answer.h"

#define ADD_TEXT(out, call)                                                                        \
    do {                                                                                           \
        struct weft_answer answer = {0};                                                           \
        call;                                                                                      \
        weft_answer_text(&answer, out);                                                            \
        weft_answer_finish(&answer);                                                               \
    } while (0)

#define ADD_CSV(out, call)                                                                         \
    do {                                                                                           \
        struct weft_answer answer = {0};                                                           \
        call;                                                                                      \
        weft_answer_csv(&answer, out);                                                             \
        weft_answer_finish(&answer);                                                               \
    } while (0)

#define ADD_JSON(out, indent, call)                                                                \
    do {                                                                                           \
        struct weft_answer answer = {0};                                                           \
        struct weft_json_writer writer;                                                            \
        call;                                                                                      \
        weft_json_writer_init(&writer, out, indent);                                               \
        weft_answer_json(&answer, &writer);                                                        \
        weft_answer_finish(&answer);                                                               \
    } while (0)

#endif
