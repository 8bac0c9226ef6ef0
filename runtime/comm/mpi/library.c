/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one MPI library; compiled once for each. Its module is opened on demand. */
#include <mpi.h>
#include <string.h>

#include "include/weft.h"
#include "runtime/comm/mpi/calls.h"

/* Own messages are apart from the launcher's and from other users of the library. */
static MPI_Comm world = MPI_COMM_NULL;

static uint64_t store_request(MPI_Request request)
{
    uint64_t out = 0;
    _Static_assert(sizeof request <= sizeof out, "a request fits");
    if (request != MPI_REQUEST_NULL) memcpy(&out, &request, sizeof request);
    return out;
}

static MPI_Request load_request(const struct weft_mpi_request *request)
{
    MPI_Request out = MPI_REQUEST_NULL;
    if (request->library != 0) memcpy(&out, &request->library, sizeof out);
    return out;
}

static int start_library(int32_t *rank, int32_t *ranks, bool *threads)
{
    int level = MPI_THREAD_SINGLE, mine = 0, all = 0;
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(world, &mine);
    if (code == MPI_SUCCESS) code = MPI_Comm_size(world, &all);
    if (code != MPI_SUCCESS) return code;
    *rank = mine;
    *ranks = all;
    *threads = level >= MPI_THREAD_SERIALIZED;
    return 0;
}

static int finish_library(void)
{
    return MPI_Finalize();
}

static int send_bytes(const void *from, size_t bytes, int32_t to, int32_t tag,
                      struct weft_mpi_request *out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(from, (int)bytes, MPI_BYTE, to, tag, world, &request);
    out->library = code == MPI_SUCCESS ? store_request(request) : 0;
    return code;
}

static int receive_bytes(void *to, size_t bytes, int32_t from, int32_t tag,
                         struct weft_mpi_request *out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Irecv(to, (int)bytes, MPI_BYTE, from, tag, world, &request);
    out->library = code == MPI_SUCCESS ? store_request(request) : 0;
    return code;
}

static int test_request(struct weft_mpi_request *stored, bool *done)
{
    MPI_Request request = load_request(stored);
    int flag = 0;
    const int code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    stored->library = store_request(request);
    *done = flag != 0;
    return code;
}

static void drop_request(struct weft_mpi_request *stored)
{
    MPI_Request request = load_request(stored);
    stored->library = 0;
    if (request == MPI_REQUEST_NULL) return;
    (void)MPI_Cancel(&request);
    (void)MPI_Request_free(&request);
}

static int look_for_message(int32_t tag, int32_t *rank)
{
    MPI_Status status = {0};
    int flag = 0;
    const int code = MPI_Iprobe(MPI_ANY_SOURCE, tag, world, &flag, &status);
    *rank = code == MPI_SUCCESS && flag != 0 ? status.MPI_SOURCE : -1;
    return code;
}

static void explain_code(int code, char text[WEFT_MPI_TEXT_BYTES])
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, words, &length) != MPI_SUCCESS) words[0] = '\0';
    strncpy(text, words, WEFT_MPI_TEXT_BYTES - 1);
    text[WEFT_MPI_TEXT_BYTES - 1] = '\0';
}

static void tell_version(char text[WEFT_MPI_TEXT_BYTES])
{
    static char words[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(words, &length) != MPI_SUCCESS) words[0] = '\0';
    strncpy(text, words, WEFT_MPI_TEXT_BYTES - 1);
    text[WEFT_MPI_TEXT_BYTES - 1] = '\0';
    text[strcspn(text, ",\n")] = '\0';
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\t') *at = ' ';
}

/* weft_mpi_openmpi or weft_mpi_mpich, and the version that the program compares. */
WEFT_API extern const struct weft_mpi_calls WEFT_MPI_TABLE;
WEFT_API extern const char *const weft_module_version;

const struct weft_mpi_calls WEFT_MPI_TABLE = {
    .start = start_library,
    .finish = finish_library,
    .send = send_bytes,
    .receive = receive_bytes,
    .test = test_request,
    .drop = drop_request,
    .look = look_for_message,
#ifdef OPEN_MPI
    .round_bytes = 60 << 10,
#else
    .round_bytes = WEFT_MPI_MESSAGE_BYTES,
#endif
    .explain = explain_code,
    .version = tell_version,
};
const char *const weft_module_version = WEFT_MODULE_VERSION;
