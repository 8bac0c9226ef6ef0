/* What a plan that keeps bytes away from the device says of that: which lane binds it, what each
 * unit's bytes cost, and how fast a disk is worn. */
#ifndef WEFT_REPORT_AWAY_H
#define WEFT_REPORT_AWAY_H

#include "base/json/json.h"
#include "base/text.h"
#include "plan/plan.h"

/* How long each lane works in a step, busiest first, compute among them; the first binds: no step
 * of these strategies is shorter. Nothing where there is the device's memory alone. */
void weft_report_lanes(const struct weft_plan *plan, struct weft_text *out);
/* The same as members "lanes" and "bandwidth_bound_ns" of an open object. */
void weft_report_lanes_json(const struct weft_plan *plan, struct weft_json_writer *writer);

/* Bytes that a disk is written in a day of such steps by all ranks, which share it; and where it
 * can be written `endurance_bytes` in its life, 0 if that is not known, the steps until these are
 * spent. Nothing where nothing is written. */
void weft_report_wear(const struct weft_plan *plan, int64_t endurance_bytes, struct weft_text *out);

/* A table of what is away: where it is, the bytes of the device that this frees between uses, the
 * time of moving it in a step, and the one for the other. Nothing where nothing is. */
void weft_explain_away(const struct weft_plan *plan, int32_t most_rows, struct weft_text *out);

#endif
