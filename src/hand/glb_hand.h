// The free hand: the mesh of the WebXR generic hand as a model with MANO's tree and axes.
#pragma once

#include <string>

#include "hand/hand_model.h"
#include "io/glb.h"

namespace sinew {

/// Which pose the identity rotations stand for.
enum class GlbRestPose {
  kAsModelled,  // the mesh as its file has it: fingers a little bent, the thumb towards the palm
  kFlat,  // bones turned into the directions of builtin_skeleton(), so that the network's rotations, which
          // are relative to MANO's flat template, mean nearly the same here
};

/// A model without shapes from right.glb of npm @webxr-input-profiles/assets, profile generic-hand (MIT): any
/// skinned mesh whose joints bear the WebXR names. The 16 joints are the ones of MANO's tree, and the weights
/// of all others (metacarpals, tips) go to the wrist's. Vertices that differ in their texture only become
/// one. A tip is the last vertex of the last bone. The wrist lies where builtin_skeleton() has it, so that
/// the network's camera fits. Throws Error (kMismatch) naming the joint or vertex: a joint is missing,
/// weights do not sum to 1, a left hand.
HandModelData hand_from_glb(const GlbSkinnedMesh& mesh, const std::string& name,
                            GlbRestPose rest = GlbRestPose::kFlat);

/// The same of a file; errors begin with its path.
HandModelData load_glb_hand(const std::string& path, GlbRestPose rest = GlbRestPose::kFlat);

}  // namespace sinew
