// MANO from its three kinds of file, and linear blend skinning against the goldens.
#include "hand/mano_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "base/error.h"
#include "base/test_paths.h"
#include "hand/hand_model_file.h"
#include "hand/mano_pickle.h"
#include "io/atomic_file.h"
#include "io/memory_checkpoint.h"
#include "io/safetensors.h"
#include "io/test_damage.h"
#include "io/test_folder.h"
#include "io/test_zip.h"

namespace sinew {
namespace {

using testing::HasSubstr;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string seed(const std::string& name) {
  return read_file(source_folder() + "/tests/fuzz/seeds/mano_pickle/" + name);
}

std::unique_ptr<Checkpoint> parse(const std::string& bytes) {
  return parse_mano_pickle(bytes_of(bytes), "test.pkl");
}

std::string outcome(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

void expect_equal(const TensorView& a, const TensorView& b, const std::string& name) {
  ASSERT_EQ(to_string(a.shape), to_string(b.shape)) << name;
  for (std::int64_t i = 0; i < a.shape.count(); ++i)
    ASSERT_EQ(element(a, i), element(b, i)) << name << " " << i;
}

/// Largest difference between points and the golden's rows from `row` on.
double worst(std::span<const Vec3> points, const TensorView& golden, std::int64_t row) {
  double out = 0;
  for (std::size_t i = 0; i < 3 * points.size(); ++i) {
    const auto at = row * static_cast<std::int64_t>(3 * points.size()) + static_cast<std::int64_t>(i);
    out = std::max(out, std::abs(points[i / 3][i % 3] - element(golden, at)));
  }
  return out;
}

TEST(ManoPickle, GoldenPickleHoldsTheGoldenTensors) {
  const auto pickle = shared_file("golden/hamer/MANO_SYNTH_RIGHT.pkl");
  const auto tensors = shared_file("golden/hamer/mano_synthetic.safetensors");
  if (!pickle || !tensors) GTEST_SKIP() << kNoShared;
  const auto read = open_mano_pickle(*pickle);
  const auto expected = open_safetensors(*tensors);
  EXPECT_EQ(read->tensors().size(), expected->tensors().size());
  for (const auto& [name, view] : expected->tensors()) expect_equal(read->get(name), view, name);
}

TEST(ManoFile, PickleAndSafetensorsPoseAlike) {
  const auto pickle = shared_file("golden/hamer/MANO_SYNTH_RIGHT.pkl");
  const auto tensors = shared_file("golden/hamer/mano_synthetic.safetensors");
  if (!pickle || !tensors) GTEST_SKIP() << kNoShared;
  const HandModelData a = load_mano(*pickle), b = load_mano(*tensors);
  EXPECT_EQ(a.v_template, b.v_template);
  EXPECT_EQ(a.shapedirs, b.shapedirs);
  EXPECT_EQ(a.posedirs, b.posedirs);
  EXPECT_EQ(a.regressor, b.regressor);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.faces, b.faces);
  EXPECT_EQ(a.shapes, 10U);
  EXPECT_EQ(open_hand_model(*pickle)->name(), "mano (MANO_SYNTH_RIGHT.pkl)");
}

/// lbs.safetensors: float64, written by an independent implementation, 8e-17 from smplx's.
TEST(ManoFile, LinearBlendSkinningGoldens) {
  const auto pickle = shared_file("golden/hamer/MANO_SYNTH_RIGHT.pkl");
  const auto goldens = shared_file("golden/hamer/lbs.safetensors");
  if (!pickle || !goldens) GTEST_SKIP() << kNoShared;
  const auto model = open_hand_model(*pickle);
  const auto golden = open_safetensors(*goldens);
  const Tensor rotations = convert(golden->get("rotmat"), DType::kF64);
  const Tensor betas = convert(golden->get("betas"), DType::kF64);
  for (std::int64_t i = 0; i < 6; ++i) {
    const auto c = static_cast<std::size_t>(i);
    const PosedHand posed =
        model->pose(rotations.as<double>().subspan(144 * c, 144), betas.as<double>().subspan(10 * c, 10));
    EXPECT_LT(worst(posed.vertices, golden->get("vertices"), i), 1e-14) << i;
    EXPECT_LT(worst(posed.joints, golden->get("joints16"), i), 1e-14) << i;
    EXPECT_LT(worst(posed.keypoints, golden->get("joints21"), i), 1e-14) << i;
  }
}

/// e2e.safetensors: upstream's own float32 pass; bound of its README.
TEST(ManoFile, EndToEndGoldens) {
  const auto tensors = shared_file("golden/hamer/mano_synthetic.safetensors");
  const auto goldens = shared_file("golden/hamer/e2e.safetensors");
  if (!tensors || !goldens) GTEST_SKIP() << kNoShared;
  const auto model = open_hand_model(*tensors);
  const auto golden = open_safetensors(*goldens);
  const Tensor root = convert(golden->get("global_orient"), DType::kF64);
  const Tensor fingers = convert(golden->get("hand_pose"), DType::kF64);
  const Tensor betas = convert(golden->get("betas"), DType::kF64);
  for (std::size_t i = 0; i < 3; ++i) {
    std::array<double, kHandRotationNumbers> rotations{};
    for (std::size_t k = 0; k < 9; ++k) rotations[k] = root.as<double>()[9 * i + k];
    for (std::size_t k = 0; k < 135; ++k) rotations[9 + k] = fingers.as<double>()[135 * i + k];
    const PosedHand posed = model->pose(rotations, betas.as<double>().subspan(10 * i, 10));
    const auto row = static_cast<std::int64_t>(i);
    EXPECT_LT(worst(posed.vertices, golden->get("pred_vertices"), row), 2e-5) << i;
    EXPECT_LT(worst(posed.keypoints, golden->get("pred_keypoints_3d"), row), 2e-5) << i;
  }
}

TEST(ManoPickle, Python2AndPython3WriteTheSame) {
  const auto old = parse(seed("python2.pkl"));
  const auto recent = parse(seed("python3.pkl"));
  EXPECT_EQ(old->tensors().size(), 7U);
  ASSERT_EQ(recent->tensors().size(), old->tensors().size());
  for (const auto& [name, view] : old->tensors()) expect_equal(recent->get(name), view, name);
  EXPECT_EQ(element(old->get("v_template"), 4), 0.004) << "stored in Fortran order";
  EXPECT_EQ(element(old->get("shapedirs"), 2), (4 - 8) / 64.0) << "the third pick is element 4 of the source";
  EXPECT_EQ(element(old->get("J_regressor"), 5 * 1 + 1), 1);
  EXPECT_EQ(old->get("kintree_table").dtype, DType::kU32);
}

TEST(ManoPickle, SeedsMakeAModel) {
  HandModelData data = mano_from_tensors(*parse(seed("python2.pkl")), "small");
  EXPECT_EQ(data.shapes, 2U);
  EXPECT_EQ(data.tips, kManoTips);
  data.tips = {};
  const HandModel model(std::move(data), "small");
  EXPECT_EQ(model.vertex_count(), 5U);
}

/// The error after replacing one stretch of a seed by another of the same length.
std::string error_with(std::string_view found, std::string_view instead) {
  std::string bytes = seed("python2.pkl");
  const std::size_t at = bytes.find(found);
  if (at == std::string::npos || found.size() != instead.size()) return "the test is wrong";
  bytes.replace(at, found.size(), instead);
  return outcome([&] { mano_from_tensors(*parse(bytes), "small"); });
}

TEST(ManoPickle, ErrorsNameFileAndKey) {
  using namespace std::string_view_literals;
  EXPECT_THAT(error_with("scipy.sparse", "scipy.linalg"), HasSubstr("test.pkl: pickle byte"));
  EXPECT_THAT(error_with("scipy.sparse", "scipy.linalg"),
              HasSubstr("'scipy.linalg.csc.csc_matrix' is refused"));
  EXPECT_THAT(error_with("\x03lbs", "\x03lbx"), HasSubstr("test.pkl: bs_style is 'lbx', expected lbs"));
  EXPECT_THAT(error_with("\x02"
                         "f8",
                         "\x02O8"),
              HasSubstr("test.pkl: v_template: dtype '<''O8'"));
  EXPECT_THAT(error_with("U\x01<", "U\x01>"), HasSubstr("v_template: dtype '>'"));
  EXPECT_THAT(error_with("(J\x05\0\0\0J\x03\0\0\0t"sv, "(J\x05\0\0\0J\x04\0\0\0t"sv),
              HasSubstr("v_template: f64 [5,4] takes 160 bytes, the pickle has 120"));
  EXPECT_THAT(error_with("U\x07weights", "U\x07weightz"), HasSubstr("weights"));
  EXPECT_THAT(error_with("U\x06indptr", "U\x06indptx"),
              HasSubstr("J_regressor: 'scipy.sparse.csc.csc_matrix' without indptr"));
  EXPECT_THAT(error_with("U\x06_shape(J\x10\0\0\0"sv, "U\x06_shape(J\x11\0\0\0"sv),
              HasSubstr("shape [17,5], expected [16,V]"));
  EXPECT_THAT(error_with("U\x0fpreferred_shape(J\x05\0\0\0"sv, "U\x0fpreferred_shape(J\x04\0\0\0"sv),
              HasSubstr("shapedirs: 30 idxs, preferred_shape [4,3,2]"));
  EXPECT_THAT(error_with("\xff\xff\xff\xff\0\0\0\0\1\0\0\0"sv, "\xff\xff\xff\xff\0\0\0\0\1\0\0\1"sv),
              HasSubstr("accepted"))
      << "the tree is checked by HandModel";
  EXPECT_THAT(outcome([] { parse("\x80\x02]."); }),
              HasSubstr("test.pkl: a pickled list, expected MANO's dict"));
}

TEST(ManoPickle, DamagedFilesAreErrors) {
  const auto read = [](std::span<const std::byte> bytes) {
    mano_from_tensors(*parse_mano_pickle(bytes, "damaged"), "damaged");
  };
  for (const char* name : {"python2.pkl", "python3.pkl"}) {
    expect_truncations_refused(seed(name), read, 97);
    survive_flips(seed(name), read, 1000);
  }
}

/// A small model as tensors, of the right shapes.
MemoryCheckpoint small_tensors() {
  const auto source = parse(seed("python3.pkl"));
  MemoryCheckpoint out("small.safetensors");
  for (const auto& [name, view] : source->tensors()) out.add(name, convert(view, view.dtype));
  return out;
}

TEST(ManoFile, WrongShapesAndValuesAreNamed) {
  const auto with = [](const std::string& name, Tensor tensor) {
    MemoryCheckpoint file = small_tensors();
    file.add(name, std::move(tensor));
    return outcome([&] { mano_from_tensors(file, "small"); });
  };
  EXPECT_EQ(with("unknown", Tensor(DType::kF32, {1})), "accepted");
  EXPECT_THAT(with("weights", Tensor(DType::kF32, {5, 15})),
              HasSubstr("small.safetensors: weights: shape [5,15], expected [5,16]"));
  EXPECT_THAT(with("v_template", Tensor(DType::kF32, {20000, 3})), HasSubstr("extent 20000, expected 1 to"));
  EXPECT_THAT(with("posedirs", Tensor(DType::kF32, {5, 3, 9})),
              HasSubstr("posedirs: shape [5,3,9], expected [5,3,135]"));
  EXPECT_THAT(with("shapedirs", Tensor(DType::kF32, {5, 3, 0})), HasSubstr("shapedirs: extent 0"));
  EXPECT_THAT(with("f", Tensor::of<std::int64_t>({1, 3}, std::array<std::int64_t, 3>{0, 1, -1})),
              HasSubstr("f[0][2] is -1, there are 5 vertices"));
  EXPECT_THAT(with("f", Tensor::of<double>({1, 3}, std::array<double, 3>{0, 1, 0.5})),
              HasSubstr("small.safetensors: f: "));
  EXPECT_THAT(with("kintree_table", Tensor(DType::kU32, {2, 16})),
              HasSubstr("kintree_table[1][1] is 0, expected 1"));
  MemoryCheckpoint file("small.safetensors");
  EXPECT_THAT(outcome([&] { mano_from_tensors(file, "small"); }), HasSubstr("v_template"));
}

TEST(ManoFile, TakesTheFirstTenOfMoreShapes) {
  MemoryCheckpoint file = small_tensors();
  Tensor many(DType::kF32, {5, 3, 12});
  for (std::size_t i = 0; i < many.as<float>().size(); ++i) many.as<float>()[i] = static_cast<float>(i);
  file.add("shapedirs", std::move(many));
  const HandModelData data = mano_from_tensors(file, "small");
  EXPECT_EQ(data.shapes, 10U);
  ASSERT_EQ(data.shapedirs.size(), 150U);
  EXPECT_EQ(data.shapedirs[9], 9);
  EXPECT_EQ(data.shapedirs[10], 12);
}

/// All of MANO's shapes, one array of the .npz an entry.
TEST(ManoFile, ReadsNpzAndRefusesOtherMeshes) {
  const TestFolder folder;
  const auto npz_of = [&](std::size_t vertices) {
    const std::size_t v = vertices;
    TestZip zip;
    const auto add = [&](const std::string& name, const std::string& shape,
                         const std::vector<float>& values) {
      std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
      header.resize(118, ' ');
      std::string npy = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
      npy.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
      zip.add(name + ".npy", npy);
    };
    const std::string n = std::to_string(v);
    std::vector<float> weights(16 * v), regressor(16 * v), tree(32);
    for (std::size_t i = 0; i < v; ++i) weights[16 * i] = 1;
    for (std::size_t j = 0; j < 16; ++j)
      tree[j] = static_cast<float>(kHandParents[j]), tree[16 + j] = static_cast<float>(j);
    add("v_template", "(" + n + ", 3)", std::vector<float>(3 * v, 0.5F));
    add("shapedirs", "(" + n + ", 3, 1)", std::vector<float>(3 * v));
    add("posedirs", "(" + n + ", 3, 135)", std::vector<float>(3 * v * 135));
    add("J_regressor", "(16, " + n + ")", regressor);
    add("weights", "(" + n + ", 16)", weights);
    add("f", "(1, 3)", {0, 1, 2});
    add("kintree_table", "(2, 16)", tree);
    const std::string path = folder.file("MANO_" + n + ".npz");
    write_file_atomically(path, zip.build());
    return path;
  };
  const auto model = open_hand_model(npz_of(778));
  EXPECT_EQ(model->shapes(), 1U);
  EXPECT_EQ(model->name(), "mano (MANO_778.npz)");
  EXPECT_THAT(outcome([&] { open_hand_model(npz_of(777)); }),
              HasSubstr("v_template: shape [777,3], expected [778,3]"));
}

TEST(HandModelFile, OtherFilesAreRefusedByName) {
  const TestFolder folder;
  EXPECT_THAT(outcome([&] { open_hand_model(folder.file("none.pkl")); }), HasSubstr("none.pkl"));
  write_file_atomically(folder.file("text.pkl"), "not a hand, but long enough to look into");
  EXPECT_THAT(outcome([&] { open_hand_model(folder.file("text.pkl")); }), HasSubstr("text.pkl"));
  write_file_atomically(folder.file("empty.pkl"), "");
  EXPECT_THAT(outcome([&] { open_hand_model(folder.file("empty.pkl")); }), HasSubstr("empty.pkl"));
}

TEST(HandModelFile, FindsManoInThePublishedLayout) {
  namespace fs = std::filesystem;
  const TestFolder folder;
  const fs::path data = folder.file("_DATA");
  fs::create_directories(data / "hamer_ckpts" / "checkpoints");
  fs::create_directories(data / "data" / "mano");
  EXPECT_EQ(published_mano_beside((data / "hamer_ckpts").string()), "");
  const std::string mano = (data / "data" / "mano" / "MANO_RIGHT.pkl").string();
  write_file_atomically(mano, "x");
  for (const fs::path& model : {data, data / "hamer_ckpts", data / "hamer_ckpts" / "",
                                data / "hamer_ckpts" / "checkpoints" / "hamer.ckpt"}) {
    EXPECT_EQ(published_mano_beside(model.string()), mano) << model;
  }
}

}  // namespace
}  // namespace sinew
