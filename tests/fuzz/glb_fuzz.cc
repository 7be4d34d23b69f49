// The GLB reader, and the hand made of what it accepts. Any sinew::Error is fine; indices of what is accepted
// lie within what they name.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/error.h"
#include "hand/glb_hand.h"
#include "hand/hand_model.h"
#include "io/glb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const sinew::GlbSkinnedMesh mesh = sinew::parse_glb(std::as_bytes(std::span(data, size)), "fuzz");
    if (mesh.joints.size() != mesh.positions.size() || mesh.weights.size() != mesh.positions.size())
      std::abort();
    for (const auto& four : mesh.joints) {
      for (const auto joint : four) {
        if (joint >= mesh.skeleton.size()) std::abort();
      }
    }
    for (const auto& face : mesh.triangles) {
      for (const auto vertex : face) {
        if (vertex >= mesh.positions.size()) std::abort();
      }
    }
    for (const sinew::GlbJoint& joint : mesh.skeleton) {
      if (joint.parent < -1 || joint.parent >= static_cast<int>(mesh.skeleton.size())) std::abort();
    }
    const sinew::HandModel hand(sinew::hand_from_glb(mesh, "fuzz"), "fuzz");
  } catch (const sinew::Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
