// The one place that reads model_config.yaml (spec hamer 2.3).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "io/mapped_file.h"
#include "io/printable.h"
#include "models/hamer/config.h"

namespace sinew::hamer {
namespace {

constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;  // the published file has 2.5 kB

class Reader {
 public:
  Reader(const YAML::Node& root, const std::string& name) : root_(root), name_(name) {}

  /// The node at a dotted path, or nothing. A step that is there but has no keys is an error, not an absence.
  std::optional<YAML::Node> find(const std::string& path) const {
    YAML::Node node;
    node.reset(root_);
    for (std::size_t start = 0; start <= path.size();) {
      const std::size_t dot = std::min(path.find('.', start), path.size());
      if (!node.IsMap())
        throw fail(ErrorCode::kFormat, "{}: {} must be a mapping", name_, path.substr(0, start - 1));
      const YAML::Node next = static_cast<const YAML::Node&>(node)[path.substr(start, dot - start)];
      if (!next.IsDefined() || next.IsNull()) return std::nullopt;
      node.reset(next);
      start = dot + 1;
    }
    return node;
  }

  template <typename T>
  std::optional<T> get(const std::string& path) const {
    const auto node = find(path);
    if (!node) return std::nullopt;
    try {
      return node->template as<T>();
    } catch (const YAML::Exception&) {
      throw fail(ErrorCode::kFormat, "{}: {} has an unexpected type", name_, path);
    }
  }

  /// Three positive finite numbers.
  void read_triple(const std::string& path, std::array<double, 3>& value) const {
    const auto found = get<std::vector<double>>(path);
    if (!found) return;
    const bool good =
        found->size() == 3 && std::ranges::all_of(*found, [](double v) { return std::isfinite(v) && v > 0; });
    if (!good) throw fail(ErrorCode::kFormat, "{}: {} must be three positive numbers", name_, path);
    std::ranges::copy(*found, value.begin());
  }

  /// A word that must be the one this engine implements.
  void require_word(const std::string& path, const std::string& expected) const {
    const auto word = get<std::string>(path);
    if (word && *word != expected) {
      throw fail(ErrorCode::kUnsupported, "{}: {} is {}, only {} is supported", name_, path, printable(*word),
                 expected);
    }
  }

  void compare(const std::string& path, std::int64_t size, std::vector<std::string>& problems) const {
    const auto stated = get<std::int64_t>(path);
    if (stated && *stated != size) {
      problems.push_back(fmt::format("{} is {}, the tensors say {}", path, *stated, size));
    }
  }

 private:
  const YAML::Node& root_;
  const std::string& name_;
};

void read_head(const Reader& reader, const std::string& name, Config& config) {
  const std::string decoder = "MODEL.MANO_HEAD.TRANSFORMER_DECODER.";
  if (const auto dim_head = reader.get<std::int64_t>(decoder + "dim_head")) {
    if (*dim_head <= 0 || config.head_inner % *dim_head != 0) {
      throw fail(ErrorCode::kMismatch, "{}: {}dim_head is {}, which does not divide the tensors' {}", name,
                 decoder, *dim_head, config.head_inner);
    }
    config.head_heads = config.head_inner / *dim_head;
  }
  reader.require_word(decoder + "norm", "layer");
  std::vector<std::string> problems;
  reader.compare(decoder + "heads", config.head_heads, problems);
  reader.compare(decoder + "depth", config.head_depth, problems);
  reader.compare(decoder + "mlp_dim", config.head_mlp, problems);
  reader.compare(decoder + "context_dim", config.embed, problems);
  if (!problems.empty()) throw fail(ErrorCode::kMismatch, "{}: {}", name, fmt::join(problems, "; "));
}

}  // namespace

void apply_yaml_text(const std::string& text, const std::string& name, Config& config) {
  if (text.size() > kMaxYamlBytes) {
    throw fail(ErrorCode::kLimit, "{}: {} bytes, at most {} are read", name, text.size(), kMaxYamlBytes);
  }
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw fail(ErrorCode::kFormat, "{}: not YAML: {}", name, printable(error.what()));
  }
  if (!root.IsMap()) throw fail(ErrorCode::kFormat, "{}: expected a mapping with MODEL and EXTRA", name);
  const Reader reader(root, name);

  reader.require_word("MODEL.BACKBONE.TYPE", "vit");
  reader.require_word("MODEL.MANO_HEAD.TYPE", "transformer_decoder");
  reader.require_word("MODEL.MANO_HEAD.JOINT_REP", "6d");
  reader.require_word("MODEL.MANO_HEAD.TRANSFORMER_INPUT", "zero");
  const auto image_size = reader.get<std::int64_t>("MODEL.IMAGE_SIZE");
  if (image_size && *image_size != kImageRows) {
    throw fail(ErrorCode::kUnsupported, "{}: MODEL.IMAGE_SIZE is {}, only {} is supported", name, *image_size,
               kImageRows);
  }
  // The loader sets it when it is absent; another shape would be another crop (spec hamer 2.3).
  const auto box_shape = reader.get<std::vector<std::int64_t>>("MODEL.BBOX_SHAPE");
  if (box_shape && *box_shape != std::vector{kImageColumns, kImageRows}) {
    throw fail(ErrorCode::kUnsupported, "{}: MODEL.BBOX_SHAPE is [{}], only [{}, {}] is supported", name,
               fmt::join(*box_shape, ", "), kImageColumns, kImageRows);
  }
  reader.read_triple("MODEL.IMAGE_MEAN", config.image_mean);
  reader.read_triple("MODEL.IMAGE_STD", config.image_std);
  if (const auto focal = reader.get<double>("EXTRA.FOCAL_LENGTH")) {
    if (!std::isfinite(*focal) || *focal <= 0) {
      throw fail(ErrorCode::kFormat, "{}: EXTRA.FOCAL_LENGTH is {}, expected a positive number", name,
                 *focal);
    }
    config.focal_length = *focal;
  }
  if (const auto iters = reader.get<std::int64_t>("MODEL.MANO_HEAD.IEF_ITERS")) {
    if (*iters < 1 || *iters > 100) {
      throw fail(ErrorCode::kFormat, "{}: MODEL.MANO_HEAD.IEF_ITERS is {}, expected 1 to 100", name, *iters);
    }
    config.ief_iters = *iters;
  }
  read_head(reader, name, config);
}

void apply_yaml(const std::string& path, Config& config) {
  const MappedFile file = MappedFile::open(path);
  const auto bytes = file.bytes();
  apply_yaml_text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path, config);
}

}  // namespace sinew::hamer
