/* SPDX-License-Identifier: Apache-2.0 */
/* The order of calls, over doubles of NCCL's functions that return prescribed results. The doubles
 * are in this file, and no NCCL is linked. */
#include "runtime/comm/nccl/library.h"

#include <criterion/criterion.h>
#include <nccl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static struct weft_text called;
static struct script {
    int busy;           /* how often ncclCommGetAsyncError says ncclInProgress */
    ncclResult_t state; /* and then */
    ncclResult_t init, group, send;
    int sends_left;           /* before `send` */
    _Atomic uint32_t *raised; /* raised when it was asked */
} script;
static int handle;

static ncclResult_t say(ncclResult_t code, const char *format, ...) WEFT_PRINTF(2, 3);
static ncclResult_t say(ncclResult_t code, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    weft_text_addf(&called, "%s%s", called.length > 0 ? " " : "", text);
    return code;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22809;
    return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t code)
{
    return code == ncclRemoteError ? "remote" : "other";
}
const char *ncclGetLastError(ncclComm_t comm)
{
    return comm != NULL ? "told last" : NULL;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id->internal, 7, sizeof id->internal);
    return script.init;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    cr_assert_eq(config->blocking, 0);
    cr_assert_eq(id.internal[127], 7);
    *comm = (ncclComm_t)(void *)&handle;
    return say(script.init, "init(%d of %d)", rank, ranks);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    cr_assert_eq((void *)comm, &handle);
    if (script.raised != NULL) atomic_store(script.raised, 1);
    *state = script.busy-- > 0 ? ncclInProgress : script.state;
    return say(ncclSuccess, *state == ncclInProgress ? "busy" : "ask");
}
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    script.busy = 1;
    return say(ncclInProgress, "finalize");
}
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    (void)comm;
    return say(ncclSuccess, "destroy");
}
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    (void)comm;
    return say(ncclSuccess, "abort");
}
/* The header declares both without a list of parameters. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupStart(void)
{
    return say(ncclSuccess, "(");
}
ncclResult_t ncclGroupEnd(void)
{
    return say(script.group, ")");
}
static unsigned char memory[2][1024];
static long offset_of(const void *at, int *which)
{
    *which = (const unsigned char *)at >= memory[1] ? 1 : 0;
    return (const unsigned char *)at - memory[*which];
}
ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    int which;
    const long at = offset_of(from, &which);
    cr_assert(comm != NULL && stream == NULL && type == ncclBfloat16 && n == 3);
    return say(script.sends_left-- == 0 ? script.send : ncclSuccess, ">%d:%d+%ld", peer, which, at);
}
ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    int which;
    const long at = offset_of(to, &which);
    cr_assert(comm != NULL && stream == NULL && type == ncclBfloat16 && n == 3);
    return say(ncclSuccess, "<%d:%d+%ld", peer, which, at);
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    int which;
    cr_assert(comm != NULL && stream == NULL && type == ncclFloat32);
    return say(script.group, "gather(%ld to %ld, %zu)", offset_of(from, &which),
               offset_of(to, &which), n);
}
ncclResult_t ncclAlltoAll(const void *from, void *to, size_t n, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    int which;
    cr_assert(comm != NULL && stream == NULL && type == ncclFloat16);
    return say(ncclSuccess, "all_to_all(%ld to %ld, %zu)", offset_of(from, &which),
               offset_of(to, &which), n);
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    int which;
    const bool is_flag = type == ncclUint32 && op == ncclMax;
    cr_assert(comm != NULL && stream == NULL && (is_flag || (type == ncclUint64 && op == ncclSum)));
    return say(ncclSuccess, "%s(%ld to %ld, %zu)", is_flag ? "greatest" : "sum",
               offset_of(from, &which), offset_of(to, &which), n);
}

static void check_called(const char *expected)
{
    cr_assert_str_eq(weft_text_chars(&called), expected);
    weft_text_finish(&called);
    weft_text_init(&called);
}

static const struct weft_nccl_memory places = {.arena = memory[0], .scratch = memory[1]};
static struct weft_error err;

static struct weft_nccl_link *open_link(const struct weft_nccl_link_options *options)
{
    struct weft_nccl_link *link = NULL;
    struct weft_nccl_id id;
    script = (struct script){.init = ncclSuccess};
    err = (struct weft_error){.status = WEFT_OK};
    weft_text_init(&called);
    cr_assert_eq(weft_nccl_make_id(&id, &err), WEFT_OK);
    script.init = ncclInProgress;
    script.busy = 2;
    cr_assert_eq(weft_nccl_link_open(options, &id, &link, &err), WEFT_OK, "%s", err.text);
    check_called("init(1 of 3) busy busy ask");
    return link;
}

static const struct weft_nccl_link_options usual = {
    .rank = 1, .ranks = 3, .timeout_ns = INT64_C(60) * 1000000000};
static const struct weft_nccl_agreement agreement = {8, 16, 2};
static const struct weft_nccl_step gather = {.kind = WEFT_NCCL_GATHER,
                                             .elements = 5,
                                             .dtype = WEFT_F32,
                                             .members = 3,
                                             .from.at.offset = 64,
                                             .to.at.offset = 128};

Test(nccl_library, is_asked_until_done_before_anything_else_is_issued)
{
    struct weft_nccl_link *link = open_link(&usual);
    script.group = ncclInProgress;
    script.busy = 3;
    cr_assert_eq(weft_nccl_issue(link, &gather, &places, NULL, &err), WEFT_OK);
    check_called("gather(64 to 128, 5) busy busy busy ask");
    script.group = ncclSuccess;
    cr_assert_eq(weft_nccl_agree(link, &agreement, &places, NULL, &err), WEFT_OK);
    check_called("( sum(8 to 16, 2) ) ask");
    cr_assert_eq(weft_nccl_link_close(link, &err), WEFT_OK);
    check_called("finalize busy ask destroy");
}

Test(nccl_library, exchange_is_one_all_to_all_or_one_group)
{
    struct weft_nccl_link *link = open_link(&usual);
    struct weft_nccl_step exchange = {.kind = WEFT_NCCL_EXCHANGE,
                                      .elements = 4,
                                      .dtype = WEFT_F16,
                                      .members = 3,
                                      .self = 1,
                                      .pieces = 1,
                                      .from = {{false, 16}, 8, 0},
                                      .to = {{true, 0}, 8, 0}};
    cr_assert_eq(weft_nccl_issue(link, &exchange, &places, NULL, &err), WEFT_OK);
    check_called("( all_to_all(16 to 0, 4) ) ask");
    exchange.dtype = WEFT_BF16;
    exchange.elements = 3;
    exchange.pieces = 2;
    exchange.from.skip = 100;
    exchange.to.skip = 50;
    cr_assert_eq(weft_nccl_issue(link, &exchange, &places, NULL, &err), WEFT_OK);
    check_called("( >2:0+32 <0:1+0 >2:0+132 <0:1+50 >0:0+16 <2:1+16 >0:0+116 <2:1+66 ) ask");
    cr_assert_eq(weft_nccl_link_close(link, &err), WEFT_OK);
    check_called("finalize busy ask destroy");
}

Test(nccl_library, flag_goes_along_in_the_same_group)
{
    struct weft_nccl_link *link = open_link(&usual);
    struct weft_nccl_memory flagged = places;
    const struct weft_nccl_step exchange = {.kind = WEFT_NCCL_EXCHANGE,
                                            .elements = 4,
                                            .dtype = WEFT_F16,
                                            .members = 3,
                                            .self = 1,
                                            .pieces = 1,
                                            .from = {{false, 16}, 8, 0},
                                            .to = {{true, 0}, 8, 0}};
    flagged.flag = (const uint32_t *)(const void *)(memory[0] + 48);
    flagged.greatest = (uint32_t *)(void *)(memory[1] + 12);
    cr_assert_eq(weft_nccl_issue(link, &exchange, &flagged, NULL, &err), WEFT_OK);
    check_called("( all_to_all(16 to 0, 4) greatest(48 to 12, 1) ) ask");
    cr_assert_eq(weft_nccl_agree(link, &agreement, &flagged, NULL, &err), WEFT_OK);
    check_called("( sum(8 to 16, 2) greatest(48 to 12, 1) ) ask");
    cr_assert_eq(weft_nccl_issue(link, &gather, &flagged, NULL, &err), WEFT_OK);
    check_called("gather(64 to 128, 5) ask");
    cr_assert_eq(weft_nccl_link_close(link, &err), WEFT_OK);
    check_called("finalize busy ask destroy");
}

/* Every later call says the same, and NCCL is not called again. */
static void check_broken(struct weft_nccl_link *link, enum weft_status status, const char *text)
{
    cr_assert_eq(err.status, status, "%s", err.text);
    cr_assert(strstr(err.text, text) != NULL, "%s", err.text);
    struct weft_error again = {.status = WEFT_OK};
    cr_assert_eq(weft_nccl_issue(link, &gather, &places, NULL, &again), status);
    cr_assert_str_eq(again.text, err.text);
    again = (struct weft_error){.status = WEFT_OK};
    cr_assert_eq(weft_nccl_agree(link, &agreement, &places, NULL, &again), status);
    again = (struct weft_error){.status = WEFT_OK};
    cr_assert_eq(weft_nccl_link_close(link, &again), status);
    cr_assert_str_eq(again.text, err.text);
    check_called("");
}

Test(nccl_library, error_that_comes_later_aborts_and_nothing_is_destroyed)
{
    static const struct {
        ncclResult_t code;
        enum weft_status status;
    } cases[] = {
        {ncclUnhandledCudaError, WEFT_E_ENVIRONMENT}, {ncclSystemError, WEFT_E_ENVIRONMENT},
        {ncclInternalError, WEFT_E_INTERNAL},         {ncclInvalidArgument, WEFT_E_INTERNAL},
        {ncclInvalidUsage, WEFT_E_INTERNAL},          {ncclRemoteError, WEFT_E_LOST}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_nccl_link *link = open_link(&usual);
        script.group = ncclInProgress;
        script.busy = 1;
        script.state = cases[i].code;
        cr_assert_eq(weft_nccl_issue(link, &gather, &places, NULL, &err), cases[i].status);
        check_called("gather(64 to 128, 5) busy ask abort");
        check_broken(link, cases[i].status, "told last");
        /* At once. */
        link = open_link(&usual);
        script.group = cases[i].code;
        cr_assert_eq(weft_nccl_issue(link, &gather, &places, NULL, &err), cases[i].status);
        check_called("gather(64 to 128, 5) abort");
        check_broken(link, cases[i].status, "an AllGather");
    }
}

Test(nccl_library, group_ends_although_a_call_in_it_failed)
{
    struct weft_nccl_link *link = open_link(&usual);
    const struct weft_nccl_step exchange = {.kind = WEFT_NCCL_EXCHANGE,
                                            .elements = 3,
                                            .dtype = WEFT_BF16,
                                            .members = 3,
                                            .self = 1,
                                            .pieces = 1,
                                            .from = {{false, 0}, 100, 0},
                                            .to = {{true, 0}, 6, 0}};
    script.send = ncclInvalidArgument;
    script.sends_left = 1;
    cr_assert_eq(weft_nccl_issue(link, &exchange, &places, NULL, &err), WEFT_E_INTERNAL);
    check_called("( >2:0+200 <0:1+0 >0:0+0 ) abort");
    check_broken(link, WEFT_E_INTERNAL, "an exchange");
}

Test(nccl_library, what_does_not_end_is_aborted_after_its_time)
{
    struct weft_nccl_link_options options = usual;
    options.timeout_ns = 0;
    struct weft_nccl_link *link = NULL;
    const struct weft_nccl_id id = {{[127] = 7}};
    weft_text_init(&called);
    script = (struct script){.init = ncclInProgress, .busy = 1000000};
    cr_assert_eq(weft_nccl_link_open(&options, &id, &link, &err), WEFT_E_HANG);
    cr_assert_null(link);
    cr_assert(strstr(err.text, "ranks coming together") != NULL, "%s", err.text);
    check_called("init(1 of 3) busy abort");
}

Test(nccl_library, somebody_who_gave_up_ends_the_wait)
{
    static _Atomic uint32_t given;
    struct weft_nccl_link_options options = usual;
    options.given = &given;
    struct weft_nccl_link *link = open_link(&options);
    script.group = ncclInProgress;
    script.busy = 1000000;
    script.raised = &given;
    cr_assert_eq(weft_nccl_issue(link, &gather, &places, NULL, &err), WEFT_E_LOST);
    check_called("gather(64 to 128, 5) busy abort");
    check_broken(link, WEFT_E_LOST, "rank 1 has given up");
    /* The issuing thread notices it too, between two calls. */
    atomic_store(&given, 0);
    link = open_link(&options);
    weft_nccl_link_abort(link, WEFT_E_HANG, "operation 4 is overdue");
    check_called("abort");
    err = (struct weft_error){.status = WEFT_OK};
    cr_assert_eq(weft_nccl_issue(link, &gather, &places, NULL, &err), WEFT_E_HANG);
    check_broken(link, WEFT_E_HANG, "operation 4 is overdue");
}

Test(nccl_library, version_is_that_of_the_library)
{
    char text[WEFT_NCCL_VERSION_BYTES];
    cr_assert_str_eq(weft_nccl_version(text), "2.28.9");
}
