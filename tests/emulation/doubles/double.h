/* A double of CUDA's runtime and driver: libraries with their names and functions, so that a module
 * that nvcc built runs unchanged. A stream is a thread that waits at random, by WEFT_DOUBLE_SEED;
 * kernels are the emulated ones, found by the names that the module registers. Every operation has
 * a vector clock from when it was issued, so a use that nothing orders is found whatever the timing
 * was. What a program does wrong is a finding; a program with one ends with exit code 86, or at
 * once by SIGABRT where WEFT_DOUBLE_STOP is set: for programs that end without their destructors.
 *
 * WEFT_DOUBLE_FAIL=FUNCTION:N:CODE makes the Nth call of a function return a code, and
 * FUNCTION@PLACE:N:CODE the Nth from one place of the program: its return address behind the
 * beginning of its file, in hexadecimal. ":sticky" behind it: so does every later call, as on a GPU
 * whose context is lost; ":late": this call goes on, and every later one returns the code.
 * WEFT_DOUBLE_FAIL_RANK=R: in local rank R alone. WEFT_DOUBLE_SITES=FILE gets a line for every
 * function and place that a process calls, with its rank and file.
 *
 * WEFT_DOUBLE_DROP=WHAT:N plants a mistake: nobody waits for the Nth event that is recorded right
 * behind an operation of that name, or, of cudaHostRegister, the Nth call pins nothing. */
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

/* How many operations of each stream, by its index, come before. */
typedef std::vector<uint32_t> double_clock;

/* One record of an event. */
struct double_mark {
    bool reached, dropped;
    int64_t ns; /* when */
    double_clock clock;
};
struct double_event {
    bool timed;
    std::shared_ptr<double_mark> last; /* NULL: never recorded */
};

struct double_operation {
    uint32_t id; /* of its clock */
    std::function<void(uint32_t id)> run;
    std::shared_ptr<double_mark> awaited; /* or NULL */
    bool waits;                           /* for other processes, or the door */
};
struct double_stream {
    uint32_t index;
    std::thread worker;
    std::deque<struct double_operation> queue;
    uint32_t issued, done;
    double_clock clock; /* of the last operation that was issued */
    uint64_t random;
    std::string behind; /* the operation that was issued last, but records and waits */
    bool ends;
};

/* Held by every call while it looks at or changes anything; `double_moved` when something has. The
 * second is never destroyed: streams that a program leaves wait for it. */
extern std::mutex double_door;
extern std::condition_variable &double_moved;

/* The code that this call of `function` is to return, cudaSuccess if it goes on: one that somebody
 * asked for, or that of an operation that failed before. */
cudaError_t double_enter(const char *function, const void *place);
/* The same for libraries whose codes are not CUDA's: only what somebody asked for; 0 if it goes on.
 */
int double_asked(const char *function, const void *place);
/* True: WEFT_DOUBLE_DROP asks for this one. */
bool double_drops(const std::string &what);
#define DOUBLE_PLACE __builtin_extract_return_addr(__builtin_return_address(0))
/* An operation failed: every later call returns this, and nothing that is on a stream is run. */
void double_break(cudaError_t code);
bool double_is_broken(void);
/* Shared by every operation while it runs, but for those that wait for other processes or the
 * door. Who is told
 * that all is broken is told when none runs any more. */
std::shared_mutex &double_running(void);

/* streams.cc; with the door */
struct double_stream *double_stream_open(void);
void double_stream_close(struct double_stream *stream, std::unique_lock<std::mutex> &door);
bool double_stream_is_idle(const struct double_stream *stream);
void double_issue(struct double_stream *stream, const char *what,
                  std::function<void(uint32_t id)> run, std::shared_ptr<double_mark> awaited = NULL,
                  bool waits = false);
/* False: a stream has work that the host has not seen done. */
bool double_host_knows_all(void);
void double_host_learns(const double_clock &clock);

/* uses.cc. The clock of an operation: its id, from 1 on. With the door. */
uint32_t double_order_add(uint32_t stream, const double_clock &clock, const char *what);
/* Looks for earlier uses of these bytes that nothing orders. */
void double_use(uint32_t id, const void *at, size_t bytes, bool write);
/* From now on uses by kernels, which are watched, are the operation's; 0: nobody's. */
void double_watch(uint32_t id);

/* Memory that operations may use. */
enum double_memory { DOUBLE_OF_DEVICE, DOUBLE_PINNED, DOUBLE_REGISTERED, DOUBLE_MAPPED };
void double_memory_add(const void *at, size_t bytes, enum double_memory kind);
/* A finding when there is none that begins there, or operations may still use it. */
bool double_memory_remove(const void *at, enum double_memory kind);
/* True: all of it lies in one piece of that kind. */
bool double_memory_has(const void *at, size_t bytes, enum double_memory kind);
bool double_memory_is_device(const void *at, size_t bytes);
/* True: some of it lies in a piece. */
bool double_memory_touches(const void *at, size_t bytes);
size_t double_memory_count(void);
/* What is allocated, and cells, each once, however often they are mapped. */
size_t double_memory_device_bytes(void);
void double_memory_add_cell(int64_t bytes); /* below 0: it is gone */

#endif
