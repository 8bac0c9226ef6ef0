/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a store's threads. */
#include "offload/store_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/units.h"

/* Sleep after EAGAIN, and number of calls without progress that make an error. */
enum { AGAIN_NS = 1000000, MOST_IDLE_CALLS = 1000, NAME_BYTES = 96 };

static const char *const verbs[WEFT_STORE_DIRECTIONS] = {"read", "write"};

static const char *block_name(const struct weft_store_place *place, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "block %d of unit %d (%lld bytes at %lld)", (int)place->block.index,
             (int)place->block.unit, (long long)place->block.bytes, (long long)place->at);
    return out;
}

/* Drops the first `bytes` of the pieces. Returns the number of pieces that are used up. */
static int skip_pieces(struct iovec *pieces, int n, size_t bytes)
{
    int i = 0;
    for (; i < n && bytes >= pieces[i].iov_len; i++)
        bytes -= pieces[i].iov_len;
    if (i < n) {
        pieces[i].iov_base = (unsigned char *)pieces[i].iov_base + bytes;
        pieces[i].iov_len -= bytes;
    }
    return i;
}

static enum weft_status fail_move(const struct weft_store_file *file,
                                  const struct weft_store_place *place,
                                  enum weft_store_direction direction, const char *why,
                                  struct weft_error *err)
{
    char name[NAME_BYTES];
    return weft_fail(err, WEFT_E_IO, "cannot %s %s of the store in %s: %s", verbs[direction],
                     block_name(place, name), file->directory, why);
}

/* Moves all bytes of the pieces and uses the pieces up. */
static enum weft_status move_block(const struct weft_store_file *file,
                                   const struct weft_store_place *place,
                                   enum weft_store_direction direction, struct iovec *pieces, int n,
                                   struct weft_error *err)
{
    const struct weft_disk *disk = &file->disk;
    const bool reads = direction == WEFT_STORE_READ;
    int64_t done = 0;
    for (int idle = 0; done < place->block.bytes;) {
        const int64_t at = place->at + done;
        int64_t moved = (reads ? disk->calls->read : disk->calls->write)(disk->calls->context,
                                                                         disk->fd, pieces, n, at);
        if (moved < 0 && errno != EINTR && errno != EAGAIN)
            return fail_move(file, place, direction, strerror(errno), err);
        if (moved < 0 && errno == EAGAIN) weft_clock_sleep_until_ns(weft_clock_now_ns() + AGAIN_NS);
        if (moved > place->block.bytes - done) moved = place->block.bytes - done;
        /* Direct input and output must begin at a multiple of step_bytes, so a partial step is
         * moved again. */
        if (moved > 0) moved -= moved % disk->facts.step_bytes;
        idle = moved > 0 ? 0 : idle + 1;
        if (idle > MOST_IDLE_CALLS)
            return fail_move(file, place, direction, "the file ends before it, or nothing moves",
                             err);
        if (moved <= 0) continue;
        done += moved;
        const int empty = skip_pieces(pieces, n, (size_t)moved);
        pieces += empty;
        n -= empty;
    }
    return WEFT_OK;
}

static uint32_t crc_of_pieces(const struct iovec *pieces, int n)
{
    uint32_t crc = 0;
    for (int i = 0; i < n; i++)
        crc = weft_crc32c(crc, pieces[i].iov_base, pieces[i].iov_len);
    return crc;
}

/* Describes the origin of wrong bytes by their CRC. */
static void tell_origin(struct weft_store_file *file, const struct weft_store_place *place,
                        uint32_t found, char *out, size_t bytes)
{
    char name[NAME_BYTES];
    snprintf(out, bytes, "what came back was never written here");
    if (place->written > 1 && found == place->before)
        snprintf(out, bytes, "it is what the block held before: the last write was lost");
    pthread_mutex_lock(&file->mutex);
    for (int64_t i = 0; i < file->n_blocks; i++) {
        const struct weft_store_place *other = &file->places[i];
        if (other == place || other->busy || other->step < 0 || other->crc != found) continue;
        snprintf(out, bytes, "it is what %s holds", block_name(other, name));
        break;
    }
    pthread_mutex_unlock(&file->mutex);
}

static enum weft_status check_block(struct weft_store_file *file,
                                    const struct weft_store_place *place, uint32_t found,
                                    struct weft_error *err)
{
    char name[NAME_BYTES], origin[2 * NAME_BYTES];
    if (found == place->crc) return WEFT_OK;
    tell_origin(file, place, found, origin, sizeof origin);
    return weft_fail(err, WEFT_E_IO,
                     "%s of the store in %s is not what step %lld wrote: CRC %08x, not %08x; %s. "
                     "The disk or its cabling is bad; nothing was done with it",
                     block_name(place, name), file->directory, (long long)place->step, found,
                     place->crc, origin);
}

/* Frees the block for the next request. `crc` belongs to the bytes written, if any. */
static void end_block(struct weft_store_file *file, const struct weft_store_request *r,
                      bool written, uint32_t crc)
{
    struct weft_store_place *place = &file->places[r->block];
    pthread_mutex_lock(&file->mutex);
    if (written) {
        place->before = place->crc;
        place->crc = crc;
        place->step = r->step;
        place->written++;
    }
    place->busy = false;
    pthread_cond_broadcast(&file->freed);
    pthread_mutex_unlock(&file->mutex);
}

enum weft_status weft_store_file_serve(void *context, int32_t lane, void *request,
                                       struct weft_error *err)
{
    struct weft_store_file *file = context;
    struct weft_store_request *r = request;
    const struct weft_store_place *place = &file->places[r->block];
    const enum weft_store_direction direction = (enum weft_store_direction)lane;
    const bool reads = direction == WEFT_STORE_READ, verified = file->verified;
    const struct iovec *pieces = (const struct iovec *)(r + 1);
    struct iovec *left = (struct iovec *)(r + 1) + file->spans;
    memcpy(left, pieces, (size_t)r->n * sizeof *pieces);
    uint32_t crc = verified && !reads ? crc_of_pieces(pieces, r->n) : 0;
    enum weft_status status = move_block(file, place, direction, left, r->n, err);
    if (status == WEFT_OK && verified && reads)
        status = check_block(file, place, crc_of_pieces(pieces, r->n), err);
    end_block(file, r, status == WEFT_OK && !reads, crc);
    return status;
}

enum weft_status weft_store_file_hang(void *context, int32_t lane, const void *request,
                                      struct weft_error *err)
{
    const struct weft_store_file *file = context;
    const struct weft_store_request *r = request;
    char name[NAME_BYTES], waited[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_HANG,
                     "the disk hangs: a %s of %s of the store in %s has not ended in %s",
                     verbs[lane], block_name(&file->places[r->block], name), file->directory,
                     weft_units_show_ns(file->timeout_ns, waited));
}
