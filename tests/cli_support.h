// Runs the real program, and makes the small models and pictures it is run on.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hand/boxes.h"
#include "io/atomic_file.h"
#include "io/image_codec.h"
#include "io/safetensors.h"
#include "io/test_folder.h"
#include "io/torch_archive.h"
#include "models/hamer/synth.h"

namespace sinew::cli_test {

/// What a run left behind. `status` is the exit status, or minus the signal that ended it.
struct Ran {
  int status = 0;
  std::string out;
  std::string err;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::ptrdiff_t lines_of(const std::string& text) { return std::ranges::count(text, '\n'); }

/// An environment variable that programs started meanwhile see.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedEnvironment() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// Runs `sinew ARGS...` in `folder`.
inline Ran run_sinew(const std::string& folder, const std::vector<std::string>& arguments) {
  const TestFolder streams;
  // Nobody's own cache is written to; a test that wants to find something again sets one.
  std::optional<ScopedEnvironment> cache;
  if (std::getenv("SINEW_CACHE") == nullptr) cache.emplace("SINEW_CACHE", streams.file("cache"));
  const std::string out = streams.file("out");
  const std::string err = streams.file("err");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), SINEW_PROGRAM);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, SINEW_PROGRAM, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " SINEW_PROGRAM);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("lost " SINEW_PROGRAM);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_text(out), read_text(err)};
}

/// The smallest HaMeR there is: one block of one head, one decoder layer of 64; 0.6 MB, so that tests stay
/// fast. Its output size and image size are those of the real one.
inline hamer::Config tiny_config() {
  hamer::Config config;
  config.embed = 80;
  config.mlp = 96;
  config.depth = 1;
  config.head_dim = 64;
  config.head_inner = 64;
  config.head_heads = 1;
  config.head_mlp = 32;
  config.head_depth = 1;
  return config;
}

/// What is wrong with a checkpoint.
struct Damage {
  std::vector<std::string> missing;
  std::string reshaped;  // gets an axis of one in front
  std::string poisoned;  // gets a NaN
};

template <typename Writer>
void write_tiny_with(const std::string& path, const Damage& damage) {
  std::vector<hamer::ExpectedTensor> tensors = hamer::expected_tensors(tiny_config());
  std::erase_if(tensors, [&](const auto& t) { return std::ranges::count(damage.missing, t.name) > 0; });
  std::vector<typename Writer::Entry> entries;
  for (const auto& tensor : tensors) {
    std::vector<std::int64_t> dims(tensor.shape.dims().begin(), tensor.shape.dims().end());
    if (tensor.name == damage.reshaped) dims.insert(dims.begin(), 1);
    entries.push_back({tensor.name, DType::kF32, Shape(std::span<const std::int64_t>(dims))});
  }
  Writer writer(path, entries);
  for (const auto& tensor : tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    hamer::synth_values(hamer::Generator::kNormal, 0, tensor, 0, tensor.shape.count(), values.data());
    if (tensor.name == damage.poisoned) values[0] = std::numeric_limits<float>::quiet_NaN();
    writer.write(std::as_bytes(std::span(values)));
  }
  writer.commit();
}

/// By extension: .safetensors, else a torch archive.
inline std::string write_tiny(const std::string& path, const Damage& damage = {}) {
  if (path.ends_with(".safetensors")) {
    write_tiny_with<SafetensorsWriter>(path, damage);
  } else {
    write_tiny_with<TorchArchiveWriter>(path, damage);
  }
  return path;
}

/// The sound model, made once per process.
inline const std::string& tiny_model() {
  static const TestFolder kFolder;
  static const std::string kPath = write_tiny(kFolder.file("hamer.ckpt"));
  return kPath;
}

/// Smooth with a little noise: different at every pixel, and a good PNG.
inline Image test_frame(int width = 160, int height = 120, unsigned seed = 1) {
  Image frame(width, height);
  std::mt19937 random(seed);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::uint8_t* p = frame.pixel(x, y);
      p[0] = static_cast<std::uint8_t>(x + random() % 32);
      p[1] = static_cast<std::uint8_t>(2 * y % 200 + random() % 32);
      p[2] = static_cast<std::uint8_t>((x + y) / 2 + random() % 32);
    }
  }
  return frame;
}

inline Image mirrored(const Image& image) {
  Image out(image.width, image.height);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x)
      std::copy_n(image.pixel(x, y), 3, out.pixel(image.width - 1 - x, y));
  }
  return out;
}

}  // namespace sinew::cli_test
