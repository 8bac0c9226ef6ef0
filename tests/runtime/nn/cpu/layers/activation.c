#include <criterion/criterion.h>

#include "subject.h"

Test(activation, gelu_is_the_formula)
{
    subject_check_layer(subject_same(WEFT_LAYER_GELU, 37), 2, 3, 1000);
    subject_check_layer(subject_same(WEFT_LAYER_GELU, 1), 1, 1, 1000);
}

Test(activation, relu_is_the_formula)
{
    subject_check_layer(subject_same(WEFT_LAYER_RELU, 37), 2, 3, 1000);
    subject_check_layer(subject_same(WEFT_LAYER_RELU, 1), 1, 1, 1000);
}
