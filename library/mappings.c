/* SPDX-License-Identifier: Apache-2.0 */
#include "library/mappings.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/machine/mappings.h"
#include "base/units.h"
#include "program/mappings.h"

/* The other half is for other mappings of the process. */
static int64_t most_mappings(const struct weft_map_limits *limits)
{
    return limits->mappings / 2;
}

static bool are_within(const struct weft_mappings *count, const struct weft_map_limits *limits)
{
    return count->all <= most_mappings(limits) && count->all_bytes <= limits->address_bytes;
}

/* The machine's limits, and the ranks whose arenas a rank maps. */
struct mapped {
    struct weft_map_limits limits;
    int64_t ranks;
};

static enum weft_status count_mappings(const struct weft_session *session, int64_t ranks,
                                       struct weft_mappings *out, struct weft_error *err)
{
    const struct weft_program *program = session->program;
    return weft_program_count_mappings(program, program->paging, ranks, out, err);
}

static enum weft_status refuse_mappings(const struct weft_mappings *count, int64_t page_bytes,
                                        const struct weft_map_limits *limits, bool may_plan,
                                        struct weft_error *err)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    if (count->all_bytes > limits->address_bytes) {
        return weft_fail(err, WEFT_E_SYSTEM,
                         "a rank maps %s of addresses, for its own arena and what it reads of the "
                         "others', and may have %s (RLIMIT_AS): raise that (ulimit -v), start "
                         "fewer ranks, or lower the memory limit",
                         weft_units_show_bytes(count->all_bytes, a),
                         weft_units_show_bytes(limits->address_bytes, b));
    }
    return weft_fail(
        err, WEFT_E_SYSTEM,
        "in pages of %s a rank has %" PRId64 " mappings of its arena and the others', "
        "above half of the %" PRId64 " that the system lets a process have "
        "(vm.max_map_count): raise that (sysctl vm.max_map_count=%" PRId64
        "), %s, or start fewer ranks",
        weft_units_show_bytes(page_bytes, a), count->all, limits->mappings, 2 * count->all,
        may_plan ? "raise the memory limit" : "plan again, with larger pages (cluster.page)");
}

/* Plans again in these pages; *fits: there is a plan, and it may be mapped. */
static enum weft_status plan_in_pages(struct weft_session *session, int64_t page_bytes,
                                      const struct mapped *mapped, bool *fits,
                                      struct weft_error *err)
{
    struct weft_error refusal = {0};
    struct weft_mappings count;
    struct weft_cluster *cluster = &session->config->cluster;
    const int64_t asked_bytes = cluster->page_bytes;
    weft_session_drop_plan(session);
    cluster->page_bytes = session->inputs.page_bytes = page_bytes;
    const enum weft_status status = weft_session_plan(session, NULL, &refusal);
    cluster->page_bytes = asked_bytes;
    *fits = false;
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    WEFT_TRY(count_mappings(session, mapped->ranks, &count, err));
    *fits = are_within(&count, &mapped->limits);
    return WEFT_OK;
}

enum weft_status weft_session_fit_mappings(struct weft_session *session, int64_t mapped_ranks,
                                           bool may_plan, struct weft_error *err)
{
    const struct mapped mapped = {weft_map_limits_read(), mapped_ranks};
    const struct weft_map_limits *limits = &mapped.limits;
    const int64_t page_bytes = session->program->paging->page_bytes;
    char small[WEFT_UNITS_TEXT_BYTES], large[WEFT_UNITS_TEXT_BYTES];
    struct weft_mappings count;
    if (session->config->cluster.device.type != WEFT_DEVICE_CPU) return WEFT_OK;
    WEFT_TRY(count_mappings(session, mapped_ranks, &count, err));
    bool fits = are_within(&count, limits);
    if (fits) return WEFT_OK;
    for (int64_t larger = 2 * page_bytes; may_plan && larger <= WEFT_PAGE_LARGE_BYTES;
         larger *= 2) {
        WEFT_TRY(plan_in_pages(session, larger, &mapped, &fits, err));
        if (!fits) continue;
        weft_log(WEFT_LOG_INFO,
                 "planned in pages of %s: in pages of %s a rank has %" PRId64
                 " mappings, above half of the %" PRId64
                 " that the system lets a process have (vm.max_map_count)",
                 weft_units_show_bytes(larger, large), weft_units_show_bytes(page_bytes, small),
                 count.all, limits->mappings);
        return WEFT_OK;
    }
    return refuse_mappings(&count, page_bytes, limits, may_plan, err);
}
