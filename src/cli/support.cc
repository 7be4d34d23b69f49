#include "cli/support.h"

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "io/printable.h"

namespace sinew::cli {

CropKind parse_crop(const std::string& word) {
  const auto kind = parse_crop_kind(word);
  if (!kind) throw fail(ErrorCode::kUsage, "no crop is called {}; there are pillow and opencv", word);
  return *kind;
}

std::optional<Policy> policy_option(const std::string& word) {
  if (word.empty()) return std::nullopt;
  const auto policy = parse_policy(word);
  if (!policy)
    throw fail(ErrorCode::kUsage, "no policy is called {}; there are f64, f32, bf16 and bfp8", word);
  return policy;
}

std::vector<std::string> words_of(const std::string& list) {
  return list.empty() ? std::vector<std::string>() : split(list, ',');
}

void check_box_of(const std::string& path, const HandBox& box, const Image& frame) {
  try {
    check_box(box, frame.width, frame.height);
  } catch (const Error& error) {
    throw Error(ErrorCode::kMismatch, fmt::format("{}: {}", path, error.what()), error.hint());
  }
}

void check_finite(const std::string& path, const std::string& name, const TensorView& view) {
  for (std::int64_t i = 0; i < view.shape.count(); ++i) {
    if (!std::isfinite(element(view, i))) {
      throw fail(ErrorCode::kMismatch, "{}: {} element {} is {}, expected finite numbers", path, name, i,
                 element(view, i));
    }
  }
}

std::string one_line(const Error& error) {
  const std::string hint = error.hint().empty() ? "" : fmt::format(" ({})", error.hint());
  return printable(error.what() + hint, std::string::npos);
}

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string file_name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw fail(ErrorCode::kIo, "{}: cannot make the folder: {}", path, error.message());
}

}  // namespace sinew::cli
