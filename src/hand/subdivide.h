// Finer meshes: every face in four, new vertices on the curved surface that the normals tell of.
#pragma once

#include <vector>

#include "hand/mesh.h"

namespace sinew {

/// One step of Phong tessellation (Boubekeur and Alexa 2008): an edge's middle moves half of the way to the
/// mean of its projections on the tangent planes of the edge's ends, so that outlines get round.
/// `carried` are other numbers of the vertices, one triple each, of which the middles are plain averages.
/// Faces with vertices that do not exist are dropped.
void subdivide(Mesh& mesh, std::vector<Vec3>& carried);

}  // namespace sinew
