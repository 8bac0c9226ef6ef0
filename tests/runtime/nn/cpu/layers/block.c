#include <criterion/criterion.h>

#include "subject.h"
#include "tests/effort.h"

Test(block, is_the_formula_at_every_element_of_a_tiny_one)
{
    subject_check_layer(subject_block(6, 2, 10), 2, 5, 100000);
}

Test(block, crosses_the_blocks_of_the_score_matrix_with_sizes_that_divide_nothing)
{
    subject_check_layer(subject_block(15, 3, 34), 2, 67, TEST_CASES(12, 3));
    subject_check_layer(subject_block(10, 1, 7), 1, 131, TEST_CASES(8, 2));
}

Test(block, takes_exact_blocks)
{
    subject_check_layer(subject_block(32, 2, 64), 1, 128, TEST_CASES(6, 2));
}

Test(block, takes_heads_as_a_whole_where_kernels_do)
{
    subject_check_layer(subject_block(64, 1, 16), 2, 64, TEST_CASES(3, 1));
    subject_check_layer_in_f32(subject_block(128, 2, 16), 2, 128, TEST_CASES(2, 1));
}

Test(block, takes_one_token)
{
    subject_check_layer(subject_block(8, 4, 16), 1, 1, 100000);
    subject_check_layer(subject_block(8, 8, 16), 3, 1, 100000);
}
