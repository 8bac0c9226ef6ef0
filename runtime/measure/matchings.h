/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of perfect matchings: a tournament in which every pair of nodes meets once. In a round
 * each node has one partner, so no port serves two pairs at a time. An odd number of nodes leaves
 * one without a partner in each round. Source: the circle method (Kirkman, 1847): the last node
 * stays, the others turn by one place a round. */
#ifndef WEFT_RUNTIME_MEASURE_MATCHINGS_H
#define WEFT_RUNTIME_MEASURE_MATCHINGS_H

#include <stdint.h>

/* Rounds of a whole tournament of n >= 2 nodes: n - 1, or n if n is odd. */
int32_t weft_matching_rounds(int32_t nodes);

/* The partner of a node in a round of the tournament, from 0; -1: none. */
int32_t weft_matching_partner(int32_t nodes, int32_t round, int32_t node);

/* More nodes than this are measured in as many rounds as this number of nodes, spread evenly over
 * the tournament: each node then meets 62 or 63 others. */
enum { WEFT_MATCHING_MOST_NODES = 64 };

/* Rounds that are measured, and the round of the tournament that is measured as number i. */
int32_t weft_matching_measured(int32_t nodes);
int32_t weft_matching_round(int32_t nodes, int32_t i);

#endif
