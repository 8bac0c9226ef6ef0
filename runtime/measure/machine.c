/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/measure/machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/nn/cpu/kernels/kernels.h"

enum { MODEL_BYTES = 128 };

/* The model in /proc/cpuinfo, or "CPU". */
static void read_model(char out[MODEL_BYTES])
{
    char line[512];
    snprintf(out, MODEL_BYTES, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        const char *model = colon + 1 + strspn(colon + 1, " \t");
        snprintf(out, MODEL_BYTES, "%.*s", (int)strcspn(model, "\n"), model);
        break;
    }
    fclose(file);
}

void weft_measure_name_cpu(char out[WEFT_MACHINE_NAME_BYTES])
{
    char model[MODEL_BYTES];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    read_model(model);
    snprintf(out, WEFT_MACHINE_NAME_BYTES, "%s, %ld core%s, %s", model, cores,
             cores == 1 ? "" : "s", weft_kernels_best()->level);
}
