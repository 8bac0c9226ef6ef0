/* SPDX-License-Identifier: Apache-2.0 */
/* Devices built into the program: X(name). A row stands for three tables: weft_device_NAME in
 * runtime/device, weft_arena_NAME in runtime/arena and weft_nn_backend_NAME in runtime/nn. `name`
 * is a value of the config's cluster.device. */
#ifndef WEFT_RUNTIME_DEVICE_BACKENDS_H
#define WEFT_RUNTIME_DEVICE_BACKENDS_H

#define WEFT_DEVICES(X) X(cpu)
/* Devices with their three tables in a module of the same name (module.h). */
#define WEFT_MODULES(X) X(cuda)

#endif
