// A file layer that fails, or stops, at one of its calls. Nothing is really synced: the tests outlive the
// machine's caches, and what a loss of power would undo is undone by hand.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/file_layer.h"

namespace sinew {

/// What a killed process would not live to see; no sinew::Error, so that nothing handles it.
struct Killed {};

enum class Fault : std::uint8_t {
  kIoError,    // the one call fails with EIO
  kNoSpace,    // and so does every later write
  kKill,       // nothing of the call happens (half of it, for a write), and nothing after it
  kKillAfter,  // the call happens, and nothing after it
  kExit,       // as kKill, for a process of its own
  // The call happens; then power fails. Unsynced data is cut in half, and of what happened to names since the
  // last sync_folder() is lost:
  kPowerLossOfAll,
  kPowerLossOfRemovals,  // but renames had reached the disk
  kPowerLossOfRenames,   // but removals had
};

class FaultyFiles final : public FileLayer {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();

  explicit FaultyFiles(int at = kNever, Fault fault = Fault::kKill) : at_(at), fault_(fault) {}
  ~FaultyFiles() override {
    std::error_code ignored;
    if (!backups_.empty()) std::filesystem::remove_all(backups_, ignored);
  }

  int calls() const { return calls_; }
  bool fired() const { return calls_ > at_; }
  void set_writable(bool writable) { writable_ = writable; }
  void set_free(std::uint64_t bytes) { free_ = bytes; }

  std::unique_ptr<OutputFile> create(const std::string& path) override {
    std::unique_ptr<OutputFile> out;
    step(path, [&] {
      out = std::make_unique<Output>(*this, path, system_files().create(path));
      journal_.push_back({Change::kCreate, path, "", ""});
    });
    return out;
  }
  void rename(const std::string& from, const std::string& to) override {
    step(to, [&] {
      const std::string backup = keep(to);
      system_files().rename(from, to);
      journal_.push_back({Change::kRename, from, to, backup});
      if (auto node = unsynced_.extract(from)) {
        node.key() = to;
        unsynced_.erase(to);
        unsynced_.insert(std::move(node));
      } else {
        unsynced_.erase(to);
      }
    });
  }
  void remove(const std::string& path) override {
    step(path, [&] {
      const std::string backup = keep(path);
      system_files().remove(path);
      unsynced_.erase(path);
      if (!backup.empty()) journal_.push_back({Change::kRemove, path, "", backup});
    });
  }
  void remove_folder(const std::string& path) override {
    step(path, [&] { system_files().remove_folder(path); });
  }
  void make_folder(const std::string& path) override {
    step(path, [&] { system_files().make_folder(path); });
  }
  void sync_folder(const std::string& path) override {
    step(path, [&] {
      std::erase_if(journal_, [&](const Change& change) {
        return std::filesystem::path(change.path).parent_path() == std::filesystem::path(path);
      });
    });
  }
  std::uint64_t free_bytes(const std::string&) override { return free_; }
  bool writable(const std::string& path) override { return writable_ && system_files().writable(path); }

 private:
  struct Change {
    enum Kind : std::uint8_t { kCreate, kRename, kRemove } kind;
    std::string path;
    std::string to;
    std::string backup;  // of what was replaced or removed
  };

  class Output final : public OutputFile {
   public:
    Output(FaultyFiles& owner, std::string path, std::unique_ptr<OutputFile> file)
        : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      if (owner_.full_ && !owner_.dead_) throw owner_.refusal(path_);
      owner_.step(
          path_,
          [&] {
            file_->write(bytes);
            owner_.unsynced_[path_] = true;
          },
          [&] { file_->write(bytes.first(bytes.size() / 2)); });
    }
    void sync() override {
      owner_.step(path_, [&] { owner_.unsynced_.erase(path_); });
    }

   private:
    FaultyFiles& owner_;
    std::string path_;
    std::unique_ptr<OutputFile> file_;
  };

  Error refusal(const std::string& path) const {
    const auto code = fault_ == Fault::kNoSpace ? std::errc::no_space_on_device : std::errc::io_error;
    return fail(ErrorCode::kIo, "{}: {}", path, std::make_error_code(code).message());
  }

  template <typename Act>
  void step(const std::string& path, const Act& act) {
    step(path, act, [] {});
  }
  template <typename Act, typename Half>
  void step(const std::string& path, const Act& act, const Half& half) {
    if (dead_) throw Killed();
    if (calls_++ != at_) return act();
    switch (fault_) {
      case Fault::kNoSpace:
        full_ = true;
        [[fallthrough]];
      case Fault::kIoError:
        half();
        throw refusal(path);
      case Fault::kExit:
        half();
        ::_exit(9);
      case Fault::kKill:
        half();
        break;
      case Fault::kKillAfter:
        act();
        break;
      default:
        act();
        lose_power();
    }
    dead_ = true;
    throw Killed();
  }

  /// A second name for what `path` is now, elsewhere on the same file system; empty when there is nothing.
  std::string keep(const std::string& path) {
    std::error_code none;
    if (!std::filesystem::is_regular_file(path, none)) return {};
    if (backups_.empty()) {
      static int layers = 0;
      backups_ = fmt::format("{}.backups-{}-{}", std::filesystem::path(path).parent_path().string(),
                             ::getpid(), layers++);
      std::filesystem::create_directories(backups_);
    }
    const std::string backup = backups_ + "/" + std::to_string(kept_++);
    std::filesystem::create_hard_link(path, backup);
    return backup;
  }

  void lose_power() {
    namespace fs = std::filesystem;
    for (const auto& [path, unsynced] : unsynced_) {
      if (fs::exists(path)) fs::resize_file(path, fs::file_size(path) / 2);
    }
    std::error_code ignored;
    for (auto change = journal_.rbegin(); change != journal_.rend(); ++change) {
      const bool removal = change->kind == Change::kRemove;
      if (removal && fault_ == Fault::kPowerLossOfRenames) continue;
      if (!removal && fault_ == Fault::kPowerLossOfRemovals) continue;
      if (removal && !fs::exists(change->path)) {
        fs::create_directories(fs::path(change->path).parent_path());  // which may have gone after it
        fs::rename(change->backup, change->path);
      }
      if (change->kind == Change::kCreate) fs::remove(change->path, ignored);
      if (change->kind == Change::kRename && fs::exists(change->to)) {
        fs::rename(change->to, change->path, ignored);
        if (!change->backup.empty()) fs::rename(change->backup, change->to, ignored);
      }
    }
  }

  int at_;
  Fault fault_;
  int calls_ = 0;
  bool dead_ = false;
  bool full_ = false;
  bool writable_ = true;
  std::uint64_t free_ = std::uint64_t{1} << 40;
  std::vector<Change> journal_;
  std::map<std::string, bool> unsynced_;
  std::string backups_;
  int kept_ = 0;
};

}  // namespace sinew
