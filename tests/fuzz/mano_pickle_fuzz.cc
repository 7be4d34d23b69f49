// MANO's pickle, from bytes to a posed hand. Any sinew::Error is fine; what is accepted poses to finite
// numbers.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/error.h"
#include "hand/hand_model.h"
#include "hand/mano_file.h"
#include "hand/mano_pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 65536) return 0;  // a seed five times over; keeps one input fast
  try {
    const auto file = sinew::parse_mano_pickle(std::as_bytes(std::span(data, size)), "fuzz");
    sinew::HandModelData model = sinew::mano_from_tensors(*file, "fuzz");
    model.tips = {};  // MANO's are beyond a small mesh
    const sinew::HandModel hand(std::move(model), "fuzz");
    std::array<double, sinew::kHandRotationNumbers> rotations{};
    for (std::size_t i = 0; i < rotations.size(); ++i) rotations[i] = i % 9 % 4 == 0 ? 1 : 0.25;
    const std::array<double, 10> betas = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
    for (const sinew::Vec3& p : hand.pose(rotations, betas).vertices) {
      if (!std::isfinite(p[0] + p[1] + p[2])) std::abort();
    }
  } catch (const sinew::Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
