/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/launch/launch.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct weft_error error;
static struct weft_rendezvous meeting;

static void forget_environment(void)
{
    static const char *const names[] = {
        "JSM_NAMESPACE_RANK",   "JSM_NAMESPACE_SIZE",
        "FLUX_TASK_RANK",       "FLUX_JOB_SIZE",
        "SLURM_STEP_NUM_TASKS", "RANK",
        "WORLD_SIZE",           "LOCAL_RANK",
        "WEFT_CONTROL_FD",      "PMI_RANK",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "WEFT_ARENA_FDS",       "PMI_SIZE",
        "SLURM_PROCID",         "SLURM_NTASKS",
        "SLURM_STEP_ID",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static void set(const char *name, const char *value)
{
    setenv(name, value, 1);
}

TestSuite(rendezvous, .init = forget_environment);

Test(rendezvous, nothing_is_a_single_process)
{
    cr_assert(weft_rendezvous_from_environment(&meeting, &error) == WEFT_OK);
    cr_assert(meeting.rank == 0 && meeting.ranks == 1);
    cr_assert(meeting.control_fd == -1 && meeting.arena_fds == NULL);
    weft_rendezvous_finish(&meeting);
}

Test(rendezvous, finish_takes_zeroes_and_leaves_stdin_open)
{
    struct weft_rendezvous zero = {0};
    weft_rendezvous_finish(&zero);
    cr_assert(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

Test(rendezvous, torchrun_is_told_what_works)
{
    set("RANK", "3");
    set("WORLD_SIZE", "8");
    cr_assert(weft_rendezvous_from_environment(&meeting, &error) == WEFT_E_ENVIRONMENT);
    cr_assert_str_eq(error.text,
                     "this looks like rank 3 of 8 of torchrun (RANK and WORLD_SIZE are set), but "
                     "here Weft runs only local ranks, which it starts itself: start one process "
                     "without these variables, `env -u RANK -u WORLD_SIZE weft ... -n 8`. For "
                     "ranks of several hosts start `weft train` or `weft profile` once, with `env "
                     "-u RANK -u WORLD_SIZE mpirun -n 8` (docs/hosts.md)");
}

Test(rendezvous, launchers_of_mpi_ranks_name_their_library)
{
    struct weft_stranger found;
    set("OMPI_COMM_WORLD_RANK", "1");
    set("OMPI_COMM_WORLD_SIZE", "2");
    cr_assert(weft_rendezvous_find_stranger(&found));
    cr_assert_str_eq(found.library, "openmpi");
    unsetenv("OMPI_COMM_WORLD_RANK");
    set("SLURM_PROCID", "1");
    set("SLURM_STEP_NUM_TASKS", "2");
    cr_assert(weft_rendezvous_find_stranger(&found) && found.library == NULL);
    set("PMIX_RANK", "1");
    cr_assert(weft_rendezvous_find_stranger(&found));
    cr_assert_str_eq(found.library, "openmpi");
    set("PMI_RANK", "1");
    set("PMI_SIZE", "2");
    cr_assert(weft_rendezvous_find_stranger(&found));
    cr_assert_str_eq(found.library, "mpich");
}

Test(rendezvous, hosts_are_nodes_of_consecutive_ranks)
{
    int32_t by_host[] = {0, 0, 1, 1}, in_turn[] = {0, 1, 0, 1}, one[] = {0, 0, 0, 0};
    struct weft_rendezvous ranks = {.ranks = 4, .hosts = by_host};
    cr_assert_eq(weft_rendezvous_check_hosts(&ranks, 2, &error), WEFT_OK, "%s", error.text);
    cr_assert_eq(weft_rendezvous_check_hosts(&ranks, 4, &error), WEFT_E_DISAGREE);
    cr_assert_not_null(strstr(error.text, "rank 2 is on host 1 of 2"), "%s", error.text);
    error = (struct weft_error){.status = WEFT_OK};
    cr_assert_eq(weft_rendezvous_check_hosts(&ranks, 0, &error), WEFT_E_DISAGREE);
    cr_assert_not_null(strstr(error.text, "cluster.ranks_per_node=N"), "%s", error.text);
    error = (struct weft_error){.status = WEFT_OK};
    ranks.hosts = in_turn;
    cr_assert_eq(weft_rendezvous_check_hosts(&ranks, 2, &error), WEFT_E_DISAGREE);
    cr_assert_not_null(strstr(error.text, "--map-by ppr:2:node"), "%s", error.text);
    error = (struct weft_error){.status = WEFT_OK};
    ranks.hosts = one;
    cr_assert_eq(weft_rendezvous_check_hosts(&ranks, 0, &error), WEFT_OK);
    cr_assert_eq(weft_rendezvous_check_hosts(&ranks, 2, &error), WEFT_E_DISAGREE);
    ranks.hosts = NULL; /* local ranks play nodes */
    error = (struct weft_error){.status = WEFT_OK};
    cr_assert_eq(weft_rendezvous_check_hosts(&ranks, 2, &error), WEFT_OK);
}

Test(rendezvous, other_launchers_are_known_too)
{
    static const char *const pairs[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                           {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};
    set("SLURM_STEP_ID", "0");
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct weft_error err = {.status = WEFT_OK};
        set(pairs[i][0], "1");
        set(pairs[i][1], "2");
        cr_assert(weft_rendezvous_from_environment(&meeting, &err) == WEFT_E_ENVIRONMENT);
        cr_assert(strstr(err.text, pairs[i][0]) != NULL, "%s", err.text);
        cr_assert(strstr(err.text, pairs[i][1]) != NULL, "%s", err.text);
        unsetenv(pairs[i][0]);
        unsetenv(pairs[i][1]);
    }
}

Test(rendezvous, a_slurm_batch_script_is_not_a_step)
{
    set("SLURM_PROCID", "0");
    set("SLURM_NTASKS", "8");
    cr_assert(weft_rendezvous_from_environment(&meeting, &error) == WEFT_OK);
    cr_assert(meeting.ranks == 1);
}

/* salloc's interactive step keeps the job's number of tasks. */
Test(rendezvous, the_tasks_of_a_slurm_step_decide)
{
    set("SLURM_PROCID", "0");
    set("SLURM_NTASKS", "8");
    set("SLURM_STEP_ID", "4294967290");
    set("SLURM_STEP_NUM_TASKS", "1");
    cr_assert(weft_rendezvous_from_environment(&meeting, &error) == WEFT_OK, "%s", error.text);
    cr_assert(meeting.ranks == 1);
    set("SLURM_STEP_NUM_TASKS", "4");
    cr_assert(weft_rendezvous_from_environment(&meeting, &error) == WEFT_E_ENVIRONMENT);
    cr_assert(strstr(error.text, "srun started 4 tasks without MPI, of which this is task 0") !=
                  NULL,
              "%s", error.text);
}

/* Flux and jsrun set PMI's and Open MPI's variables too. */
Test(rendezvous, the_launcher_is_named_and_not_its_library)
{
    struct weft_stranger found;
    set("PMI_RANK", "1");
    set("PMI_SIZE", "2");
    set("FLUX_TASK_RANK", "1");
    set("FLUX_JOB_SIZE", "2");
    cr_assert(weft_rendezvous_find_stranger(&found));
    cr_assert_str_eq(found.launcher, "Flux");
    set("FLUX_JOB_SIZE", "1");
    set("JSM_NAMESPACE_RANK", "0");
    set("JSM_NAMESPACE_SIZE", "2");
    set("OMPI_COMM_WORLD_RANK", "0");
    set("OMPI_COMM_WORLD_SIZE", "2");
    cr_assert(weft_rendezvous_find_stranger(&found));
    cr_assert_str_eq(found.launcher, "jsrun");
}

Test(rendezvous, one_rank_of_another_launcher_is_a_single_process)
{
    set("RANK", "0");
    set("WORLD_SIZE", "1");
    cr_assert(weft_rendezvous_from_environment(&meeting, &error) == WEFT_OK);
    cr_assert(meeting.ranks == 1 && meeting.control_fd == -1);
}

Test(rendezvous, descriptors_are_taken_over_and_closed)
{
    char text[64];
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = open("/dev/null", O_RDWR);
        cr_assert(fds[i] > STDERR_FILENO);
    }
    set("RANK", "1");
    set("WORLD_SIZE", "2");
    snprintf(text, sizeof text, "%d", fds[0]);
    set("WEFT_CONTROL_FD", text);
    snprintf(text, sizeof text, "%d,%d", fds[1], fds[2]);
    set("WEFT_ARENA_FDS", text);
    cr_assert(weft_rendezvous_from_environment(&meeting, &error) == WEFT_OK, "%s", error.text);
    cr_assert(meeting.rank == 1 && meeting.ranks == 2 && meeting.control_fd == fds[0]);
    cr_assert(meeting.arena_fds[0] == fds[1] && meeting.arena_fds[1] == fds[2]);
    for (int i = 0; i < 3; i++)
        cr_assert(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
    weft_rendezvous_finish(&meeting);
    for (int i = 0; i < 3; i++)
        cr_assert(fcntl(fds[i], F_GETFD) == -1);
}

/* Each is damaged in one variable; the message names it. */
Test(rendezvous, damage_is_named)
{
    static const struct {
        const char *rank, *ranks, *control, *arenas, *named;
    } cases[] = {
        {"0", "0", "@", "@,@", "WORLD_SIZE is \"0\""},
        {"0", "2x", "@", "@,@", "WORLD_SIZE is \"2x\""},
        {"0", "99999999999999999999", "@", "@,@", "WORLD_SIZE is \"99999999999999999999\""},
        {"2", "2", "@", "@,@", "RANK is \"2\""},
        {"-1", "2", "@", "@,@", "RANK is \"-1\""},
        {"", "2", "@", "@,@", "RANK is \"\""},
        {NULL, "2", "@", "@,@", "RANK is not set"},
        {"0", "2", "", "@,@", "WEFT_CONTROL_FD is \"\""},
        {"0", "2", "0", "@,@", "WEFT_CONTROL_FD is \"0\""},
        {"0", "2", "9999", "@,@", "WEFT_CONTROL_FD is \"9999\""},
        {"0", "2", "@", "@", "WEFT_ARENA_FDS is"},
        {"0", "2", "@", "@,@,@", "WEFT_ARENA_FDS is"},
        {"0", "2", "@", "@,9999", "WEFT_ARENA_FDS is"},
        {"0", "2", "@", NULL, "WEFT_ARENA_FDS is not set"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const values[] = {cases[i].rank, cases[i].ranks, cases[i].control,
                                      cases[i].arenas};
        static const char *const names[] = {"RANK", "WORLD_SIZE", "WEFT_CONTROL_FD",
                                            "WEFT_ARENA_FDS"};
        struct weft_error err = {.status = WEFT_OK};
        forget_environment();
        for (int k = 0; k < 4; k++) {
            char text[128] = ""; /* "@" stands for an open descriptor */
            for (const char *c = values[k]; c != NULL && *c != '\0'; c++) {
                size_t at = strlen(text);
                if (*c == '@') {
                    snprintf(text + at, sizeof text - at, "%d", open("/dev/null", O_RDWR));
                } else {
                    snprintf(text + at, sizeof text - at, "%c", *c);
                }
            }
            if (values[k] != NULL) set(names[k], text);
        }
        cr_assert(weft_rendezvous_from_environment(&meeting, &err) == WEFT_E_DATA, "case %zu", i);
        cr_assert(strstr(err.text, cases[i].named) != NULL, "case %zu: %s", i, err.text);
    }
}

Test(rendezvous, threads_are_as_asked_or_a_share_of_the_cores)
{
    const struct weft_rendezvous many = {.ranks = 1 << 20}, one = {.ranks = 1};
    cr_assert(weft_rendezvous_threads(&one, 7) == 7);
    cr_assert(weft_rendezvous_threads(&one, INT64_MAX) == INT32_MAX);
    cr_assert(weft_rendezvous_threads(&many, 0) == 1);
    cr_assert(weft_rendezvous_threads(&one, 0) >= 1);
}
