/* The devices of this build: X(name). A row stands for weft_device_NAME in runtime/device,
 * weft_arena_NAME in runtime/arena and weft_nn_backend_NAME in runtime/nn, which each of those
 * makes a table of, and is what the config's cluster.device names. */
#ifndef WEFT_RUNTIME_DEVICE_BACKENDS_H
#define WEFT_RUNTIME_DEVICE_BACKENDS_H

#define WEFT_DEVICES(X) X(cpu) X(strict)
/* Devices whose three tables are in a module of that name (module.h). */
#define WEFT_MODULES(X) X(cuda)

#endif
