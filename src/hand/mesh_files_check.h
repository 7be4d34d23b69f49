// Inside the mesh writers: what no file format could say.
#pragma once

#include <string>

#include "base/error.h"
#include "hand/mesh.h"

namespace sinew {

/// Throws Error (kMismatch) that names the file and the first vertex or face that is not sound.
void check_mesh(const std::string& path, const Mesh& mesh);

}  // namespace sinew
