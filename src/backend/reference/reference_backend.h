// The meaning of every op: slow, obvious, in double precision.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace sinew {

/// Every op computes in double from its operands and rounds once, to the dtype of the value it writes: a
/// double program gives the oracle, an f32 or bf16 program the best that policy can give. run() allocates
/// (unlike the fast backends'). `threads` share the rows of large products and change no bit.
std::unique_ptr<Backend> make_reference_backend(int threads);

}  // namespace sinew
