/* SPDX-License-Identifier: Apache-2.0 */
/* A double of CUDA's runtime and driver: libraries with their names and functions, so a module
 * built by nvcc runs unchanged. A stream is a thread that waits at random, by WEFT_DOUBLE_SEED.
 * Kernels are the emulated ones, found by the names that the module registers.
 *
 * Every operation has a vector clock of its issue, so an unordered use is found in any timing. A
 * mistake of a program is a finding. A program with findings ends with exit code 86, or at once by
 * SIGABRT if WEFT_DOUBLE_STOP is set (for programs that end without their destructors).
 *
 * WEFT_DOUBLE_FAIL=FUNCTION:N:CODE  the Nth call of the function returns CODE
 *                  FUNCTION@PLACE:N:CODE  the Nth call from one place: its return address from the
 *                    start of its file, in hexadecimal
 *                  ...:sticky  later calls return CODE too, as on a GPU with a lost context
 *                  ...:late    this call succeeds, and every later one returns CODE
 * WEFT_DOUBLE_FAIL_RANK=R     the failure is on local rank R alone
 * WEFT_DOUBLE_SITES=FILE      gets a line for every function and place that a process calls, with
 *                             its rank and file
 * WEFT_DOUBLE_DROP=NAME:N     plants a mistake: nothing waits for the Nth event that is recorded
 *                             just after an operation of this name; for cudaHostRegister, the Nth
 *                             call pins nothing */
#ifndef WEFT_TESTS_EMULATION_DOUBLES_DOUBLE_H
#define WEFT_TESTS_EMULATION_DOUBLES_DOUBLE_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/emulation/doubles/findings.h"

/* Number of earlier operations of each stream, by its index. */
typedef std::vector<uint32_t> double_clock;

/* One record of an event. */
struct double_mark {
    bool reached, dropped;
    int64_t ns; /* time of the record */
    double_clock clock, acquired;
};
struct double_event {
    bool timed;
    std::shared_ptr<double_mark> last; /* NULL: never recorded */
};

struct double_operation {
    uint32_t id; /* id in its clock */
    std::function<void(uint32_t id)> run;
    std::shared_ptr<double_mark> awaited; /* or NULL */
    bool waits;                           /* for other processes, or for double_door */
    std::function<bool(void)> ready;      /* a wait for the host; or empty */
};
struct double_stream {
    uint32_t index;
    std::thread worker;
    std::deque<struct double_operation> queue;
    uint32_t issued, done;
    double_clock clock; /* of the last issued operation */
    /* Brought by waits, and not known at the issue: the host's clock, for a word. */
    double_clock acquired;
    uint64_t random;
    std::string behind; /* the last issued operation that is no record or wait */
    bool ends;
};

/* Every call holds the door while it reads or changes shared state, and notifies `double_moved`
 * after a change. The latter is never destroyed: streams that a program leaves wait for it. */
extern std::mutex double_door;
extern std::condition_variable &double_moved;

/* Returns the code for this call of `function`: a requested one, or that of an earlier failed
 * operation. cudaSuccess: go on. */
cudaError_t double_enter(const char *function, const void *place);
/* The same for libraries with other codes: only a requested code; 0: go on. */
int double_asked(const char *function, const void *place);
/* True if WEFT_DOUBLE_DROP selects this one. */
bool double_drops(const std::string &what);
#define DOUBLE_PLACE __builtin_extract_return_addr(__builtin_return_address(0))
/* Marks the GPU as failed: later calls return `code`, and no issued operation runs. */
void double_break(cudaError_t code);
bool double_is_broken(void);
/* Every running operation holds it shared, except waits for other processes or the door. So a
 * caller learns of a failure only when no operation runs. */
std::shared_mutex &double_running(void);

/* streams.cc; call with the door held */
struct double_stream *double_stream_open(void);
void double_stream_close(struct double_stream *stream, std::unique_lock<std::mutex> &door);
bool double_stream_is_idle(const struct double_stream *stream);
void double_issue(struct double_stream *stream, const char *what,
                  std::function<void(uint32_t id)> run, std::shared_ptr<double_mark> awaited = NULL,
                  bool waits = false, std::function<bool(void)> ready = nullptr);
/* False if a stream has work that the host has not seen complete. */
bool double_host_knows_all(void);
void double_host_learns(const double_clock &clock);

/* uses.cc. Returns the id of a new operation, from 1 on. Call with the door held. */
uint32_t double_order_add(uint32_t stream, const double_clock &clock, const char *what);
/* Puts the operation after all of `clock`, when it begins. */
void double_order_acquire(uint32_t id, const double_clock &clock);
/* Finds earlier uses of these bytes that are not ordered with this one. */
void double_use(uint32_t id, const void *at, size_t bytes, bool write);
/* Attributes later accesses of watched kernels to the operation; 0: to none. */
void double_watch(uint32_t id);

/* Memory that operations may use. */
enum double_memory { DOUBLE_OF_DEVICE, DOUBLE_PINNED, DOUBLE_REGISTERED, DOUBLE_MAPPED };
void double_memory_add(const void *at, size_t bytes, enum double_memory kind);
/* Removes a piece. A finding if none begins there, or if operations may still use it. */
bool double_memory_remove(const void *at, enum double_memory kind);
/* True if one piece of that kind contains all bytes. */
bool double_memory_has(const void *at, size_t bytes, enum double_memory kind);
bool double_memory_is_device(const void *at, size_t bytes);
/* True if a piece contains some of the bytes. */
bool double_memory_touches(const void *at, size_t bytes);
size_t double_memory_count(void);
/* Bytes of allocations and cells, each counted once even if mapped twice. */
size_t double_memory_device_bytes(void);
void double_memory_add_cell(int64_t bytes); /* negative: removes one */

#endif
