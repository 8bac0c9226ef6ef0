/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/item_kind.h"

/* name, op_name, family, role, count, there, acquires, of_update, needs_step */
#define DEVICE WEFT_LOCATION_DEVICE
#define HOST   WEFT_LOCATION_HOST
#define DISK   WEFT_LOCATION_DISK
/* clang-format off */
const struct weft_item_kind weft_item_kinds[WEFT_ITEM_KIND_COUNT] = {
    [WEFT_ALL_GATHER] = {"all_gather", "all_gather", WEFT_ITEM_COLLECTIVE, WEFT_ROLE_GATHERS,
                         WEFT_ITEM_A_USE, DEVICE, true, false, false},
    [WEFT_REDUCE_SCATTER] = {"reduce_scatter", "reduce_scatter", WEFT_ITEM_COLLECTIVE,
                             WEFT_ROLE_REDUCES, WEFT_ITEM_A_REDUCTION, DEVICE, false, false, false},
    [WEFT_ALL_REDUCE] = {"all_reduce", "all_reduce", WEFT_ITEM_COLLECTIVE, WEFT_ROLE_REDUCES,
                         WEFT_ITEM_ONCE, DEVICE, false, false, false},
    [WEFT_STATE_READ] = {"read", "read", WEFT_ITEM_STATE, WEFT_ROLE_READS, WEFT_ITEM_ONCE, DISK,
                         true, true, false},
    [WEFT_STATE_WRITE] = {"write", "write", WEFT_ITEM_STATE, WEFT_ROLE_WRITES, WEFT_ITEM_ONCE, DISK,
                          false, true, true},
    [WEFT_STATE_UP] = {"state_up", "copy_up", WEFT_ITEM_STATE, WEFT_ROLE_UP, WEFT_ITEM_ONCE, HOST,
                       true, true, false},
    [WEFT_STATE_DOWN] = {"state_down", "copy_down", WEFT_ITEM_STATE, WEFT_ROLE_DOWN, WEFT_ITEM_ONCE,
                         HOST, false, true, true},
    [WEFT_GRADIENT_DOWN] = {"gradient_down", "gradient_down", WEFT_ITEM_HOST_UPDATE, WEFT_ROLE_DOWN,
                            WEFT_ITEM_ONCE, HOST, false, false, false},
    [WEFT_HOST_UPDATE] = {"host_update", "host_update", WEFT_ITEM_HOST_UPDATE, WEFT_ROLE_HOST,
                          WEFT_ITEM_ONCE, HOST, true, true, true},
    [WEFT_PARAMETERS_UP] = {"parameters_up", "parameters_up", WEFT_ITEM_HOST_UPDATE, WEFT_ROLE_UP,
                            WEFT_ITEM_ONCE, HOST, true, true, true},
    [WEFT_SAVED_DOWN] = {"saved_down", "saved_down", WEFT_ITEM_SAVED, WEFT_ROLE_DOWN,
                         WEFT_ITEM_A_MICRO_STEP, HOST, false, false, false},
    [WEFT_SAVED_UP] = {"saved_up", "saved_up", WEFT_ITEM_SAVED, WEFT_ROLE_UP,
                       WEFT_ITEM_A_MICRO_STEP, HOST, true, false, false},
    [WEFT_PARAMETERS_DOWN] = {"parameters_down", "parameters_down", WEFT_ITEM_PARAMETERS,
                              WEFT_ROLE_DOWN, WEFT_ITEM_ONCE, HOST, false, true, true},
    [WEFT_PARAMETERS_FETCH] = {"parameters_fetch", "parameters_fetch", WEFT_ITEM_PARAMETERS,
                               WEFT_ROLE_UP, WEFT_ITEM_A_USE, HOST, true, false, false},
    [WEFT_ACROSS_REDUCE] = {"across_reduce", "across_reduce", WEFT_ITEM_COLLECTIVE,
                            WEFT_ROLE_ACROSS, WEFT_ITEM_A_REDUCTION, DEVICE, false, false, false},
    [WEFT_ACROSS_SCATTER] = {"across_scatter", "across_scatter", WEFT_ITEM_COLLECTIVE,
                             WEFT_ROLE_ACROSS, WEFT_ITEM_A_REDUCTION, DEVICE, false, false, false},
    [WEFT_ACROSS_GATHER] = {"across_gather", "across_gather", WEFT_ITEM_COLLECTIVE,
                            WEFT_ROLE_ACROSS, WEFT_ITEM_ONCE, DEVICE, true, false, false},
    [WEFT_INPUT_DOWN] = {"input_down", "input_down", WEFT_ITEM_SAVED, WEFT_ROLE_DOWN,
                         WEFT_ITEM_A_MICRO_STEP, HOST, false, false, false},
    [WEFT_INPUT_UP] = {"input_up", "input_up", WEFT_ITEM_SAVED, WEFT_ROLE_UP,
                       WEFT_ITEM_A_MICRO_STEP, HOST, true, false, false},
    [WEFT_AVERAGE] = {"average", "average", WEFT_ITEM_AVERAGE, WEFT_ROLE_ACROSS, WEFT_ITEM_ONCE,
                      DEVICE, true, true, true},
    [WEFT_AVERAGE_GATHER] = {"average_gather", "average_gather", WEFT_ITEM_AVERAGE,
                             WEFT_ROLE_GATHERS, WEFT_ITEM_ONCE, DEVICE, true, true, true},
};
/* clang-format on */

enum weft_collective weft_item_kind_collective(int32_t kind)
{
    switch (kind) {
    case WEFT_ACROSS_REDUCE:
    case WEFT_AVERAGE:
        return WEFT_ALL_REDUCE;
    case WEFT_ACROSS_SCATTER:
        return WEFT_REDUCE_SCATTER;
    case WEFT_ACROSS_GATHER:
    case WEFT_AVERAGE_GATHER:
        return WEFT_ALL_GATHER;
    default:
        return kind < WEFT_COLLECTIVE_COUNT ? (enum weft_collective)kind : WEFT_COLLECTIVE_COUNT;
    }
}
