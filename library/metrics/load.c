/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

static const double least_cores_to_tell = 0.1;
static const double least_s_to_tell = 1;

bool weft_load_parse(const char *line, double ticks, struct weft_load *out)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N };
    int64_t t[N] = {0};
    if (strncmp(line, "cpu ", 4) != 0) return false; /* "cpu0 " is one core */
    int n = sscanf(line + 4,
                   " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
                   " %" SCNd64 " %" SCNd64,
                   &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ],
                   &t[STEAL]);
    if (n <= IDLE || ticks <= 0) return false;
    out->busy_s = (double)(t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ]) / ticks;
    out->stolen_s = (double)t[STEAL] / ticks;
    return true;
}

static double timeval_seconds(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

static double own_seconds(void)
{
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double sum = 0;
    for (size_t i = 0; i < sizeof whose / sizeof *whose; i++) {
        struct rusage usage;
        if (getrusage(whose[i], &usage) == 0)
            sum += timeval_seconds(&usage.ru_utime) + timeval_seconds(&usage.ru_stime);
    }
    return sum;
}

void weft_load_read(struct weft_load *out)
{
    char line[256];
    *out = (struct weft_load){.passed_s = 1e-9 * (double)weft_clock_now_ns(),
                              .own_s = own_seconds(),
                              .cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN)};
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL) return;
    out->known = fgets(line, sizeof line, file) != NULL &&
                 weft_load_parse(line, (double)sysconf(_SC_CLK_TCK), out);
    fclose(file);
}

void weft_load_spend(const struct weft_load *before, struct weft_load *spent)
{
    struct weft_load now;
    weft_load_read(&now);
    spent->known = now.known && before->known;
    spent->passed_s += now.passed_s - before->passed_s;
    spent->busy_s += now.busy_s - before->busy_s;
    spent->stolen_s += now.stolen_s - before->stolen_s;
    spent->own_s += now.own_s - before->own_s;
    spent->cores = now.cores;
}

static double in_cores(const struct weft_load *spent, double s)
{
    if (!spent->known || spent->passed_s <= 0 || s <= 0) return 0;
    return s < spent->passed_s * spent->cores ? s / spent->passed_s : spent->cores;
}

bool weft_load_is_long(const struct weft_load *spent)
{
    return spent->known && spent->passed_s >= least_s_to_tell;
}

double weft_load_of_others(const struct weft_load *spent)
{
    return in_cores(spent, spent->busy_s - spent->own_s);
}

double weft_load_stolen(const struct weft_load *spent)
{
    return in_cores(spent, spent->stolen_s);
}

void weft_load_add(const struct weft_load *spent, struct weft_text *out)
{
    double others = weft_load_of_others(spent), stolen = weft_load_stolen(spent);
    if (!weft_load_is_long(spent)) return;
    if (others >= least_cores_to_tell)
        weft_text_addf(out,
                       "other programs used %.1f of %d cores: measured times are longer by that\n",
                       others, (int)spent->cores);
    if (stolen >= least_cores_to_tell)
        weft_text_addf(out,
                       "the host of this virtual machine took %.1f of %d cores: measured times are "
                       "longer by that\n",
                       stolen, (int)spent->cores);
}
