/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "subject.h"

Test(linear, is_the_formula)
{
    subject_check_layer(subject_linear(7, 5, true), 3, 4, 1000);
    subject_check_layer(subject_linear(7, 5, false), 3, 4, 1000);
    subject_check_layer(subject_linear(1, 1, true), 1, 1, 1000);
    subject_check_layer(subject_linear(37, 129, true), 13, 11, 40);
}
