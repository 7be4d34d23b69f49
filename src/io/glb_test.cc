#include "io/glb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/test_damage.h"
#include "io/test_folder.h"
#include "io/test_glb.h"

namespace sinew {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

/// A square of two triangles on two joints.
TestGlb square() {
  return {{{"root", {0, 0, 0}}, {"end", {0, 2, 0}}},
          {{{0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}},
           {{1, 0, 0}, {0, 1, 0, 0}, {0.75, 0.25, 0, 0}},
           {{1, 1, 0}, {0, 1, 0, 0}, {0.5, 0.5, 0, 0}},
           {{0, 1, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}}},
          {0, 1, 2, 2, 3, 0}};
}

GlbSkinnedMesh parse(const std::string& bytes) {
  return parse_glb(std::as_bytes(std::span(bytes.data(), bytes.size())), "test.glb");
}

std::string error_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("test.glb: "));
    return error.what();
  }
  return "accepted";
}

/// The error after one change to the square's JSON.
std::string error_with(const std::function<void(Json&)>& change) {
  TestGlb glb = square();
  change(glb.json);
  return error_of(glb.build());
}

std::string seed() {
  std::ifstream in(source_folder() + "/tests/fuzz/seeds/glb/triangle.glb", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Glb, ReadsASkinnedMesh) {
  const GlbSkinnedMesh mesh = parse(square().build());
  ASSERT_EQ(mesh.positions.size(), 4U);
  EXPECT_EQ(mesh.positions[2], (std::array<float, 3>{1, 1, 0}));
  EXPECT_EQ(mesh.joints[3], (std::array<std::uint16_t, 4>{1, 0, 0, 0}));
  EXPECT_EQ(mesh.weights[1], (std::array<float, 4>{0.75, 0.25, 0, 0}));
  ASSERT_EQ(mesh.triangles.size(), 2U);
  EXPECT_EQ(mesh.triangles[1], (std::array<std::uint32_t, 3>{2, 3, 0}));
  ASSERT_EQ(mesh.skeleton.size(), 2U);
  EXPECT_EQ(mesh.skeleton[1].name, "end");
  EXPECT_EQ(mesh.skeleton[1].inverse_bind[7], -2) << "row-major: y of the translation";
  EXPECT_EQ(mesh.skeleton[1].parent, -1);
}

TEST(Glb, ReadsTheSeedAndFindsTheJointAbove) {
  const GlbSkinnedMesh mesh = parse(seed());
  ASSERT_EQ(mesh.skeleton.size(), 2U);
  EXPECT_EQ(mesh.skeleton[0].parent, -1);
  EXPECT_EQ(mesh.skeleton[1].parent, 0) << "through a node that is no joint";
}

TEST(Glb, JoinsPrimitivesAndReadsBytesAsWeights) {
  TestGlb glb = square();
  Json& primitives = glb.json["meshes"][0]["primitives"];
  Json second = primitives[0];
  second["attributes"]["WEIGHTS_0"] = second["attributes"]["JOINTS_0"];  // bytes 0 and 1
  primitives.push_back(second);
  const GlbSkinnedMesh mesh = parse(glb.build());
  ASSERT_EQ(mesh.positions.size(), 8U);
  EXPECT_EQ(mesh.triangles[3], (std::array<std::uint32_t, 3>{6, 7, 4}));
  EXPECT_FLOAT_EQ(mesh.weights[4][1], 1.0F / 255);
}

TEST(Glb, StridesAndOffsetsAreFollowed) {
  TestGlb glb = square();
  // Positions anew, four bytes before each.
  std::string spaced;
  for (std::size_t i = 0; i < 4; ++i) spaced += "----" + glb.bin.substr(12 * i, 12);
  Json& view = glb.json["bufferViews"][0];
  view["byteOffset"] = glb.bin.size();
  view["byteLength"] = spaced.size();
  view["byteStride"] = 16;
  glb.json["accessors"][0]["byteOffset"] = 4;
  glb.bin += spaced;
  EXPECT_EQ(parse(glb.build()).positions[2], (std::array<float, 3>{1, 1, 0}));
  glb.json["accessors"][0]["byteOffset"] = 8;
  EXPECT_THAT(error_of(glb.build()), HasSubstr("do not fit a view of 64"));
}

TEST(Glb, ErrorsNameThePlace) {
  const auto with = error_with;
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["count"] = 5; }), HasSubstr("accessors[0]: 5 elements"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["count"] = 0; }), HasSubstr("accessors[0]: 0 elements"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["count"] = 1ULL << 63U; }), HasSubstr("do not fit"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["count"] = -1; }), HasSubstr("must be a whole number"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["byteOffset"] = 1ULL << 63U; }), HasSubstr("do not fit"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["sparse"] = 1; }), HasSubstr("accessors[0] is sparse"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["type"] = "VEC4"; }), HasSubstr("expected type VEC3"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["componentType"] = 5123; }),
              HasSubstr("componentType 5123"));
  EXPECT_THAT(with([](Json& j) { j["accessors"][0]["bufferView"] = 9; }), HasSubstr("bufferViews[9]"));
  EXPECT_THAT(with([](Json& j) { j["bufferViews"][0]["byteLength"] = 1 << 20; }),
              HasSubstr("bufferViews[0]"));
  EXPECT_THAT(with([](Json& j) { j["bufferViews"][0]["byteStride"] = 4; }), HasSubstr("every 4"));
  EXPECT_THAT(with([](Json& j) { j["bufferViews"][0]["buffer"] = 1; }), HasSubstr("only the buffer within"));
  EXPECT_THAT(with([](Json& j) { j["buffers"][0]["uri"] = "x.bin"; }), HasSubstr("only the buffer within"));
  EXPECT_THAT(with([](Json& j) { j["meshes"][0]["primitives"][0]["mode"] = 1; }), HasSubstr("mode 1"));
  EXPECT_THAT(with([](Json& j) { j["meshes"][0]["primitives"][0].erase("attributes"); }),
              HasSubstr("no attributes"));
  EXPECT_THAT(with([](Json& j) { j["meshes"][0]["primitives"][0]["attributes"].erase("JOINTS_0"); }),
              HasSubstr("meshes[0]: primitives[0]: no JOINTS_0"));
  EXPECT_THAT(with([](Json& j) { j["meshes"] = Json::array(); }),
              HasSubstr("meshes[0] is named, there are 0"));
  EXPECT_THAT(with([](Json& j) { j["skins"][0]["joints"] = {1}; }), HasSubstr("vertex 0 hangs on joint 1"));
  EXPECT_THAT(with([](Json& j) { j["skins"][0]["joints"] = {1, 1}; }), HasSubstr("node 1 twice"));
  EXPECT_THAT(with([](Json& j) { j["skins"][0]["joints"] = {1, 2, 0}; }),
              HasSubstr("2 matrices for 3 joints"));
  EXPECT_THAT(with([](Json& j) { j["nodes"][0].erase("skin"); }),
              HasSubstr("no node with a mesh and a skin"));
  EXPECT_THAT(with([](Json& j) { j["extensionsRequired"] = {"KHR_draco"}; }),
              HasSubstr("the extension KHR_draco"));
  EXPECT_THAT(with([](Json& j) { j["nodes"][0]["children"] = {0}; }), HasSubstr("nodes[0]: child 0"));
  EXPECT_THAT(with([](Json& j) { j = Json::array({j}); }), HasSubstr("not an object"));
}

TEST(Glb, LoopsInTheNodeTreeAreRefused) {
  EXPECT_THAT(error_with([](Json& j) {
                j["nodes"].push_back({{"children", {1, 4}}});
                j["nodes"].push_back({{"children", {3}}});
              }),
              HasSubstr("lies above itself"));
}

TEST(Glb, IndicesAreChecked) {
  TestGlb glb = square();
  glb.bin[glb.json["bufferViews"][3]["byteOffset"].get<std::size_t>() + 2] = 4;
  EXPECT_THAT(error_of(glb.build()), HasSubstr("index 1 is 4, there are 4 vertices"));
}

TEST(Glb, ContainersAreChecked) {
  const std::string good = square().build();
  EXPECT_THAT(error_of("glTX" + good.substr(4)), HasSubstr("does not begin with glTF"));
  EXPECT_THAT(error_of(good + "x"), HasSubstr("declares"));
  std::string version = good;
  version[4] = 1;
  EXPECT_THAT(error_of(version), HasSubstr("version 1, expected 2"));
  std::string nested = good;
  nested.replace(20, 200, std::string(100, '[') + std::string(100, ']'));
  EXPECT_THAT(error_of(nested), HasSubstr("nested more than"));
}

TEST(Glb, DamagedFilesAreErrors) {
  const std::string file = seed();
  const auto read = [](std::span<const std::byte> bytes) { parse_glb(bytes, "damaged"); };
  expect_truncations_refused(file, read, 3);
  survive_flips(file, read, 3000);
}

TEST(Glb, FilesThatAreMissingAreNamed) {
  const TestFolder folder;
  EXPECT_THROW(read_glb(folder.file("no.glb")), Error);
}

}  // namespace
}  // namespace sinew
