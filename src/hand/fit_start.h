// Where the fit of a hand begins.
#pragma once

#include "hand/fit.h"
#include "hand/fit_kinematics.h"

namespace sinew {

/// The first guess from the landmarks alone: the palm laid on the palm, each bone turned towards its
/// landmark, the hand set before the camera where its pixels say. Within limits, finite, before the camera
/// whatever the (finite) landmarks are.
FitState first_guess(const FitKinematics& hand, const FitTarget& target);

/// A pose as the fit's own numbers, angles moved within their limits. Throws Error (kMismatch): numbers that
/// are not finite, a root rotation that is none, a wrist that is not before the camera.
FitState state_of(const FitKinematics& hand, const HandPose& pose);
HandPose pose_of(const FitKinematics& hand, const FitState& state);

}  // namespace sinew
