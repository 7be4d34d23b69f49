// A small HaMeR model on disk for tests of the C ABI, made once per test program (in hands_test.cc). No
// header of the library is included here: wrapper_test.cc must see sinew.hpp alone.
#pragma once

#include <string>

namespace sinew::capi {

const std::string& test_model();

}  // namespace sinew::capi
