#include "cli/inputs.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "cli/support.h"

namespace sinew::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kPictures = {".jpg", ".jpeg", ".png"};

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kPictures, extension) != kPictures.end();
}

template <typename Iterator>
void take_pictures(const std::string& folder, std::vector<std::string>& out) {
  std::error_code error;
  Iterator at(folder, error);
  for (const Iterator end; !error && at != end; at.increment(error)) {
    std::error_code ignored;  // of a broken link: it is no picture
    if (is_picture(at->path()) && at->is_regular_file(ignored)) out.push_back(at->path().string());
  }
  if (error) throw fail(ErrorCode::kNotFound, "{}: cannot read the folder: {}", folder, error.message());
}

std::vector<std::string> pictures_of(const std::string& folder, bool recursive) {
  std::vector<std::string> found;
  if (recursive) {
    take_pictures<fs::recursive_directory_iterator>(folder, found);
  } else {
    take_pictures<fs::directory_iterator>(folder, found);
  }
  if (found.empty()) {
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no *.jpg, *.jpeg or *.png in this folder", folder),
                recursive ? "" : "--recursive looks into the folders below, too");
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  struct Matches : glob_t {
    Matches() : glob_t{} {}
    ~Matches() { globfree(this); }
    Matches(const Matches&) = delete;
    Matches& operator=(const Matches&) = delete;
  } matches;
  const int failed = glob(pattern.c_str(), GLOB_TILDE, nullptr, &matches);
  if (failed != 0) throw fail(ErrorCode::kNotFound, "{}: no file matches this pattern", pattern);
  return {matches.gl_pathv, matches.gl_pathv + matches.gl_pathc};
}

bool is_folder(const std::string& path) {
  std::error_code
      ignored;  // what cannot be looked at is left to the reader of files, whose message is better
  return fs::is_directory(path, ignored);
}

bool is_pattern(const std::string& word) {
  std::error_code ignored;
  const auto bracket = word.find('[');
  const bool set = bracket != std::string::npos && word.find(']', bracket) != std::string::npos;
  return (set || word.find_first_of("*?") != std::string::npos) && !fs::exists(word, ignored);
}

/// `word` and what it stands for.
void expand(const std::string& word, bool recursive, std::vector<std::string>& out) {
  if (is_folder(word)) {
    const auto pictures = pictures_of(word, recursive);
    out.insert(out.end(), pictures.begin(), pictures.end());
  } else if (is_pattern(word)) {
    for (const std::string& match : matches_of(word)) {
      if (is_folder(match)) {
        expand(match, recursive, out);
      } else {
        out.push_back(match);
      }
    }
  } else {
    out.push_back(word);
  }
}

}  // namespace

std::vector<Input> expand_inputs(const std::vector<std::string>& words, bool recursive) {
  std::vector<std::string> paths;
  for (const std::string& word : words) expand(word, recursive, paths);
  std::set<std::string> seen;
  std::erase_if(paths, [&](const std::string& path) {
    return !seen.insert(fs::path(path).lexically_normal().string()).second;
  });
  std::map<std::string, int> uses;
  for (const std::string& path : paths) ++uses[stem_of(path)];
  std::set<std::string> taken;
  std::vector<Input> inputs;
  inputs.reserve(paths.size());
  for (const std::string& path : paths) {
    std::string stem = stem_of(path);
    const bool shared = uses[stem] > 1;
    if (shared) stem = fmt::format("{}_{}", inputs.size(), stem);
    // "0_x" made here may be the real name of another input.
    while (!taken.insert(stem).second) stem = fmt::format("{}_{}", inputs.size(), stem);
    inputs.push_back({path, stem});
  }
  return inputs;
}

bool is_input_folder(const std::vector<std::string>& words, const std::string& folder, bool recursive) {
  std::error_code ignored;  // a folder that does not exist yet is nobody's input
  const fs::path target = fs::weakly_canonical(folder, ignored);
  return std::ranges::any_of(words, [&](const std::string& word) {
    if (!is_folder(word)) return false;
    const fs::path input = fs::weakly_canonical(word, ignored);
    if (!recursive) return input == target;
    const auto [end, unused] = std::mismatch(input.begin(), input.end(), target.begin(), target.end());
    return end == input.end();
  });
}

}  // namespace sinew::cli
