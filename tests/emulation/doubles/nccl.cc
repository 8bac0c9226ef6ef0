/* SPDX-License-Identifier: Apache-2.0 */
/* A double of NCCL: the functions that Weft calls. Ranks are processes of one machine and meet in
 * shared memory that the id names. A thread puts a group on its stream late, by WEFT_DOUBLE_SEED.
 * Work issued to the stream before that is a finding, and so are collectives that differ between
 * ranks. WEFT_DOUBLE_NCCL_ASYNC=N:CODE makes the Nth group fail with a code. */
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include <nccl.h>

#include "tests/emulation/doubles/double.h"

enum {
    MOST_RANKS = 16,
    MOST_NAPS = 50000,
    SIGNATURE_BYTES = 1024,
    MOST_SENDS = 256,
    NAP_US = 100,
    LATE_US = 300
};
static const size_t payload_bytes = (size_t)16 << 20; /* per rank; pages are allocated on use */

struct sent {
    int peer;
    size_t at, bytes;
};
/* A rank's data for the others, between two meetings. */
struct board {
    std::atomic<uint32_t> meetings;
    char place[128]; /* host and GPU */
    char signature[SIGNATURE_BYTES];
    int sends;
    struct sent sent[MOST_SENDS];
    unsigned char payload[payload_bytes];
};

enum call_kind { CALL_GATHER, CALL_ALL_TO_ALL, CALL_SUM, CALL_GREATEST, CALL_SEND, CALL_RECV };
struct call {
    enum call_kind kind;
    const unsigned char *from;
    unsigned char *to;
    size_t bytes; /* per message */
    int peer;
};

struct ncclComm {
    int rank, ranks;
    struct board *boards;
    uint32_t meetings = 0;
    uint64_t random;
    std::atomic<bool> aborted{false};
    std::atomic<int> state{ncclInProgress};
    bool finalized = false;
    std::atomic<bool> asked{false}; /* asked since the latest group ended */
    std::thread helper;
    std::thread::id opener = std::this_thread::get_id();
};
typedef std::shared_ptr<struct ncclComm> shared_comm;

struct group {
    int depth = 0;
    ncclComm_t comm = NULL;
    struct double_stream *stream = NULL;
    std::vector<struct call> calls;
};
static thread_local struct group group;

/* Never freed: streams use it at the program's end. */
static std::vector<shared_comm> &comms(void)
{
    static std::vector<shared_comm> *const all = new std::vector<shared_comm>();
    return *all;
}

static shared_comm shared_of(ncclComm_t comm)
{
    const std::lock_guard<std::mutex> guard(double_door);
    for (const shared_comm &c : comms()) {
        if (c.get() == comm) return c;
    }
    return NULL;
}

static void look_at_thread(const struct ncclComm *c, const char *call)
{
    if (c->opener == std::this_thread::get_id()) return;
    weft_double_find(DOUBLE_OTHER_THREAD, "%s by another thread than opened the communicator",
                     call);
}

/* False if aborted; then other ranks may be missing. */
static bool meet(struct ncclComm *c)
{
    c->boards[c->rank].meetings = ++c->meetings;
    for (int r = 0; r < c->ranks; r++) {
        while (c->boards[r].meetings < c->meetings) {
            if (c->aborted) return false;
            usleep(NAP_US);
        }
    }
    return !c->aborted;
}

static void show_place(struct board *own)
{
    const char *host = getenv("NCCL_HOSTID");
    struct cudaDeviceProp gpu;
    int ordinal = 0;
    if (cudaGetDevice(&ordinal) != cudaSuccess ||
        cudaGetDeviceProperties(&gpu, ordinal) != cudaSuccess)
        return;
    snprintf(own->place, sizeof(own->place), "%.100s, GPU %d", host != NULL ? host : "",
             gpu.uuid.bytes[0]);
}

/* True if another rank has this rank's GPU, which NCCL refuses on one host. */
static bool shares_gpu(const struct ncclComm *c)
{
    for (int r = 0; r < c->ranks; r++) {
        if (r != c->rank && strcmp(c->boards[r].place, c->boards[c->rank].place) == 0) return true;
    }
    return false;
}

/* The work of a group, in its stream's thread. */

static void show(struct ncclComm *c, const std::vector<struct call> &calls)
{
    struct board *own = &c->boards[c->rank];
    std::string signature;
    size_t at = 0;
    own->sends = 0;
    for (const struct call &call : calls) {
        const size_t bytes = call.kind == CALL_ALL_TO_ALL ? call.bytes * c->ranks : call.bytes;
        if (call.kind == CALL_RECV) continue;
        if (call.kind == CALL_SEND) own->sent[own->sends++] = {call.peer, at, bytes};
        if (call.kind != CALL_SEND)
            signature += "collective " + std::to_string(call.kind) + " of " +
                         std::to_string(call.bytes) + " bytes; ";
        if (at + bytes > payload_bytes || own->sends == MOST_SENDS) abort();
        memcpy(own->payload + at, call.from, bytes);
        at += bytes;
    }
    snprintf(own->signature, sizeof(own->signature), "%s", signature.c_str());
}

static void add_words(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t a, b;
        memcpy(&a, to + i, sizeof(a));
        memcpy(&b, from + i, sizeof(b));
        a += b;
        memcpy(to + i, &a, sizeof(a));
    }
}

static void keep_greater(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint32_t)) {
        uint32_t a, b;
        memcpy(&a, to + i, sizeof(a));
        memcpy(&b, from + i, sizeof(b));
        if (a < b) memcpy(to + i, &b, sizeof(b));
    }
}

static void take_collective(struct ncclComm *c, const struct call &call, size_t at)
{
    if (call.kind == CALL_SUM || call.kind == CALL_GREATEST) memset(call.to, 0, call.bytes);
    for (int r = 0; r < c->ranks; r++) {
        const unsigned char *theirs = c->boards[r].payload + at;
        if (call.kind == CALL_SUM) add_words(call.to, theirs, call.bytes);
        if (call.kind == CALL_GREATEST) keep_greater(call.to, theirs, call.bytes);
        if (call.kind == CALL_GATHER && call.to + r * call.bytes != call.from)
            memcpy(call.to + r * call.bytes, theirs, call.bytes);
        if (call.kind == CALL_ALL_TO_ALL)
            memcpy(call.to + r * call.bytes, theirs + c->rank * call.bytes, call.bytes);
    }
}

/* Takes the peer's next message to this rank. */
static bool take_message(struct ncclComm *c, const struct call &call, int *next)
{
    const struct board *board = &c->boards[call.peer];
    while (*next < board->sends && board->sent[*next].peer != c->rank) {
        ++*next;
    }
    if (*next >= board->sends || board->sent[*next].bytes != call.bytes) return false;
    memcpy(call.to, board->payload + board->sent[(*next)++].at, call.bytes);
    return true;
}

static bool take(struct ncclComm *c, const std::vector<struct call> &calls)
{
    size_t at = 0;
    int next[MOST_RANKS] = {};
    for (int r = 0; r < c->ranks; r++) {
        if (strcmp(c->boards[r].signature, c->boards[c->rank].signature) != 0) return false;
    }
    for (const struct call &call : calls) {
        if (call.kind == CALL_RECV && !take_message(c, call, &next[call.peer])) return false;
        if (call.kind < CALL_SEND) take_collective(c, call, at);
        if (call.kind != CALL_RECV)
            at += call.kind == CALL_ALL_TO_ALL ? call.bytes * c->ranks : call.bytes;
    }
    return true;
}

/* An AllGather in place writes all pieces but this rank's. */
static void use_result(const struct ncclComm *c, const struct call &call, uint32_t id)
{
    const size_t own = c->rank * call.bytes, all = c->ranks * call.bytes;
    if (call.kind == CALL_GATHER && call.to + own == call.from) {
        double_use(id, call.to, own, true);
        double_use(id, call.to + own + call.bytes, all - own - call.bytes, true);
    } else {
        double_use(id, call.to, call.kind < CALL_SUM ? all : call.bytes, true);
    }
}

static void run_group(const shared_comm &c, const std::vector<struct call> &calls, uint32_t id)
{
    for (const struct call &call : calls) {
        const size_t all = call.bytes * c->ranks;
        if (call.from != NULL)
            double_use(id, call.from, call.kind == CALL_ALL_TO_ALL ? all : call.bytes, false);
        if (call.to != NULL) use_result(c.get(), call, id);
    }
    if (c->aborted) return;
    show(c.get(), calls);
    if (!meet(c.get())) return;
    if (!take(c.get(), calls)) {
        weft_double_find(DOUBLE_COLLECTIVE, "rank %d: %s and its peers' are not the same", c->rank,
                         c->boards[c->rank].signature);
        c->state = ncclInternalError;
    }
    (void)meet(c.get());
}

/* Issuing */

static int asked_code(void)
{
    static std::atomic<int> groups{0};
    const char *text = getenv("WEFT_DOUBLE_NCCL_ASYNC");
    int n = 0, code = 0;
    if (text == NULL || sscanf(text, "%d:%d", &n, &code) != 2) return ncclSuccess;
    return ++groups == n ? code : ncclSuccess;
}

/* Waits until the caller queries the communicator, or issues work after the group, which is the
 * mistake. So the load does not decide which comes first. The wait ends after 5 s. */
static void await_question(const shared_comm &c, struct double_stream *stream, uint32_t issued)
{
    for (int i = 0; i < MOST_NAPS && !c->asked && !c->aborted; i++) {
        usleep(NAP_US);
        const std::lock_guard<std::mutex> guard(double_door);
        if (stream->issued != issued) return;
    }
}

static void put_late(const shared_comm &c, struct double_stream *stream, uint32_t issued,
                     const std::vector<struct call> &calls, uint64_t late_us)
{
    await_question(c, stream, issued);
    usleep((useconds_t)late_us);
    const int code = asked_code();
    if (code != ncclSuccess) {
        c->state = code;
        return;
    }
    const std::lock_guard<std::mutex> guard(double_door);
    if (stream->issued != issued) {
        weft_double_find(DOUBLE_BEHIND, "work was put on the stream of a group that NCCL had not "
                                        "put there yet");
    }
    double_issue(
        stream, "a group of NCCL", [=](uint32_t id) { run_group(c, calls, id); }, NULL, true);
    int open = ncclInProgress;
    c->state.compare_exchange_strong(open, ncclSuccess);
}

static ncclResult_t end_group(void)
{
    const struct group ended = group;
    group = {};
    if (ended.comm == NULL) return ncclSuccess;
    const shared_comm c = shared_of(ended.comm);
    if (c == NULL || ended.stream == NULL) return ncclInvalidArgument;
    if (c->state != ncclSuccess) {
        weft_double_find(DOUBLE_BEHIND,
                         "a group begins while the one before is not done, or failed");
        return ncclInvalidUsage;
    }
    if (c->helper.joinable()) c->helper.join();
    c->state = ncclInProgress;
    c->asked = false;
    c->random = c->random * 6364136223846793005u + 1442695040888963407u; /* Knuth's */
    uint32_t issued;
    {
        const std::lock_guard<std::mutex> guard(double_door);
        issued = ended.stream->issued;
    }
    c->helper =
        std::thread(put_late, c, ended.stream, issued, ended.calls, (c->random >> 33) % LATE_US);
    return ncclInProgress;
}

static ncclResult_t add_call(ncclComm_t comm, cudaStream_t stream, const struct call &call)
{
    look_at_thread(comm, "a collective");
    group.comm = comm;
    group.stream = (struct double_stream *)stream;
    group.calls.push_back(call);
    return group.depth > 0 ? ncclSuccess : end_group();
}

static size_t bytes_of(size_t n, ncclDataType_t type)
{
    switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
        return 2 * n;
    case ncclFloat32:
    case ncclUint32:
        return 4 * n;
    case ncclUint64:
        return 8 * n;
    default:
        return 0;
    }
}

/* Returns a requested code. */
#define ENTER                                                                                      \
    do {                                                                                           \
        const int code_ = double_asked(__func__, DOUBLE_PLACE);                                    \
        if (code_ != 0) return (ncclResult_t)code_;                                                \
    } while (0)

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    return code == ncclSuccess ? "no error" : "an error of the double";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    ENTER;
    static int made;
    int fd;
    memset(id->internal, 0, sizeof(id->internal));
    /* A killed process may have left a file of the same number. */
    do {
        snprintf(id->internal, sizeof(id->internal), "/weft-double-%d-%d", (int)getpid(), ++made);
        fd = shm_open(id->internal, O_CREAT | O_EXCL | O_RDWR, 0600);
    } while (fd < 0 && errno == EEXIST);
    if (fd < 0) return ncclSystemError;
    const int failed = ftruncate(fd, (off_t)(sizeof(struct board) * MOST_RANKS));
    close(fd);
    return failed != 0 ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    ENTER;
    if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks || config->blocking != 0)
        return ncclInvalidArgument;
    const int fd = shm_open(id.internal, O_RDWR, 0);
    if (fd < 0) return ncclSystemError;
    void *all =
        mmap(NULL, sizeof(struct board) * MOST_RANKS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (all == MAP_FAILED) return ncclSystemError;
    const shared_comm c = std::make_shared<struct ncclComm>();
    const char *seed = getenv("WEFT_DOUBLE_SEED");
    c->rank = rank;
    c->ranks = ranks;
    c->boards = (struct board *)all;
    c->random = (uint64_t)(seed != NULL ? atol(seed) : 1) * 64 + (uint64_t)rank;
    const std::string name = id.internal;
    show_place(&c->boards[rank]);
    {
        const std::lock_guard<std::mutex> guard(double_door);
        comms().push_back(c);
    }
    c->helper = std::thread([=] {
        if (!meet(c.get())) return;
        if (c->rank == 0) shm_unlink(name.c_str());
        c->state = shares_gpu(c.get()) ? ncclInvalidUsage : ncclSuccess;
    });
    *comm = c.get();
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    ENTER;
    look_at_thread(comm, __func__);
    *state = (ncclResult_t)comm->state.load();
    comm->asked = true;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ENTER;
    const shared_comm c = shared_of(comm);
    if (c == NULL || c->state != ncclSuccess) return ncclInvalidUsage;
    look_at_thread(c.get(), __func__);
    if (c->helper.joinable()) c->helper.join();
    c->finalized = true;
    c->state = ncclInProgress;
    c->helper = std::thread([=] {
        /* Runs after all work of its streams. */
        if (meet(c.get())) c->state = ncclSuccess;
    });
    return ncclInProgress;
}

static ncclResult_t leave(ncclComm_t comm, bool aborts)
{
    const shared_comm c = shared_of(comm);
    if (c == NULL) return ncclInvalidArgument;
    look_at_thread(c.get(), aborts ? "ncclCommAbort" : "ncclCommDestroy");
    if (aborts) c->aborted = true;
    if (c->helper.joinable()) c->helper.join();
    const std::lock_guard<std::mutex> guard(double_door);
    for (size_t i = 0; i < comms().size(); i++) {
        if (comms()[i] == c) {
            comms().erase(comms().begin() + (long)i);
            break;
        }
    }
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ENTER;
    if (!comm->finalized || comm->state != ncclSuccess)
        weft_double_find(DOUBLE_DESTROYED, "a communicator that was not finalized until success");
    return leave(comm, false);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    ENTER;
    return leave(comm, true);
}

ncclResult_t ncclGroupStart(void)
{
    ENTER;
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    ENTER;
    if (group.depth == 0) return ncclInvalidUsage;
    return --group.depth > 0 ? ncclSuccess : end_group();
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    ENTER;
    return add_call(
        comm, stream,
        {CALL_GATHER, (const unsigned char *)from, (unsigned char *)to, bytes_of(n, type), -1});
}

ncclResult_t ncclAlltoAll(const void *from, void *to, size_t n, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    ENTER;
    return add_call(
        comm, stream,
        {CALL_ALL_TO_ALL, (const unsigned char *)from, (unsigned char *)to, bytes_of(n, type), -1});
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    ENTER;
    /* Sums of floats would have NCCL's own order, so only integers are supported. */
    const bool greatest = type == ncclUint32 && op == ncclMax;
    if (!greatest && (type != ncclUint64 || op != ncclSum)) return ncclInvalidArgument;
    return add_call(comm, stream,
                    {greatest ? CALL_GREATEST : CALL_SUM, (const unsigned char *)from,
                     (unsigned char *)to, bytes_of(n, type), -1});
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    ENTER;
    return add_call(comm, stream,
                    {CALL_SEND, (const unsigned char *)from, NULL, bytes_of(n, type), peer});
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    ENTER;
    return add_call(comm, stream, {CALL_RECV, NULL, (unsigned char *)to, bytes_of(n, type), peer});
}
}
