#include "io/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/bytes.h"
#include "io/test_damage.h"
#include "io/test_zip.h"

namespace sinew {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMegabyte = 1 << 20;

/// What opening an archive and reading all of it says, or "accepted".
std::string outcome(const std::string& file, ErrorCode* code = nullptr) {
  try {
    const ZipArchive zip(bytes_of(file), "f.zip");
    for (const auto& entry : zip.entries()) zip.read(entry, kMegabyte);
    return "accepted";
  } catch (const Error& e) {
    if (code != nullptr) *code = e.code();
    return e.what();
  }
}

void expect_refused(const std::string& file, ErrorCode code, const std::string& text) {
  ErrorCode found = ErrorCode::kUsage;
  EXPECT_THAT(outcome(file, &found), HasSubstr(text));
  EXPECT_EQ(found, code) << text;
}

TestZipEntry entry(std::string name = "a", std::string contents = "contents") {
  TestZipEntry out;
  out.name = std::move(name);
  out.contents = std::move(contents);
  return out;
}

std::string with(const std::function<void(TestZipEntry&)>& lie) {
  TestZipEntry told = entry();
  lie(told);
  return TestZip().add(told).add("b", "more").build();
}

TEST(ZipArchive, ReadsStoredAndDeflatedEntries) {
  const std::string large(300'000, 'x');
  const std::string file =
      TestZip().add("r/a", "hello").add("r/b", large, true).add("r/none", "").add("r/", "").build();
  const ZipArchive zip(bytes_of(file), "f.zip");
  ASSERT_EQ(zip.entries().size(), 4U);
  EXPECT_EQ(zip.find("r/c"), nullptr);
  const auto* a = zip.find("r/a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(as_text(zip.stored(*a)), "hello");
  EXPECT_EQ(static_cast<const void*>(zip.stored(*a).data()), file.data() + a->data_offset) << "in place";
  const auto* b = zip.find("r/b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(as_text(zip.read(*b, large.size())), large);
  EXPECT_EQ(as_text(zip.read_prefix(*b, 3)), "xxx");
  EXPECT_EQ(as_text(zip.read_prefix(*a, 100)), "hello");
  zip.check_crc(*a);
  zip.check_crc(*b);
  EXPECT_THROW(zip.stored(*b), Error);
  EXPECT_EQ(zip.read(*zip.find("r/none"), 0).size(), 0U);
}

TEST(ZipArchive, ReadsEmptyArchivesCommentsAndZip64) {
  EXPECT_EQ(outcome(TestZip().build()), "accepted");
  TestZip commented;
  commented.add("a", "x").comment = "a comment with PK\5\6 in it, and more than 22 bytes of it";
  EXPECT_EQ(outcome(commented.build()), "accepted");
  TestZip wide;
  TestZipEntry told = entry();
  told.zip64 = true;
  told.deflate = true;
  wide.add(told).add("b", "c").zip64 = true;
  EXPECT_EQ(outcome(wide.build()), "accepted");
}

TEST(ZipArchive, ReadsWhatTorchAndNumpyWrite) {
  for (const char* name : {"torch/plain.pt", "torch/deflated.pt", "torch/script.pt", "npz/kinds.npz"}) {
    std::ifstream in(test_data(name), std::ios::binary);
    std::stringstream file;
    file << in.rdbuf();
    EXPECT_EQ(outcome(file.str()), "accepted") << name;
  }
}

// Hostile inputs, row 17.
TEST(ZipArchive, RefusesHostileNames) {
  for (const std::string& name : {std::string("../a"), std::string("a/../b"), std::string(".."),
                                  std::string("a/.."), std::string("/etc/passwd"), std::string("a\\b"),
                                  std::string("a\0b", 3), std::string(""), std::string("a\nb")}) {
    expect_refused(TestZip().add(name, "x").build(), ErrorCode::kFormat, "zip entry name");
  }
  EXPECT_EQ(outcome(TestZip().add("a..b/...c", "x").build()), "accepted");
  expect_refused(TestZip().add("same", "x").add("same", "y").build(), ErrorCode::kFormat,
                 "'same' appears twice");
}

// Row 36.
TEST(ZipArchive, RefusesHeadersThatDisagree) {
  expect_refused(with([](auto& e) { e.local_name = "b"; }), ErrorCode::kFormat,
                 "'a': local header gives the name 'b'");
  expect_refused(with([](auto& e) { e.local_method = 8; }), ErrorCode::kFormat,
                 "local header gives method 8");
  expect_refused(with([](auto& e) { e.local_size = 7; }), ErrorCode::kFormat, "local header gives size 7");
  expect_refused(with([](auto& e) { e.local_size = 0; }), ErrorCode::kFormat, "local header gives size 0");
  expect_refused(with([](auto& e) { e.local_crc = 1; }), ErrorCode::kFormat, "local header gives CRC 1");
  expect_refused(with([](auto& e) { e.local_flags = 8; }), ErrorCode::kFormat,
                 "local header gives flags 0x8");
  expect_refused(with([](auto& e) { e.local_crc = e.central_crc = 1; }), ErrorCode::kFormat,
                 "'a': CRC of the contents is");
  // Under flag bit 3 the local header may leave the values out, but not lie.
  const auto deferred = [](auto& e) {
    e.flags = 8;
    e.local_size = 0;
    e.local_crc = 0;
  };
  EXPECT_EQ(outcome(with(deferred)), "accepted");
  expect_refused(with([&](auto& e) { deferred(e), e.local_size = 7; }), ErrorCode::kFormat,
                 "local header gives size 7");
}

TEST(ZipArchive, RefusesWhatItDoesNotRead) {
  expect_refused(with([](auto& e) { e.flags = 1; }), ErrorCode::kUnsupported, "'a' is encrypted");
  expect_refused(with([](auto& e) { e.flags = 0x40; }), ErrorCode::kUnsupported, "'a' is encrypted");
  expect_refused(with([](auto& e) { e.central_method = 12; }), ErrorCode::kUnsupported,
                 "'a' uses compression method 12");
  TestZip split;
  split.add("a", "x").disk = 1;
  expect_refused(split.build(), ErrorCode::kUnsupported, "several disks");
  split.zip64 = true;
  expect_refused(split.build(), ErrorCode::kUnsupported, "several disks");
}

TEST(ZipArchive, RefusesLyingSizesAndCounts) {
  expect_refused(with([](auto& e) { e.central_size = e.local_size = 1 << 30; }), ErrorCode::kFormat,
                 "runs past the data area");
  expect_refused(with([](auto& e) { e.zip64 = true, e.central_size = e.local_size = ~std::uint64_t{0}; }),
                 ErrorCode::kFormat, "runs past the data area");
  expect_refused(with([](auto& e) { e.central_offset = 1 << 20; }), ErrorCode::kFormat,
                 "no local header at byte 1048576");
  expect_refused(with([](auto& e) { e.zip64 = true, e.central_offset = ~std::uint64_t{0}; }),
                 ErrorCode::kFormat, "no local header");
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{60'000}}) {
    TestZip zip;
    zip.add("a", "x").add("b", "y").count = count;
    expect_refused(zip.build(), ErrorCode::kFormat, "central directory");
    zip.zip64 = true;
    expect_refused(zip.build(), ErrorCode::kFormat, "central directory");
    zip.count = std::uint64_t{1} << 60;
    expect_refused(zip.build(), ErrorCode::kFormat, "cannot hold the 1152921504606846976 entries");
  }
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 31}) {
    TestZip zip;
    zip.add("a", "x").directory_size = value;
    expect_refused(zip.build(), ErrorCode::kFormat, "central directory");
    zip.directory_size.reset();
    zip.directory_offset = value;
    expect_refused(zip.build(), ErrorCode::kFormat, "central directory");
  }
  TestZip no_record;
  no_record.add("a", "x").count = 0xffff;
  expect_refused(no_record.build(), ErrorCode::kFormat, "asks for a zip64 record");
}

TEST(ZipArchive, RefusesOverlappingEntries) {
  // Two central entries on one local header (same name is needed for that: caught as overlap before the names
  // are).
  TestZipEntry second = entry();
  second.central_offset = 0;
  expect_refused(TestZip().add(entry()).add(second).build(), ErrorCode::kFormat, "'a' and 'a' overlap");
}

// Row 35.
TEST(ZipArchive, BoundsInflation) {
  const std::string zeros(4 * kMegabyte, '\0');
  const std::string file = TestZip().add("a", zeros, true).build();
  EXPECT_LT(file.size(), 10'000U);
  expect_refused(file, ErrorCode::kLimit, "'a' holds 4194304 bytes, the bound here is 1048576");

  // Declares 2^40 bytes for a few compressed ones: refused without taking them, whatever the limit.
  TestZipEntry told = entry();
  told.deflate = told.zip64 = told.true_compressed_size = true;
  told.central_size = told.local_size = std::uint64_t{1} << 40;
  const std::string bomb = TestZip().add(told).build();
  const ZipArchive zip(bytes_of(bomb), "f.zip");
  ASSERT_EQ(zip.entries().at(0).size, std::uint64_t{1} << 40);
  EXPECT_THROW(zip.read(zip.entries()[0], ~std::uint64_t{0}), Error);
  EXPECT_THROW(zip.read_prefix(zip.entries()[0], ~std::uint64_t{0}), Error);
  EXPECT_THROW(zip.check_crc(zip.entries()[0]), Error);
}

TEST(ZipArchive, RefusesDamagedDeflate) {
  const std::string text = "some text that deflates, and deflates, and deflates";
  std::string file = TestZip().add("a", text, true).build();
  const std::size_t data = ZipArchive(bytes_of(file), "f").entries()[0].data_offset;
  file[data + 5] = static_cast<char>(~file[data + 5]);
  EXPECT_NE(outcome(file), "accepted");
  // A stream that holds one byte more than declared.
  TestZipEntry shorter = entry("a", text);
  shorter.deflate = shorter.true_compressed_size = true;
  shorter.central_size = shorter.local_size = text.size() - 1;
  const std::string longer = TestZip().add(shorter).build();
  expect_refused(longer, ErrorCode::kFormat, "does not hold 50 bytes");
}

TEST(ZipArchive, SurvivesDamage) {
  const auto parse = [](std::span<const std::byte> bytes) {
    const ZipArchive zip(bytes, "f.zip");
    for (const auto& entry : zip.entries()) {
      zip.read_prefix(entry, 16);
      zip.read(entry, kMegabyte);
    }
  };
  TestZip zip;
  zip.add("r/data.pkl", "some contents").add("r/data/0", std::string(500, 'q'), true).zip64 = true;
  expect_truncations_refused(zip.build(), parse);
  survive_flips(zip.build(), parse, 5000);
  zip.zip64 = false;
  expect_truncations_refused(zip.build(), parse);
  survive_flips(zip.build(), parse, 5000);
}

}  // namespace
}  // namespace sinew
