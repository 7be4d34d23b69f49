#include "plan/remembered_digests.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/json_text.h"
#include "io/printable.h"
#include "plan/file_layer.h"
#include "plan/manifest.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "sinew-digests-1";
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // some 200,000 files
// The clock of file times ticks every 1 to 10 ms on local file systems.
constexpr std::int64_t kSettled = 100'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::optional<FileStamp> stamp_of(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  return FileStamp{info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
                   nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

std::uint64_t number(const Json& entry, const char* key, const std::string& where) {
  const auto at = entry.find(key);
  if (at == entry.end() || !at->is_number_unsigned())
    throw fail(ErrorCode::kFormat, "{}: {} must be a number of 0 or more", where, key);
  return at->get<std::uint64_t>();
}

RememberedDigest read_entry(const Json& entry, const std::string& where) {
  if (!entry.is_object()) throw fail(ErrorCode::kFormat, "{}: expected an object", where);
  RememberedDigest out;
  out.stamp.device = number(entry, "device", where);
  out.stamp.inode = number(entry, "inode", where);
  out.stamp.size = number(entry, "size", where);
  out.stamp.modified = static_cast<std::int64_t>(number(entry, "modified", where));
  out.stamp.changed = static_cast<std::int64_t>(number(entry, "changed", where));
  const auto digest = entry.find("digest");
  const auto parsed = digest != entry.end() && digest->is_string()
                          ? Digest::parse(digest->get_ref<const std::string&>())
                          : std::nullopt;
  if (!parsed) throw fail(ErrorCode::kFormat, "{}: digest must be 32 hexadecimal digits", where);
  out.digest = *parsed;
  return out;
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return stamp_of(info);
}

std::optional<FileStamp> stamp_of(int descriptor) {
  struct stat info{};
  if (::fstat(descriptor, &info) != 0) return std::nullopt;
  return stamp_of(info);
}

std::int64_t file_time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

bool is_settled(const FileStamp& stamp, std::int64_t begun) { return stamp.changed + kSettled < begun; }

std::string to_text(const RememberedDigests& digests) {
  Json files = Json::object();
  for (const auto& [path, entry] : digests) {
    // Times before 1970 wrap here and back in read_entry().
    files[encode_text(path)] = {{"device", entry.stamp.device},
                                {"inode", entry.stamp.inode},
                                {"size", entry.stamp.size},
                                {"modified", static_cast<std::uint64_t>(entry.stamp.modified)},
                                {"changed", static_cast<std::uint64_t>(entry.stamp.changed)},
                                {"digest", entry.digest.hex()}};
  }
  const Json root = {{"format", kFormat}, {"files", std::move(files)}};
  return root.dump(1) + "\n";
}

RememberedDigests parse_remembered_digests(std::string_view text, const std::string& name) {
  const Json root = parse_json_text(text, name, kMaxBytes);
  const auto files = root.is_object() ? root.find("files") : root.end();
  if (!root.is_object() || files == root.end() || !files->is_object())
    throw fail(ErrorCode::kFormat, "{}: expected an object with an object named files", name);
  RememberedDigests out;
  for (const auto& [key, entry] : files->items()) {
    auto path = decode_text(key);
    if (!path) throw fail(ErrorCode::kFormat, "{}: '{}' is not percent-encoded", name, printable(key));
    out.emplace(*std::move(path), read_entry(entry, fmt::format("{}: '{}'", name, printable(key))));
  }
  if (to_text(out) != text) throw fail(ErrorCode::kFormat, "{}: is not as sinew writes it", name);
  return out;
}

RememberedDigests load_remembered_digests(const std::string& path) {
  const auto text = read_small_file(path, kMaxBytes);
  if (!text) return {};
  try {
    return parse_remembered_digests(*text, path);
  } catch (const Error& error) {
    log(LogLevel::kInfo, "{}; it counts as empty", error.what());
    return {};
  }
}

}  // namespace sinew
