/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of an alarm that cut the search. */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "library/session.h"

void weft_session_tell_disturbance(const struct weft_work *work, int64_t time_limit_ns)
{
    char time[WEFT_UNITS_TEXT_BYTES];
    if (work->rang)
        weft_log(WEFT_LOG_WARNING,
                 "the time limit of %s ended the search; with the same work limit another run may "
                 "differ: give more time, or less work",
                 weft_units_show_ns(time_limit_ns, time));
    else if (work->disturbed)
        weft_log(WEFT_LOG_WARNING, "the solver was lost while planning; with the same work limit "
                                   "another run may differ");
}

enum weft_status weft_session_note_alarm(const struct weft_work *work, struct weft_plan *plan,
                                         struct weft_error *err)
{
    static const char word[] = "time limit";
    struct weft_text text;
    if (!work->rang || plan == NULL || plan->solver_stop == NULL) return WEFT_OK;
    if (strstr(plan->solver_stop, word) != NULL) return WEFT_OK;
    weft_text_init(&text);
    weft_text_addf(&text, "%s%s%s", word, plan->solver_stop[0] != '\0' ? ", " : "",
                   plan->solver_stop);
    const char *stop =
        weft_text_ok(&text) ? weft_pool_string(&plan->pool, weft_text_chars(&text)) : NULL;
    weft_text_finish(&text);
    if (stop == NULL) return weft_fail_memory(err, "a plan");
    plan->solver_stop = stop;
    return WEFT_OK;
}
