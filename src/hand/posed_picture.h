// A hand picture from a hand model's mesh: every joint known, in pixels and in metres.
#pragma once

#include <cstdint>

#include "hand/hand_model.h"
#include "hand/picture.h"

namespace sinew {

/// The mesh in a pose that `seed` picks within the joints' limits (open, relaxed, some fingers bent, palm or
/// back towards the camera, turned and tilted), with skin under soft lights, a sleeve, and a soft background
/// that has the hand's shadow. A left hand is the right one's mirror image under the same lights. The camera
/// is a pinhole of 1.1 times the longer side; the hand spans about 0.6 of the shorter one. Deterministic.
/// `model` must lie flat at rest, as load_glb_hand() makes it (MANO does). width and height from 64 to 4096
/// pixels (kUsage).
HandPicture draw_posed_hand_picture(const HandModel& model, int width, int height, std::uint64_t seed,
                                    bool is_right);

}  // namespace sinew
