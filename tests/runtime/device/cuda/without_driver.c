/* SPDX-License-Identifier: Apache-2.0 */
/* The module with NVIDIA's own libcudart reports a missing driver and names the cure. Skipped (77)
 * if there is a driver. */
#include <stdio.h>
#include <string.h>

#include "runtime/device/device.h"

int main(void)
{
    struct weft_device *device = NULL;
    struct weft_error err = {0};
    const enum weft_status status = weft_device_open("cuda", WEFT_CLOCK_WALL, &device, &err);
    if (status == WEFT_OK) {
        printf("skipped: this machine has a GPU\n");
        weft_device_close(device);
        return 77;
    }
    printf("%s\n", err.text);
    return !(status == WEFT_E_ENVIRONMENT && strstr(err.text, "driver") != NULL &&
             strstr(err.text, "docs/gpu.md") != NULL);
}
