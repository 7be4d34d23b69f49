#include "io/torch_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/bytes.h"
#include "io/safetensors.h"
#include "io/test_damage.h"
#include "io/test_folder.h"
#include "io/test_zip.h"

namespace sinew {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string torch_data(const std::string& name) { return test_data("torch/" + name); }

void expect_twin(const Checkpoint& checkpoint, const std::string& json_path) {
  const auto twin = nlohmann::json::parse(contents_of(json_path));
  EXPECT_EQ(checkpoint.tensors().size(), twin.size());
  for (const auto& [name, expected] : twin.items()) {
    const TensorView* view = checkpoint.find(name);
    ASSERT_NE(view, nullptr) << name;
    EXPECT_EQ(to_string(view->dtype), expected["dtype"].get<std::string>()) << name;
    EXPECT_EQ(view->shape, Shape(expected["shape"].get<std::vector<std::int64_t>>())) << name;
    const auto values = expected["values"].get<std::vector<double>>();
    ASSERT_EQ(view->shape.count(), static_cast<std::int64_t>(values.size())) << name;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(element(*view, static_cast<std::int64_t>(i)), values[i]) << name << " element " << i;
    }
    checkpoint.release(*view);
  }
}

TEST(TorchArchive, ReadsWhatTorchWrites) {
  for (const char* name : {"plain.pt", "protocol4.pt", "deflated.pt"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = open_torch_archive(torch_data(name));
    EXPECT_EQ(checkpoint->format(), "torch archive");
    expect_twin(*checkpoint, torch_data("plain.json"));
    checkpoint->verify();
  }
  expect_twin(*open_checkpoint(torch_data("module.pt")), torch_data("module.json"));
}

TEST(TorchArchive, MapsSharedStoragesOnce) {
  const auto checkpoint = open_torch_archive(torch_data("plain.pt"));
  const TensorView& all = checkpoint->get("shared.all");
  EXPECT_EQ(checkpoint->get("shared.head").data, all.data);
  EXPECT_EQ(checkpoint->get("shared.tail").data, all.data + 24 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.data) % 64, 0U) << "used in place, aligned";
}

TEST(TorchArchive, ReadsOnlyTheStateDictOfALightningCheckpoint) {
  expect_twin(*open_checkpoint(torch_data("lightning.ckpt")), torch_data("lightning.json"));
}

TEST(TorchArchive, MatchesTheGoldenCheckpoint) {
  const auto path = shared_file("golden/hamer/lightning_synthetic.ckpt");
  const auto twin_path = shared_file("golden/hamer/lightning_synthetic.safetensors");
  if (!path || !twin_path) GTEST_SKIP() << kNoShared;
  const auto checkpoint = open_checkpoint(*path);
  const auto twin = open_safetensors(*twin_path);
  EXPECT_EQ(checkpoint->tensors().size(), twin->tensors().size());
  for (const auto& [name, expected] : twin->tensors()) {
    const TensorView& view = checkpoint->get(name);
    ASSERT_EQ(view.shape, expected.shape) << name;
    for (std::int64_t i = 0; i < view.shape.count(); ++i)
      EXPECT_EQ(element(view, i), element(expected, i)) << name;
  }
  expect_truncations_refused(
      contents_of(*path), [](auto bytes) { parse_torch_archive(bytes, "f.ckpt"); }, 256);
}

std::string error_of(const std::string& path) {
  try {
    open_checkpoint(path);
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
  return "accepted";
}

TEST(TorchArchive, RefusesOtherFilesWithAdvice) {
  EXPECT_THAT(error_of(torch_data("legacy.pt")),
              HasSubstr("legacy format (before 1.6), expected a zip archive | re-save it with"));
  EXPECT_THAT(error_of(torch_data("script.pt")),
              HasSubstr("expected a dict of tensors | save the state_dict"));
  EXPECT_THAT(error_of(torch_data("nested.pt")),
              HasSubstr("no tensor at the top level, which has the keys 'model', 'epoch'"));
  EXPECT_THAT(error_of(torch_data("complex.pt")),
              HasSubstr("tensor 'z': its storage class 'torch.ComplexFloatStorage' is not read"));
  EXPECT_THAT(error_of(torch_data("unknown_global.pt")),
              HasSubstr("the global 'collections.Counter' is not on the allow-list of a plain state_dict"));
  EXPECT_THAT(error_of(torch_data("values_p2.pkl")), HasSubstr("bare pickle"));
  EXPECT_THAT(error_of(torch_data("absent.pt")), HasSubstr("no such file"));
  const TestFolder folder;
  std::ofstream(folder.file("tar")) << std::string(257, 'a') << "ustar" << std::string(300, '\0');
  EXPECT_THAT(error_of(folder.file("tar")), HasSubstr("legacy format"));
  std::ofstream(folder.file("text")) << "some text that is no checkpoint";
  EXPECT_THAT(error_of(folder.file("text")), HasSubstr("neither safetensors nor"));
}

// ---------------------------------------------------------------- archives with lies

template <std::size_t N>
std::string P(const char (&text)[N]) {
  return {text, N - 1};
}

std::string text(const std::string& value) {
  return "U" + std::string(1, static_cast<char>(value.size())) + value;
}

std::string numbers(const std::vector<std::int64_t>& values) {
  std::string out = "(";
  for (const std::int64_t value : values) out += fmt::format("I{}\n", value);
  return out + "t";
}

/// What varies in a tensor's pickle.
struct Tensor {
  std::string storage_class = "torch\nFloatStorage";
  std::string key = "0";
  std::int64_t count = 6;
  std::int64_t offset = 0;
  std::vector<std::int64_t> size = {2, 3};
  std::vector<std::int64_t> stride = {3, 1};
};

std::string tensor_pickle(const Tensor& t) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "c" + t.storage_class + "\n" +
         text(t.key) + text("cuda:0") + fmt::format("I{}\n", t.count) + "tQ" +
         fmt::format("I{}\n", t.offset) + numbers(t.size) + numbers(t.stride) + "\x89}tR";
}

std::string archive(const std::string& pickle, const std::string& byte_order = "") {
  TestZip zip;
  zip.add("r/data.pkl", pickle).add("r/data/0", std::string(24, '\0')).add("r/version", "3\n");
  if (!byte_order.empty()) zip.add("r/byteorder", byte_order);
  return zip.build();
}

std::string outcome(const std::string& file) {
  try {
    return to_string(parse_torch_archive(bytes_of(file), "f.pt")->get("w").shape);
  } catch (const Error& e) {
    return e.what();
  }
}

std::string outcome(const Tensor& t) { return outcome(archive("}" + text("w") + tensor_pickle(t) + "s.")); }

TEST(TorchArchive, BoundsTensorsByTheirStorage) {
  EXPECT_EQ(outcome(Tensor{}), "[2,3]");
  EXPECT_EQ(outcome(Tensor{.offset = 6, .size = {0, 3}}), "[0,3]");
  EXPECT_EQ(outcome(Tensor{.offset = 5, .size = {}, .stride = {}}), "[]");
  EXPECT_EQ(outcome(Tensor{.size = {1'000'000, 3}, .stride = {0, 1}}), "[1000000,3]") << "expand() is legal";
  for (const Tensor& t : {Tensor{.offset = 1}, Tensor{.stride = {4, 1}}, Tensor{.size = {3, 3}},
                          Tensor{.offset = 7, .size = {0, 3}}, Tensor{.offset = 6, .size = {}, .stride = {}},
                          Tensor{.offset = INT64_MAX}, Tensor{.stride = {INT64_MAX, 1}},
                          Tensor{.size = {3, 3}, .stride = {INT64_MAX, INT64_MAX}},
                          Tensor{.size = {3, 2}, .stride = {std::int64_t{1} << 62, 1}}}) {
    EXPECT_THAT(outcome(t), HasSubstr("reaches outside its storage '0' of 6 elements"));
  }
  EXPECT_THAT(outcome(Tensor{.size = {INT64_MAX, INT64_MAX}}), HasSubstr("tensor 'w': shape"));
  EXPECT_THAT(outcome(Tensor{.offset = -1}), HasSubstr("its storage offset is -1, expected >= 0"));
  EXPECT_THAT(outcome(Tensor{.size = {-2, -3}}), HasSubstr("its size is -2"));
  EXPECT_THAT(outcome(Tensor{.offset = 5, .stride = {-3, 1}}), HasSubstr("its stride is -3"));
  EXPECT_THAT(outcome(Tensor{.size = {6}}), HasSubstr("1 extents and 2 strides"));
  const std::vector<std::int64_t> nine(9, 1);
  EXPECT_THAT(outcome(Tensor{.size = nine, .stride = nine}), HasSubstr("9 dimensions"));
  EXPECT_THAT(outcome(Tensor{.count = 7}), HasSubstr("its storage '0' of 7 elements has 24 bytes"));
  EXPECT_THAT(outcome(Tensor{.count = 5}), HasSubstr("of 5 elements has 24 bytes"));
  EXPECT_THAT(outcome(Tensor{.count = INT64_MAX}), HasSubstr("has 24 bytes"));
  EXPECT_THAT(outcome(Tensor{.count = (std::int64_t{1} << 62) + 6}), HasSubstr("has 24 bytes"));
  EXPECT_THAT(outcome(Tensor{.key = "1"}), HasSubstr("no storage '1'"));
  EXPECT_THAT(outcome(Tensor{.key = "../data/0"}), HasSubstr("no storage '../data/0'"));
  EXPECT_THAT(outcome(Tensor{.storage_class = "torch\nQInt8Storage"}),
              HasSubstr("'torch.QInt8Storage' is not read here"));
}

TEST(TorchArchive, ReadsUntypedStorages) {
  const std::string call = "ctorch._utils\n_rebuild_tensor_v3\n((" + text("storage") +
                           "ctorch.storage\nUntypedStorage\n" + text("0") + text("cpu") + "I24\ntQI2\n" +
                           numbers({5}) + numbers({2}) + "\x89}ctorch\nuint16\ntR";
  const std::string file = archive("}" + text("w") + call + "s.");
  const auto checkpoint = parse_torch_archive(bytes_of(file), "f.pt");
  EXPECT_EQ(checkpoint->get("w").dtype, DType::kU16);
  EXPECT_EQ(checkpoint->get("w").shape, Shape{5});
}

TEST(TorchArchive, RefusesMalformedRebuilds) {
  const auto with = [](const std::string& value) { return outcome(archive("}" + text("w") + value + "s.")); };
  const std::string rebuild = "ctorch._utils\n_rebuild_tensor_v2\n";
  EXPECT_THAT(with(rebuild + ")R"), HasSubstr("rebuilt from 0 arguments"));
  EXPECT_THAT(with(rebuild + "(NNNNNNtR"), HasSubstr("its storage is a None"));
  EXPECT_THAT(with(rebuild + "(NQNNNNNtR"), HasSubstr("its storage is a persistent id"));
  EXPECT_THAT(with(rebuild + "((NNNNNtQNNNNNtR"), HasSubstr("persistent id is not"));
  EXPECT_THAT(with("ctorch._utils\n_rebuild_parameter\n)R"), HasSubstr("no tensor at the top level"));
  EXPECT_THAT(outcome(archive("N.")), HasSubstr("holds a None, expected a dict"));
  EXPECT_THAT(outcome(archive("}" + text("state_dict") + "Ns.")), HasSubstr("'state_dict' is a None"));
  EXPECT_THAT(outcome(archive("}(" + text("w") + tensor_pickle({}) + text("w") + tensor_pickle({}) + "u.")),
              HasSubstr("tensor 'w': appears twice"));
  // A dict that holds itself ends all the same.
  EXPECT_EQ(outcome(archive(P("}q\x00(") + text("self") + P("h\x00") + text("w") + tensor_pickle({}) + "u.")),
            "[2,3]");
}

// Row 3.
TEST(TorchArchive, EnforcesTheAllowListOfGlobals) {
  const std::string state = text("state_dict") + "}" + text("w") + tensor_pickle({});
  EXPECT_EQ(outcome(archive("}(" + state + "su.")), "[2,3]");
  const std::string opaque = text("hyper_parameters") + "cyacs.config\nCfgNode\n)\x81";
  EXPECT_EQ(outcome(archive("}(" + state + "s" + opaque + "u.")), "[2,3]")
      << "unknown classes beside the state_dict are opaque";
  EXPECT_THAT(outcome(archive("}(" + text("state_dict") + "}(" + text("w") + tensor_pickle({}) + text("x") +
                              "cyacs.config\nCfgNode\n)\x81uu.")),
              HasSubstr("the global 'yacs.config.CfgNode' is not on the allow-list of the state_dict"));
  EXPECT_THAT(outcome(archive("}(" + text("w") + tensor_pickle({}) + text("x") + "cmy\nClass\n)\x81u.")),
              HasSubstr("the global 'my.Class' is not on the allow-list of a plain state_dict"));
  const std::string evil = text("loops") + "cos\nsystem\n(" + text("true") + "tR";
  const std::string file = "}(" + state + "s" + evil + "u.";
  EXPECT_THAT(
      outcome(archive(file)),
      HasSubstr(fmt::format("pickle byte {}: the global 'os.system' is refused", file.find("cos\n"))));
}

TEST(TorchArchive, ChecksTheArchive) {
  const std::string pickle = "}" + text("w") + tensor_pickle({}) + "s.";
  EXPECT_EQ(outcome(archive(pickle, "little")), "[2,3]");
  EXPECT_THAT(outcome(archive(pickle, "big")), HasSubstr("big-endian"));
  EXPECT_THAT(outcome(archive(pickle, "odd")), HasSubstr("byteorder is 'odd'"));
  EXPECT_THAT(outcome(archive(pickle, std::string(1 << 20, 'x'))), HasSubstr("the bound here is 16"));
  EXPECT_THAT(outcome(TestZip().add("a/data.pkl", pickle).add("b/data.pkl", pickle).build()),
              HasSubstr("two pickles"));
  EXPECT_THAT(outcome(TestZip().add("a", "b").build()), HasSubstr("without data.pkl"));
  TestZipEntry damaged;
  damaged.name = "r/data/0";
  damaged.contents = std::string(24, '\0');
  damaged.central_crc = damaged.local_crc = 1;
  const std::string file = TestZip().add("r/data.pkl", pickle).add(damaged).build();
  const auto checkpoint = parse_torch_archive(bytes_of(file), "f.pt");
  EXPECT_THROW(checkpoint->verify(), Error);
}

// Row 22.
TEST(TorchArchive, SurvivesDamage) {
  const auto parse = [](std::span<const std::byte> bytes) {
    const auto checkpoint = parse_torch_archive(bytes, "f.pt");
    for (const auto& [name, view] : checkpoint->tensors()) {
      for (std::int64_t i = 0; i < std::min<std::int64_t>(view.shape.count(), 100); ++i) element(view, i);
    }
  };
  for (const char* name : {"module.pt", "lightning.ckpt", "deflated.pt"}) {
    expect_truncations_refused(contents_of(torch_data(name)), parse);
    survive_flips(contents_of(torch_data(name)), parse, 2000);
  }
  // The CRC of data.pkl stops most of those; here damage reaches the pickle.
  const std::string pickle = "}(" + text("w") + tensor_pickle({}) + text("v") + tensor_pickle({}) + "u.";
  survive_flips(
      pickle,
      [&](auto bytes) {
        const std::string file = archive(std::string(as_text(bytes)));
        parse(bytes_of(file));
      },
      20000);
}

// ---------------------------------------------------------------- the writer

TEST(TorchArchiveWriter, RoundTrips) {
  const TestFolder folder;
  const std::string path = folder.file("out.pt");
  std::vector<float> values(300);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 8;
  const std::vector<std::int64_t> large = {1, -(std::int64_t{1} << 40), 70000};
  {
    TorchArchiveWriter writer(path, {{"empty.first", DType::kF16, {0, 2}},
                                     {"w\u00e4", DType::kF32, {3, 100}},
                                     {"empty", DType::kBool, {0}},
                                     {"scalar", DType::kI64, {}},
                                     {"rest", DType::kI64, {2}},
                                     {"empty.last", DType::kF64, {5, 0}}});
    const auto bytes = std::as_bytes(std::span(values));
    writer.write(bytes.first(1));
    writer.write(bytes.subspan(1, 600));
    writer.write(bytes.subspan(601));
    writer.write(std::as_bytes(std::span(large)));  // one piece over two tensors
    writer.commit();
  }
  EXPECT_THAT(folder.names(), ElementsAre("out.pt"));
  const auto checkpoint = open_checkpoint(path);
  checkpoint->verify();
  EXPECT_EQ(checkpoint->tensors().size(), 6U);
  const TensorView& w = checkpoint->get("w\u00e4");
  EXPECT_EQ(w.shape, (Shape{3, 100}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w.data) % 64, 0U);
  for (std::int64_t i = 0; i < 300; ++i) EXPECT_EQ(element(w, i), values[i]);
  EXPECT_EQ(checkpoint->get("scalar").shape, Shape{});
  EXPECT_EQ(checkpoint->get("rest").as<std::int64_t>()[0], large[1]);
  EXPECT_EQ(checkpoint->get("empty.last").shape, (Shape{5, 0}));
}

TEST(TorchArchiveWriter, RefusesMisuseAndLeavesNothing) {
  const TestFolder folder;
  const std::string path = folder.file("out.pt");
  using Entries = std::vector<TorchArchiveWriter::Entry>;
  EXPECT_THROW(TorchArchiveWriter(path, Entries{{"a", DType::kF32, {1}}, {"a", DType::kF32, {1}}}), Error);
  EXPECT_THROW(TorchArchiveWriter(path, Entries{{"", DType::kF32, {1}}}), Error);
  EXPECT_THROW(TorchArchiveWriter(path, Entries{{"\xff", DType::kF32, {1}}}), Error);
  EXPECT_THROW(TorchArchiveWriter(path, Entries{{"a", DType::kU16, {1}}}), Error);
  EXPECT_THROW(TorchArchiveWriter(path, Entries{{"a", DType::kF64, {std::int64_t{1} << 61}}}), Error);
  {
    TorchArchiveWriter writer(path, Entries{{"a", DType::kU8, {3}}});
    const std::byte bytes[4] = {};
    writer.write(std::span(bytes).first(2));
    EXPECT_THROW(writer.commit(), Error) << "one byte is missing";
    EXPECT_THROW(writer.write(bytes), Error) << "three bytes too many";
  }
  EXPECT_TRUE(folder.names().empty());
  TorchArchiveWriter(path, {}).commit();
  EXPECT_TRUE(open_torch_archive(path)->tensors().empty());
}

}  // namespace
}  // namespace sinew
