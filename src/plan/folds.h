// Folds: what is done to a product's input moved into its weight and bias, once, in double. Exact in real
// numbers. An extent that does not fit is an Error (kMismatch). A row of K is [K] or [1,K].
#pragma once

#include "plan/chain.h"

namespace sinew::transforms {

/// W diag(scale): with it W (scale * x) is W' x. `weight` [N,K], `scale` a row of K.
Chain fold_input_scale(Chain weight, Chain scale);
/// b - W' offset: with W' = fold_input_scale(W, scale), W ((x - offset) * scale) + b is W' x + b'. `bias` a
/// row of N, its shape kept; `weight` [N,K]; `offset` a row of K. With n = K + 4, u = 2^-53 and M = |b| +
/// sum_k |W'_k| (|x_k| + |offset_k|), both forms of an output lie within n u / (1 - n u) M of the real
/// number.
Chain fold_input_offset(Chain bias, Chain weight, Chain offset);
/// b + W shift: W (x + shift) + b is W x + b'. A layer norm's affine part into the product behind it is
/// fold_input_scale(W, gamma) with fold_input_shift(b, W, beta). Shapes and bound as above.
Chain fold_input_shift(Chain bias, Chain weight, Chain shift);
/// row + table[t] for each t: a bias and a position table become the one constant that a product lacks
/// (spec hamer 7.2, gr00t_n15 4.5 "b3_pos"). `table` [T,C], `row` of C. One rounding an element.
Chain fold_row(Chain table, Chain row);

}  // namespace sinew::transforms
