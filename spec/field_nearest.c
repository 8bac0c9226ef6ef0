/* Finds the intended name for an unknown one. */
#include <ctype.h>
#include <string.h>

#include "spec/field.h"

enum { LONGEST = 48 };

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance, ignoring case; a swap of neighbours is one step (optimal string alignment). */
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int cost[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= a_length; i++)
        cost[i][0] = (int)i;
    for (size_t j = 0; j <= b_length; j++)
        cost[0][j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        for (size_t j = 1; j <= b_length; j++) {
            int change = cost[i - 1][j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
            int best = least_of(change, least_of(cost[i - 1][j], cost[i][j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1])) {
                best = least_of(best, cost[i - 2][j - 2] + 1);
            }
            cost[i][j] = best;
        }
    }
    return cost[a_length][b_length];
}

/* Matches prefixes such as "memory" for "memory_limit", if they are long enough. */
static bool begins_with(const char *longer, const char *start, size_t length)
{
    return length >= 3 && strncmp(longer, start, length) == 0;
}

const char *weft_field_nearest(const char *name, const char *const *names, size_t n)
{
    size_t length = strlen(name);
    if (length == 0 || length > LONGEST) return NULL;
    int limit = 1 + (int)length / 4, best = limit + 1;
    const char *near = NULL, *prefix = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(names[i]);
        if (other > LONGEST) continue;
        int steps = edit_distance(name, length, names[i], other);
        /* A replaced one-letter name is another name, not a typing error. */
        if (steps < best && steps < (int)(length > other ? length : other)) {
            best = steps;
            near = names[i];
        }
        if (prefix == NULL &&
            (begins_with(names[i], name, length) || begins_with(name, names[i], other))) {
            prefix = names[i];
        }
    }
    return near != NULL ? near : prefix;
}
