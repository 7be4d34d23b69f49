#include "hand/mano_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.h"
#include "hand/mano_pickle.h"
#include "io/bytes.h"
#include "io/mapped_file.h"

namespace sinew {
namespace {

constexpr std::int64_t kAny = -1;
constexpr std::int64_t kMaxFileVertices = 10'000;
constexpr std::int64_t kMaxFileShapes = 64;                                    // chumpy's source array has 20
constexpr std::int64_t kNoParent = std::numeric_limits<std::uint32_t>::max();  // MANO writes -1 as uint32

/// A tensor whose shape is `expected`, kAny standing for any extent. Throws kMismatch.
const TensorView& shaped(const Checkpoint& file, const std::string& key,
                         const std::vector<std::int64_t>& expected) {
  const TensorView& view = file.get(key);
  const auto dims = view.shape.dims();
  const bool fits =
      std::equal(dims.begin(), dims.end(), expected.begin(), expected.end(),
                 [](std::int64_t found, std::int64_t want) { return want == kAny || found == want; });
  if (fits) return view;
  std::string text;
  for (const std::int64_t want : expected) {
    text += (text.empty() ? "" : ",") + (want == kAny ? std::string("any") : std::to_string(want));
  }
  throw fail(ErrorCode::kMismatch, "{}: {}: shape {}, expected [{}]", file.path(), key, to_string(view.shape),
             text);
}

template <typename T>
std::vector<T> values(const Checkpoint& file, const std::string& key, const TensorView& view) {
  try {
    const Tensor copy = convert(view, DTypeOf<T>::value);
    const auto all = copy.as<T>();
    return {all.begin(), all.end()};
  } catch (const Error& error) {
    throw error.prefixed(fmt::format("{}: {}: ", file.path(), key));
  }
}

std::vector<double> numbers(const Checkpoint& file, const std::string& key,
                            const std::vector<std::int64_t>& expected) {
  return values<double>(file, key, shaped(file, key, expected));
}

void check_extent(const Checkpoint& file, const std::string& key, std::int64_t found, std::int64_t most) {
  if (found >= 1 && found <= most) return;
  throw fail(ErrorCode::kLimit, "{}: {}: extent {}, expected 1 to {}", file.path(), key, found, most);
}

void read_shapes(const Checkpoint& file, std::int64_t vertices, HandModelData& data) {
  const std::int64_t stored = shaped(file, "shapedirs", {vertices, 3, kAny}).shape[2];
  check_extent(file, "shapedirs", stored, kMaxFileShapes);
  const std::vector<double> all = numbers(file, "shapedirs", {vertices, 3, stored});
  data.shapes = std::min(static_cast<std::size_t>(stored), kMaxHandShapes);
  for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(stored)) {
    data.shapedirs.insert(data.shapedirs.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                          all.begin() + static_cast<std::ptrdiff_t>(at + data.shapes));
  }
}

void read_faces(const Checkpoint& file, std::int64_t vertices, HandModelData& data) {
  const TensorView& view = shaped(file, "f", {kAny, 3});
  check_extent(file, "f", view.shape[0], 4 * kMaxFileVertices);
  const auto corners = values<std::int64_t>(file, "f", view);
  for (std::size_t i = 0; i < corners.size(); ++i) {
    if (corners[i] < 0 || corners[i] >= vertices) {
      throw fail(ErrorCode::kMismatch, "{}: f[{}][{}] is {}, there are {} vertices", file.path(), i / 3,
                 i % 3, corners[i], vertices);
    }
    if (i % 3 == 0) data.faces.emplace_back();
    data.faces.back()[i % 3] = static_cast<std::uint32_t>(corners[i]);
  }
}

void read_tree(const Checkpoint& file, HandModelData& data) {
  const auto table =
      values<std::int64_t>(file, "kintree_table", shaped(file, "kintree_table", {2, kHandJoints}));
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const std::int64_t joint = table[kHandJoints + j];
    if (joint != static_cast<std::int64_t>(j)) {
      throw fail(ErrorCode::kMismatch, "{}: kintree_table[1][{}] is {}, expected {}", file.path(), j, joint,
                 j);
    }
    data.parents[j] = table[j] == kNoParent ? -1 : table[j];
  }
}

/// Pickles begin with PROTO, or with a mark or an empty dict in the protocols that have none.
bool is_pickle(std::span<const std::byte> bytes) {
  if (bytes.size() < 16) return false;
  const auto first = static_cast<unsigned char>(bytes[0]);
  // A safetensors header may have any length, so any first byte; its ninth opens a JSON object.
  const bool safetensors = bytes[8] == std::byte{'{'} && load<std::uint64_t>(bytes, 0) <= bytes.size() - 8;
  return !safetensors && (first == 0x80 || first == '(' || first == '}');
}

}  // namespace

HandModelData mano_from_tensors(const Checkpoint& file, const std::string& name) {
  HandModelData data;
  data.name = name;
  const std::int64_t vertices = shaped(file, "v_template", {kAny, 3}).shape[0];
  check_extent(file, "v_template", vertices, kMaxFileVertices);
  const std::vector<double> rest = numbers(file, "v_template", {vertices, 3});
  for (std::size_t i = 0; i < rest.size(); i += 3)
    data.v_template.push_back({rest[i], rest[i + 1], rest[i + 2]});
  read_shapes(file, vertices, data);
  data.posedirs = numbers(file, "posedirs", {vertices, 3, kHandPoseBlend});
  data.regressor = numbers(file, "J_regressor", {kHandJoints, vertices});
  data.weights = numbers(file, "weights", {vertices, kHandJoints});
  read_faces(file, vertices, data);
  read_tree(file, data);
  data.tips = kManoTips;
  return data;
}

HandModelData load_mano(const std::string& path) {
  std::unique_ptr<Checkpoint> file;
  {
    const MappedFile bytes = MappedFile::open(path);
    if (is_pickle(bytes.bytes())) file = parse_mano_pickle(bytes.bytes(), path);
  }
  if (file == nullptr) file = open_checkpoint(path);
  shaped(*file, "v_template", {kManoVertices, 3});
  return mano_from_tensors(*file, fmt::format("mano ({})", std::filesystem::path(path).filename().string()));
}

}  // namespace sinew
