#include "plan/tier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"
#include "io/test_folder.h"
#include "plan/faulty_files.h"
#include "plan/process.h"
#include "plan/remembered_digests.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TierTest : public ::testing::Test {
 protected:
  /// Builds the tier with the first tensors.
  void make() {
    Tier tier(path_, kFirst, files_);
    build(tier, tensors_);
  }
  std::string file(const TierKey& key) const { return path_ + "/" + file_name(key); }

  TestFolder folder_;
  std::string path_ = folder_.file("plans/tier");
  FaultyFiles files_;
  TestTensors tensors_ = test_tensors(1);
  std::vector<TierKey> keys_ = keys_of(tensors_);
};

TEST_F(TierTest, ColdThenWarm) {
  {
    Tier tier(path_, kFirst);  // the one test whose files are really synced
    EXPECT_FALSE(tier.complete());
    EXPECT_EQ(tier.why_empty(), "no such folder");
    EXPECT_THAT(tier.keys(), IsEmpty());
    EXPECT_FALSE(tier.find(keys_.front()));
    for (const auto& [key, tensor] : tensors_) tier.put(key, tensor);
    EXPECT_FALSE(tier.complete());
    EXPECT_FALSE(tier.find(keys_.front())) << "part of the tier before finish()";
    tier.finish(keys_);
    EXPECT_TRUE(tier.complete()) << tier.why_empty();
    EXPECT_EQ(count_found(tier, tensors_), 4U);
  }
  Tier tier(path_, kFirst, files_);
  EXPECT_TRUE(tier.complete()) << tier.why_empty();
  EXPECT_EQ(tier.why_empty(), "");
  EXPECT_EQ(tier.keys(), keys_);
  EXPECT_EQ(tier.bytes(), 48U * 32 * 2 + 777 + 12);
  EXPECT_EQ(count_found(tier, tensors_), 4U);
  EXPECT_THAT(tier.damages(), IsEmpty());
  const int before = files_.calls();
  tier.finish(keys_);
  EXPECT_EQ(files_.calls(), before) << "nothing was cold, and something was written";
  for (const TierKey& key : keys_) tier.prefault(key);
  for (const TierKey& key : keys_) tier.release(key);
  EXPECT_EQ(count_found(tier, tensors_), 4U);
}

TEST_F(TierTest, FilesAreSafetensorsWithTheirChecksum) {
  make();
  for (const auto& [key, tensor] : tensors_) {
    const auto checkpoint = open_safetensors(file(key));
    ASSERT_EQ(checkpoint->tensors().size(), 1U);
    const auto& [name, view] = *checkpoint->tensors().begin();
    EXPECT_EQ(name, key.name);
    EXPECT_TRUE(same_bytes(view, tensor));
    const std::span<const std::byte> data(view.data, view.bytes());
    EXPECT_EQ(checkpoint->metadata().at("xxh3_128"), digest_of(data).hex());
    EXPECT_EQ(checkpoint->metadata().at("variant"), key.variant);
  }
}

TEST_F(TierTest, StridedTensorsAreWrittenInRowOrder) {
  const Tensor values = Tensor::of<float>({2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5});
  Strides steps{};
  steps[0] = 1;
  steps[1] = 3;
  Tier tier(path_, kFirst, files_);
  const TierKey key{"transposed", ""};
  tier.put(key, TensorView(DType::kF32, {3, 2}, steps, values.data()));
  tier.finish(std::vector{key});
  EXPECT_THAT(have(tier.find(key)).as<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(TierTest, TwoBuildsAreByteEqual) {  // row 31
  make();
  Tier other(folder_.file("other"), kFirst, files_);
  for (auto item = tensors_.rbegin(); item != tensors_.rend(); ++item) other.put(item->first, item->second);
  other.finish(std::vector<TierKey>(keys_.rbegin(), keys_.rend()));
  EXPECT_EQ(files_in(path_), files_in(folder_.file("other")));
  EXPECT_EQ(files_in(path_).size(), 4U + 2);
}

TEST_F(TierTest, EveryKeyOfTheIdentityCounts) {  // row 30
  make();
  for (const auto& [key, value] : kFirst) {
    Identity other = kFirst;
    other[key] += "x";
    Tier tier(path_, other, files_);
    EXPECT_FALSE(tier.complete());
    EXPECT_EQ(tier.why_empty(), fmt::format("{} is '{}', expected '{}x'", key, value, value));
    EXPECT_EQ(count_found(tier, tensors_), 0U);
    other.erase(key);
    EXPECT_FALSE(Tier(path_, other, files_).complete());
  }
  Identity more = kFirst;
  more["backend"] = "cpu";
  EXPECT_EQ(Tier(path_, more, files_).why_empty(), "has no backend, expected 'cpu'");
  // A bump of the version: a clean build, nothing of the old one is left.
  Tier tier(path_, kSecond, files_);
  const TierKey key{"only", ""};
  tier.put(key, tensors_.begin()->second);
  tier.finish(std::vector{key});
  EXPECT_EQ(files_in(path_).size(), 1U + 2);
  EXPECT_THAT(Tier(path_, kSecond, files_).keys(), ElementsAre(key));
  EXPECT_FALSE(Tier(path_, kFirst, files_).complete());
}

TEST_F(TierTest, TheMarkerGoesFirstAndComesLast) {
  make();
  Tier tier(path_, kFirst, files_);
  tier.put(keys_[0], tensors_.at(keys_[0]));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/.complete"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/.verified"));
  EXPECT_FALSE(tier.complete());
  EXPECT_EQ(tier.why_empty(), "is being written");
  EXPECT_FALSE(Tier(path_, kFirst, files_).complete());
  FaultyFiles counting;
  const std::string other = folder_.file("other");
  {
    Tier first(other, kFirst, counting);
    build(first, tensors_);
  }
  // The last calls of a build: create, write, sync and rename the marker, sync the folder.
  FaultyFiles stopped(counting.calls() - 2, Fault::kKill);
  Tier last(folder_.file("stopped"), kFirst, stopped);
  EXPECT_THROW(build(last, tensors_), Killed);
  EXPECT_EQ(files_in(folder_.file("stopped")).size(), 4U + 1);
}

TEST_F(TierTest, WithoutMarkerOrManifestItIsCold) {
  const auto why = [&] { return Tier(path_, kFirst, files_).why_empty(); };
  make();
  const std::string marker = contents(path_ + "/.complete");
  const std::string manifest = contents(path_ + "/manifest.json");
  std::filesystem::remove(path_ + "/.complete");
  EXPECT_EQ(why(), "was not finished: no marker");
  for (const std::string& text :
       {std::string(), marker + "\n", marker.substr(0, 20), "gr00t-ttnn-plan-v1\n" + marker}) {
    overwrite(path_ + "/.complete", text);
    EXPECT_EQ(why(), "the marker is not the manifest's");
  }
  overwrite(path_ + "/.complete", marker);
  EXPECT_EQ(why(), "");
  // Manifests that a marker vouches for, and that are none.
  for (const std::string& text :
       {std::string(), std::string("["), std::string("{}"), std::string("{\"files\":[]}"), manifest.substr(1),
        manifest + " ", std::string(100000, '[')}) {
    overwrite(path_ + "/manifest.json", text);
    overwrite(path_ + "/.complete", marker_text(digest_of(text)));
    EXPECT_THAT(why(), HasSubstr("manifest: ")) << text.substr(0, 20);
  }
  std::filesystem::remove(path_ + "/manifest.json");
  EXPECT_EQ(why(), "no readable manifest");
  std::filesystem::create_directory(path_ + "/manifest.json");
  EXPECT_EQ(why(), "no readable manifest");
  std::filesystem::remove(path_ + "/manifest.json");
  ASSERT_EQ(::mkfifo((path_ + "/manifest.json").c_str(), 0600), 0);
  EXPECT_EQ(why(), "no readable manifest");
  Tier again(path_, kFirst, files_);
  build(again, tensors_);
  EXPECT_EQ(contents(path_ + "/manifest.json"), manifest);
}

TEST_F(TierTest, OneBadFileIsOneColdTensor) {
  const TierKey bad = keys_.front();
  const auto reason_of = [&](const std::function<void()>& spoil) {
    make();
    spoil();
    Tier tier(path_, kFirst, files_);
    EXPECT_TRUE(tier.complete());
    EXPECT_EQ(count_found(tier, tensors_), 3U);
    EXPECT_EQ(count_found(tier, tensors_), 3U);
    const auto damages = tier.damages();
    EXPECT_EQ(damages.size(), 1U) << "told more than once";
    EXPECT_EQ(damages.at(0).key, bad);
    EXPECT_EQ(damages.at(0).path, file(bad));
    const auto verified = Tier(path_, kFirst, files_).verify();
    EXPECT_EQ(verified.size(), 1U);
    EXPECT_EQ(verified.at(0).reason, damages.at(0).reason);
    // That tensor alone is made again; the views of the others stay.
    const TensorView other = have(tier.find(keys_.back()));
    const int before = files_.calls();
    tier.put(bad, tensors_.at(bad));
    tier.finish(keys_);
    EXPECT_LT(files_.calls() - before, 25);
    EXPECT_EQ(count_found(tier, tensors_), 4U);
    EXPECT_EQ(have(tier.find(keys_.back())).data, other.data);
    EXPECT_THAT(tier.damages(), IsEmpty());
    EXPECT_THAT(Tier(path_, kFirst, files_).verify(), IsEmpty());
    return damages.at(0).reason;
  };
  const std::string whole = [&] { return make(), contents(file(bad)); }();
  EXPECT_EQ(reason_of([&] { std::filesystem::remove(file(bad)); }), "no such file");
  EXPECT_EQ(reason_of([&] { overwrite(file(bad), ""); }),
            "0 bytes, expected " + std::to_string(whole.size()));
  EXPECT_THAT(reason_of([&] { overwrite(file(bad), whole + "x"); }), HasSubstr("bytes, expected"));
  EXPECT_THAT(reason_of([&] { overwrite(file(bad), contents(file(keys_.at(1)))); }),
              HasSubstr("bytes, expected"));
  EXPECT_THAT(reason_of([&] { overwrite(file(bad), std::string(whole.size(), 'x')); }),
              HasSubstr("checksum is "));
}

TEST_F(TierTest, PartsAddUp) {
  {
    Tier tier(path_, kFirst, files_);
    tier.put(keys_[0], tensors_.at(keys_[0]));
    tier.put(keys_[1], tensors_.at(keys_[1]));
    tier.finish(keys_);  // the plan has four; two of them are there
  }
  const std::string first = contents(file(keys_[0]));
  {
    Tier tier(path_, kFirst, files_);
    EXPECT_TRUE(tier.complete());
    EXPECT_THAT(tier.keys(), ElementsAre(keys_[0], keys_[1]));
    EXPECT_EQ(count_found(tier, tensors_), 2U);
    tier.put(keys_[2], tensors_.at(keys_[2]));
    tier.put(keys_[3], tensors_.at(keys_[3]));
    tier.finish(keys_);
    EXPECT_EQ(count_found(tier, tensors_), 4U);
  }
  Tier tier(path_, kFirst, files_);
  EXPECT_EQ(count_found(tier, tensors_), 4U);
  tier.finish(std::span(keys_).first(1));
  EXPECT_THAT(tier.keys(), ElementsAre(keys_[0]));
  EXPECT_EQ(files_in(path_).size(), 1U + 2);
  EXPECT_EQ(contents(file(keys_[0])), first);
}

TEST_F(TierTest, FinishRemovesStrays) {
  make();
  overwrite(path_ + "/old.tensorbin", "x");
  overwrite(path_ + "/head.bias.safetensors.tmp-1-1-0", "x");  // pid 1 lives, but did not start at tick 1
  overwrite(path_ + "/head.bias.safetensors.tmp-99999999-1-0", "x");
  const std::string living = fmt::format("/x.tmp-{}-{}-7", this_process().pid, this_process().start);
  overwrite(path_ + living, "x");
  Tier(path_, kFirst, files_).finish(keys_);
  EXPECT_EQ(files_in(path_).size(), 4U + 2);
  std::vector<std::string> temporaries;
  for (const auto& item : std::filesystem::directory_iterator(path_)) {
    const std::string name = item.path().filename().string();
    if (is_temporary(name)) temporaries.push_back("/" + name);
  }
  EXPECT_THAT(temporaries, ElementsAre(living));
}

TEST_F(TierTest, CheckedOnceAfterABuildAndAlwaysWhenAsked) {
  make();
  const TierKey bad = keys_.front();
  let_files_settle();
  {
    EXPECT_EQ(count_found(*std::make_unique<Tier>(path_, kFirst, files_), tensors_), 4U);
  }
  const std::string noted = contents(path_ + "/.verified");
  RememberedDigests verified = parse_remembered_digests(noted, "verified");
  ASSERT_EQ(verified.size(), 4U);
  const int before = files_.calls();
  {
    EXPECT_EQ(count_found(*std::make_unique<Tier>(path_, kFirst, files_), tensors_), 4U);
  }
  EXPECT_EQ(files_.calls(), before) << "noted again";

  // A bit that turns under the file system's feet: the stamp stays. The file's stamp is put into the note
  // instead.
  std::string bytes = contents(file(bad));
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  overwrite(file(bad), bytes);
  {
    Tier tier(path_, kFirst, files_);
    EXPECT_FALSE(tier.find(bad)) << "a file that was touched was not checked";
  }
  verified.at(file_name(bad)).stamp = have(stamp_of(file(bad)));
  overwrite(path_ + "/.verified", to_text(verified));
  {
    Tier tier(path_, kFirst, files_);
    ASSERT_TRUE(tier.find(bad)) << "read in spite of the note";
    EXPECT_FALSE(same_bytes(have(tier.find(bad)), tensors_.at(bad)));
    tier.verify_always();
    EXPECT_FALSE(tier.find(bad)) << "handed out again in spite of verify_always()";
  }
  overwrite(path_ + "/.verified", to_text(verified));
  {
    Tier tier(path_, kFirst, files_);
    tier.verify_always();
    EXPECT_EQ(count_found(tier, tensors_), 3U);
  }
  overwrite(path_ + "/.verified", to_text(verified));
  const auto damages = Tier(path_, kFirst, files_).verify();
  ASSERT_EQ(damages.size(), 1U);
  EXPECT_EQ(damages[0].path, file(bad));
  // Whoever comes next is not told by the note that it is whole.
  Tier tier(path_, kFirst, files_);
  EXPECT_EQ(count_found(tier, tensors_), 3U);
}

TEST_F(TierTest, DamagedNotesCostACheck) {
  make();
  let_files_settle();
  EXPECT_THAT(Tier(path_, kFirst, files_).verify(), IsEmpty());
  const std::string noted = contents(path_ + "/.verified");
  for (const std::string& text : {std::string(), noted.substr(0, noted.size() / 2), std::string(5000, '['),
                                  std::string("{\"files\":{}}"), "x" + noted}) {
    overwrite(path_ + "/.verified", text);
    Tier tier(path_, kFirst, files_);
    EXPECT_EQ(count_found(tier, tensors_), 4U);
    EXPECT_EQ(contents(path_ + "/.verified"), noted);
  }
}

TEST_F(TierTest, AFolderThatCannotBeWrittenIsRead) {
  files_.set_writable(false);
  {
    Tier tier(path_, kFirst, files_);
    EXPECT_TRUE(tier.read_only());
    build(tier, tensors_);
    EXPECT_FALSE(tier.complete());
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  files_.set_writable(true);
  make();
  files_.set_writable(false);
  const int before = files_.calls();
  Tier tier(path_, kFirst, files_);
  EXPECT_EQ(count_found(tier, tensors_), 4U);
  build(tier, test_tensors(2));
  EXPECT_EQ(count_found(tier, tensors_), 4U);
  EXPECT_EQ(files_.calls(), before);
}

/// As another user, because root may write everywhere.
TEST_F(TierTest, AFolderOfSomebodyElseIsRead) {
  make();
  namespace fs = std::filesystem;
  fs::permissions(folder_.file(""), fs::perms(0755));
  fs::permissions(folder_.file("plans"), fs::perms(0555));
  fs::permissions(path_, fs::perms(0555));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(77);
    int code = 0;
    try {
      Tier tier(path_, kFirst);
      if (!tier.read_only()) code |= 1;
      if (count_found(tier, tensors_) != 4) code |= 2;
      build(tier, test_tensors(2));
      if (count_found(tier, tensors_) != 4) code |= 4;
      if (!tier.verify().empty()) code |= 8;
    } catch (...) {
      code |= 16;
    }
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  fs::permissions(folder_.file("plans"), fs::perms(0755));
  fs::permissions(path_, fs::perms(0755));
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "cannot become another user here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(TierTest, AFileInPlaceOfTheFolder) {
  overwrite(folder_.file("flat"), "x");
  Tier tier(folder_.file("flat"), kFirst, files_);
  EXPECT_FALSE(tier.complete());
  EXPECT_TRUE(tier.read_only());
}

TEST_F(TierTest, InfoIsTheManifests) {
  make();
  Tier tier(path_, kFirst, files_);
  const TierFile info = have(tier.info(keys_[0]));
  EXPECT_EQ(info.dtype, DType::kBF16);
  EXPECT_EQ(info.shape, Shape({48, 32}));
  EXPECT_EQ(info.data_bytes(), 48U * 32 * 2);
  EXPECT_FALSE(tier.info({"no such tensor", ""}));
}

TEST_F(TierTest, ReadersSeeTheOldFilesUntilTheyAreGone) {
  make();
  Tier reader(path_, kFirst, files_);
  const TensorView view = have(reader.find(keys_[0]));
  Tier writer(path_, kSecond, files_);
  const TestTensors other = test_tensors(2);
  build(writer, other);
  EXPECT_TRUE(same_bytes(view, tensors_.at(keys_[0])));
  EXPECT_EQ(count_found(reader, tensors_), 2U)
      << "of the replaced files, the mapped one and the empty one, which both plans have";
  EXPECT_EQ(count_found(writer, other), 4U);
}

}  // namespace
}  // namespace sinew
