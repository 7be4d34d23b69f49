#include "io/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/test_damage.h"
#include "io/test_zip.h"

namespace sinew {
namespace {

using ::testing::HasSubstr;

/// A .npy file of version 1.0 with this header text and this many data bytes.
std::string npy(const std::string& header, std::size_t data_bytes, char major = 1) {
  const auto size = static_cast<std::uint16_t>(header.size());
  std::string out = std::string("\x93NUMPY") + major + '\0';
  out.append(reinterpret_cast<const char*>(&size), 2);
  if (major > 1) out.append(2, '\0');
  return out + header + std::string(data_bytes, '\x01');
}

std::string header(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }  \n";
}

std::string outcome(const std::string& array, bool deflate = false, std::size_t max_bytes = 1 << 20) {
  const std::string file = TestZip().add("a.npy", array, deflate).build();
  try {
    const auto npz = parse_npz(bytes_of(file), "f.npz", max_bytes);
    return to_string(npz->get("a").shape);
  } catch (const Error& e) {
    return e.what();
  }
}

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Npz, ReadsMeanParameters) {
  const auto stored = open_npz(test_data("npz/mean_params.npz"));
  const auto deflated = open_npz(test_data("npz/mean_params_deflated.npz"));
  EXPECT_EQ(stored->format(), "npz");
  EXPECT_EQ(stored->tensors().size(), 3U);
  for (const auto& [name, shape] : {std::pair("pose", Shape{96}), {"shape", Shape{10}}, {"cam", Shape{3}}}) {
    const TensorView& a = stored->get(name);
    const TensorView& b = deflated->get(name);
    EXPECT_EQ(a.shape, shape);
    EXPECT_EQ(a.dtype, DType::kF32);
    ASSERT_EQ(b.shape, shape);
    for (std::int64_t i = 0; i < shape.count(); ++i) EXPECT_EQ(element(a, i), element(b, i));
    stored->release(a);
    deflated->release(b);
  }
  EXPECT_EQ(element(stored->get("cam"), 0), static_cast<double>(0.9F));
  EXPECT_EQ(open_checkpoint(test_data("npz/mean_params.npz"))->format(), "npz");
  stored->verify();
  deflated->verify();
}

TEST(Npz, ReadsOrdersByteOrdersAndTypes) {
  const auto npz = open_npz(test_data("npz/kinds.npz"));
  const Shape shape{2, 3, 4};
  EXPECT_EQ(npz->get("fortran").dtype, DType::kF64);
  EXPECT_FALSE(npz->get("fortran").contiguous());
  EXPECT_EQ(npz->get("big").dtype, DType::kI32);
  EXPECT_EQ(npz->get("big_fortran").dtype, DType::kF16);
  EXPECT_EQ(npz->get("bool").dtype, DType::kBool);
  for (const char* name : {"fortran", "big", "big_fortran", "bool"}) {
    const TensorView& view = npz->get(name);
    ASSERT_EQ(view.shape, shape) << name;
    for (int i = 0; i < 24; ++i)
      EXPECT_EQ(element(view, i), view.dtype == DType::kBool ? i % 2 == 0 : i) << name;
  }
  EXPECT_EQ(npz->get("scalar").shape, Shape{});
  EXPECT_EQ(element(npz->get("scalar"), 0), 2.5);
  EXPECT_EQ(npz->get("empty").shape, (Shape{0, 3}));
}

TEST(Npz, RefusesDtypesThatNeedUnpickling) {
  EXPECT_THROW(open_npz(test_data("npz/object.npz")), Error);
  EXPECT_THROW(open_npz(test_data("npz/text.npz")), Error);
  for (const char* descr : {"|O", "|V8", "<U1", "|S1", "<c8", "<M8", "<f16", "<f3", "", "f4", "<"}) {
    EXPECT_THAT(outcome(npy(header(descr, "(2,)"), 16)), HasSubstr("is not read here")) << descr;
  }
  EXPECT_THAT(outcome(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8)),
              HasSubstr("structured dtype"));
}

TEST(Npz, ParsesHeadersStrictly) {
  EXPECT_EQ(outcome(npy(header("<f4", "()"), 4)), "[]");
  EXPECT_EQ(outcome(npy(header("<f4", "(2L, 3L)"), 24)), "[2,3]");
  EXPECT_EQ(outcome(npy(header("<i2", "(2,)"), 4, 2)), "[2]");
  EXPECT_EQ(outcome(npy("{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"|u1\"}", 2, 3)), "[2]");
  for (const char* text :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': __import__('os').system('x'), 'fortran_order': False, 'shape': (2,)}"}) {
    EXPECT_THAT(outcome(npy(text, 8)), HasSubstr(".npy header has")) << text;
  }
  EXPECT_THAT(outcome(npy(header("<f4", "(2,)"), 8, 4)), HasSubstr(".npy version 4.0"));
  EXPECT_THAT(outcome("\x93NUMPY"), HasSubstr("does not start as a .npy array"));
  EXPECT_THAT(outcome(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
              HasSubstr("header of 4294967295 bytes"));
  EXPECT_THAT(outcome(std::string("\x93NUMPY\x01\x00\xff\xff{}", 12)), HasSubstr("header breaks off"));
}

// Rows 10, 13 and 35.
TEST(Npz, BoundsSizes) {
  EXPECT_THAT(outcome(npy(header("<f4", "(3,)"), 8)), HasSubstr("its header declares f32 of [3] elements"));
  EXPECT_THAT(outcome(npy(header("<f4", "(1,)"), 8)), HasSubstr("its header declares"));
  EXPECT_THAT(outcome(npy(header("<f8", "(2305843009213693952, 4)"), 8)), HasSubstr("elements"));
  EXPECT_THAT(outcome(npy(header("<f8", "(2305843009213693953,)"), 8)), HasSubstr("its header declares"));
  EXPECT_THAT(outcome(npy(header("<f8", "(1,1,1,1,1,1,1,1,1)"), 8)), HasSubstr("9 dimensions"));
  const std::string large = npy(header("|u1", "(4194304,)"), 4 << 20);
  EXPECT_THAT(outcome(large, true), HasSubstr("are left of the bound"));
  EXPECT_EQ(outcome(large, true, 5 << 20), "[4194304]");
  // The bound is on the total.
  const std::string file = TestZip().add("a.npy", large, true).add("b.npy", large, true).build();
  EXPECT_THROW(parse_npz(bytes_of(file), "f.npz", 5 << 20), Error);
  EXPECT_EQ(parse_npz(bytes_of(file), "f.npz", 9 << 20)->tensors().size(), 2U);
}

TEST(Npz, RefusesOtherEntriesAndDamage) {
  const std::string other = TestZip().add("a.txt", "x").build();
  EXPECT_THROW(parse_npz(bytes_of(other), "f.npz"), Error);
  std::string file = contents_of(test_data("npz/mean_params.npz"));
  file[file.find("NUMPY") + 130] ^= 1;  // stored: seen by verify, not by opening
  EXPECT_THROW(parse_npz(bytes_of(file), "f.npz")->verify(), Error);

  const auto parse = [](std::span<const std::byte> bytes) {
    const auto npz = parse_npz(bytes, "f.npz", 1 << 20);
    for (const auto& [name, view] : npz->tensors()) {
      for (std::int64_t i = 0; i < view.shape.count(); ++i) element(view, i);
    }
  };
  const std::string kinds = contents_of(test_data("npz/kinds.npz"));
  expect_truncations_refused(kinds, parse);
  survive_flips(kinds, parse, 5000);
  survive_flips(contents_of(test_data("npz/mean_params.npz")), parse, 3000);
}

}  // namespace
}  // namespace sinew
