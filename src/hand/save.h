// A hand as files: its mesh for other programs, its numbers for NumPy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hand/pipeline.h"

namespace sinew {

/// The words of `--save`: "json" and "png", then those that save_hand() writes, which need a mesh.
const std::vector<std::string>& save_words();
bool needs_mesh(std::string_view word);
/// "obj,glb" taken apart. Throws Error (kUsage) for an unknown or empty word.
std::vector<std::string> parse_save_words(const std::string& list);

/// Writes `<base>.<format>`, atomically.
///
/// obj and ply: the mesh in the frame's camera, y up and z towards the viewer, a MANO mesh with its wrist
/// closed, as the original demo's files. glb: the mesh with its skin and joints, so that viewers can pose it,
/// at the origin. npz: vertices, faces, joints_3d, joints_2d, rotmats, betas, cam, cam_t_full, focal_length,
/// camera [fx,fy,cx,cy], scale as in the record. Throws Error (kIo), (kUsage) for another format; `result`
/// must have vertices.
void save_hand(const std::string& base, std::string_view format, const HandResult& result,
               const HandModel& model);

}  // namespace sinew
