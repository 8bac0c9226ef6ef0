/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a profile, compared with this machine's and the config's. */
#include "library/foreign.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "runtime/measure/machine.h"

static char said[2000];
static enum weft_log_level said_level;
static int said_lines;

static void hear_log(void *context, enum weft_log_level level, const char *text)
{
    (void)context;
    said_level = level;
    said_lines++;
    snprintf(said, sizeof said, "%s", text);
}

/* A config of two ranks with so many threads each; 0: the machine decides. */
static struct weft_profile profile;
static struct weft_session foreign_session(int threads)
{
    static const char text[] =
        "{\"version\":1,\"model\":{\"layers\":[{\"name\":\"wte\",\"type\":\"embedding\","
        "\"vocab\":256,\"hidden\":64},{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,"
        "\"hidden\":64}]},\"cluster\":{\"ranks\":2},\"train\":{\"micro_batch\":2,\"seq_len\":64}}";
    struct weft_session session = {.profile = &profile};
    struct weft_error err = {0};
    char set[40];
    const char *overrides[] = {set};
    snprintf(set, sizeof set, "cluster.threads=%d", threads);
    cr_assert_eq(weft_config_parse(text, sizeof text - 1, "run.json", "/", overrides, threads > 0,
                                   &session.config, &err),
                 WEFT_OK, "%s", err.text);
    profile = (struct weft_profile){.ranks = 2, .kernels = "plain"};
    profile.origin = weft_profile_origin_unsaid;
    said[0] = '\0';
    said_lines = 0;
    weft_log_set_sink(hear_log, NULL);
    return session;
}

static void drop_session(struct weft_session *session)
{
    weft_log_set_sink(NULL, NULL);
    weft_config_destroy(session->config);
}

static void expect_foreign(const struct weft_session *session, bool machine, bool threads,
                           bool ranks)
{
    const uint32_t found = weft_session_compare_inputs(session);
    const uint32_t wanted = (uint32_t)machine << WEFT_INPUT_MACHINE |
                            (uint32_t)threads << WEFT_INPUT_THREADS |
                            (uint32_t)ranks << WEFT_INPUT_RANKS;
    cr_assert_eq(found, wanted, "%x, not %x", found, wanted);
}

Test(foreign, an_unknown_origin_never_differs)
{
    struct weft_session session = foreign_session(3);
    expect_foreign(&session, false, false, false);
    weft_session_tell_inputs(&session, true, false);
    cr_assert_eq(said_lines, 0, "%s", said);
    drop_session(&session);
}

Test(foreign, threads_of_the_config_are_compared_everywhere)
{
    char here[WEFT_MACHINE_NAME_BYTES];
    struct weft_session session = foreign_session(3);
    weft_measure_name_cpu(here);
    profile.origin.machine = here;
    profile.origin.threads = 3;
    expect_foreign(&session, false, false, false);
    profile.origin.threads = 4;
    expect_foreign(&session, false, true, false);
    weft_session_tell_inputs(&session, false, false);
    cr_assert(said_level == WEFT_LOG_WARNING && said_lines == 1 &&
                  strstr(said, "a rank of this config has 3 threads") != NULL &&
                  strstr(said, "and this machine is") == NULL,
              "%s", said);
    profile.origin.machine = "another machine, 4 cores";
    expect_foreign(&session, true, true, false);
    drop_session(&session);
}

/* With the number of threads left to the machine, another machine's may be another. */
Test(foreign, threads_of_the_machine_are_compared_on_it_alone)
{
    char here[WEFT_MACHINE_NAME_BYTES];
    struct weft_session session = foreign_session(0);
    weft_measure_name_cpu(here);
    profile.origin.machine = here;
    profile.origin.threads = 1 << 20;
    expect_foreign(&session, false, true, false);
    profile.origin.machine = "another machine, 4 cores";
    expect_foreign(&session, true, false, false);
    for (int runs_here = 0; runs_here < 2; runs_here++) {
        weft_session_tell_inputs(&session, runs_here, false);
        cr_assert_eq(said_level, runs_here ? WEFT_LOG_WARNING : WEFT_LOG_INFO);
        cr_assert(strstr(said, "and this machine is") != NULL &&
                      (strstr(said, "Measure with `weft profile`") != NULL) == runs_here,
                  "%s", said);
    }
    drop_session(&session);
}

Test(foreign, other_ranks_are_told)
{
    struct weft_session session = foreign_session(1);
    profile.origin.ranks = 1;
    expect_foreign(&session, false, false, true);
    weft_session_tell_inputs(&session, true, false);
    cr_assert(said_level == WEFT_LOG_INFO && strstr(said, "with 1 rank, ") != NULL &&
                  strstr(said, "the config has 2") != NULL,
              "%s", said);
    profile.origin.ranks = 8;
    weft_session_tell_inputs(&session, true, false);
    cr_assert_not_null(strstr(said, "with 8 ranks, "), "%s", said);
    drop_session(&session);
}

Test(foreign, a_load_is_told_from_its_least_on)
{
    struct weft_session session = foreign_session(1);
    profile.origin.busy_millicores = WEFT_BUSY_MILLICORES - 1;
    weft_session_tell_inputs(&session, false, false);
    cr_assert_eq(said_lines, 0, "%s", said);
    profile.origin.busy_millicores = WEFT_BUSY_MILLICORES;
    weft_session_tell_inputs(&session, false, false);
    cr_assert(said_level == WEFT_LOG_WARNING && strstr(said, "used 0.1 cores") != NULL, "%s", said);
    profile.origin.busy_millicores = 2340;
    weft_session_tell_inputs(&session, false, false);
    cr_assert_not_null(strstr(said, "used 2.3 cores"), "%s", said);
    drop_session(&session);
}

/* Each input is told with both values, and all of them in one line. */
Test(foreign, other_links_precisions_libraries_and_cores_are_told)
{
    struct weft_session session = foreign_session(1);
    char here[WEFT_MACHINE_NAME_BYTES];
    weft_measure_name_cpu(here);
    profile.origin.machine = here;
    profile.origin.threads = 1;
    profile.origin.cores = 1 << 19;
    profile.origin.link = "an emulated link of 20.0 us and 1.00 GB/s";
    profile.origin.precision = "bf16";
    setenv("WEFT_GEMM", "onednn", 1);
    static const char *const says[] = {"it could use 524288 cores then and can use",
                                       "collectives were measured over an emulated link of 20.0 us "
                                       "and 1.00 GB/s, and this run has "
                                       "the machine's own link",
                                       "layers were measured in bf16, and this run computes in f32",
                                       "products were measured by plain, and WEFT_GEMM is onednn"};
    weft_session_tell_inputs(&session, false, false);
    unsetenv("WEFT_GEMM");
    cr_assert(said_level == WEFT_LOG_WARNING && said_lines == 1, "%d", said_lines);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        cr_assert_not_null(strstr(said, says[i]), "%s: %s", says[i], said);
    drop_session(&session);
}

/* A profile of an older program has no link, and its source says whether it was emulated. */
Test(foreign, an_emulated_link_is_known_by_the_source_too)
{
    struct weft_session session = foreign_session(1);
    profile.source = "measured, emulated link, with analytic norm";
    cr_assert_eq(weft_session_compare_inputs(&session), 1u << WEFT_INPUT_LINK);
    session.config->cluster.emulate_link = true;
    cr_assert_eq(weft_session_compare_inputs(&session), 0);
    profile.source = "measured";
    cr_assert_eq(weft_session_compare_inputs(&session), 1u << WEFT_INPUT_LINK);
    profile.origin.ranks = 4;
    cr_assert_eq(weft_session_compare_inputs(&session), 1u << WEFT_INPUT_RANKS,
                 "collectives are analytic");
    profile.origin.ranks = 0;
    session.config->cluster.ranks = 1;
    cr_assert_eq(weft_session_compare_inputs(&session), 0, "one rank has no link");
    drop_session(&session);
}
