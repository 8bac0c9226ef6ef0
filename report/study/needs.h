/* Reports on the memory that policies need, as text and JSON: one row for each policy and way of
 * placing its blocks, and the bytes by category. */
#ifndef WEFT_REPORT_STUDY_NEEDS_H
#define WEFT_REPORT_STUDY_NEEDS_H

#include "base/json/json.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/need.h"
#include "report/table.h"

/* Adds the row's cells of policy and way. The policy is "" if it is that of the row before (NULL:
 * none). */
void weft_need_add_name(const struct weft_need *row, const struct weft_need *before,
                        struct weft_table *table);
/* Puts the members "policy", "way" and "rule". */
void weft_need_put_name(const struct weft_need *row, struct weft_json_writer *writer);

/* "fits", or the excess, like "+8.53 GiB"; "" without a limit (0). */
void weft_need_show_fit(const struct weft_need *need, int64_t limit_bytes,
                        char out[WEFT_UNITS_TEXT_BYTES + 8]);

/* A table of all rows that apply, compared with the limit (0: none). */
void weft_report_needs(const struct weft_need *rows, int32_t n, int64_t limit_bytes,
                       struct weft_text *out);

/* A table of bytes by category, with one column for each published rule. */
void weft_report_needs_memory(const struct weft_need *rows, int32_t n, struct weft_text *out);

/* An array of objects. Times are null unless `timed`. */
void weft_report_needs_json(const struct weft_need *rows, int32_t n, int64_t limit_bytes,
                            bool timed, struct weft_json_writer *writer);

#endif
