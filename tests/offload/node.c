/* SPDX-License-Identifier: Apache-2.0 */
/* The memory node of a set of cores, read from files in the system's format. */
#include "offload/node.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

enum { NODE_PATH_BYTES = 256 };

static char nodes[] = "/tmp/weft-nodes-XXXXXX";

static void put_node(const char *name, const char *text)
{
    char path[NODE_PATH_BYTES], directory[NODE_PATH_BYTES];
    struct weft_error err = {0};
    snprintf(path, sizeof path, "%s/%s", nodes, name);
    snprintf(directory, sizeof directory, "%s", path);
    *strrchr(directory, '/') = '\0';
    cr_assert_eq(weft_file_make_directory(directory, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_file_write(path, text, strlen(text), &err), WEFT_OK, "%s", err.text);
}

static void make_nodes(void)
{
    cr_assert_not_null(mkdtemp(nodes));
    put_node("online", "0-1,4\n");
    put_node("node0/cpulist", "0-3,16-19\n");
    put_node("node1/cpulist", "4-7\n");
    put_node("node4/cpulist", "\n");
}

static void remove_nodes(void)
{
    char command[NODE_PATH_BYTES];
    snprintf(command, sizeof command, "rm -r %s", nodes);
    cr_assert_eq(system(command), 0);
}

Test(node, most_cores_say_which, .init = make_nodes, .fini = remove_nodes)
{
    const int32_t low[] = {0, 1}, high[] = {5, 6, 7, 2}, split[] = {18, 19, 4}, none[] = {99};
    cr_assert_eq(weft_node_of_cores(nodes, low, 2), 0);
    cr_assert_eq(weft_node_of_cores(nodes, high, 4), 1);
    cr_assert_eq(weft_node_of_cores(nodes, split, 3), 0);
    cr_assert_eq(weft_node_of_cores(nodes, none, 1), -1);
}

Test(node, one_node_is_none_to_choose, .init = make_nodes, .fini = remove_nodes)
{
    const int32_t core = 0;
    put_node("online", "0\n");
    cr_assert_eq(weft_node_of_cores(nodes, &core, 1), -1);
    cr_assert_eq(weft_node_of_cores("/no/such/directory", &core, 1), -1);
}
