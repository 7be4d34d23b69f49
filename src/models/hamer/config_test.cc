#include "models/hamer/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/memory_checkpoint.h"
#include "io/test_damage.h"
#include "io/test_folder.h"

namespace sinew::hamer {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Small in every extent, and different in each: a mix-up of two shows.
Config small() {
  Config config;
  config.embed = 160;
  config.mlp = 96;
  config.depth = 3;
  config.head_dim = 48;
  config.head_inner = 128;
  config.head_heads = 2;
  config.head_mlp = 40;
  config.head_depth = 2;
  return config;
}

/// Shapes without data: nothing here reads a weight.
class Shapes {
 public:
  explicit Shapes(const Config& config) {
    for (const ExpectedTensor& tensor : expected_tensors(config)) set(tensor.name, tensor.shape);
  }
  Shapes& set(const std::string& name, const Shape& shape, DType dtype = DType::kF32) {
    checkpoint_->add_view(name, TensorView(dtype, shape, nullptr));
    return *this;
  }
  Shapes& erase(const std::string& name) {
    EXPECT_NE(checkpoint_->find(name), nullptr) << name;
    left_out_.push_back(name);
    return *this;
  }
  Sources sources() const {
    Sources out;
    for (const auto& [name, view] : checkpoint_->tensors()) {
      if (std::ranges::count(left_out_, name) == 0) out.add(name, view, checkpoint_);
    }
    return out;
  }

 private:
  std::shared_ptr<MemoryCheckpoint> checkpoint_ = std::make_shared<MemoryCheckpoint>("memory");
  std::vector<std::string> left_out_;
};

Error error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::kIo, ""};
}

constexpr const char* kLayer = "mano_head.transformer.transformer.layers.";

TEST(ExpectedTensors, ArePublishedOnes) {
  const auto list = expected_tensors(Config{});
  // Spec hamer 2.2: 389 tensors of the backbone, 114 of the head; parameters 630 912 000 and 39 497 837 (the
  // three init_* buffers, 109 numbers, are no parameters).
  EXPECT_EQ(list.size(), 389U + 114U);
  std::int64_t backbone = 0;
  std::int64_t head = 0;
  for (const ExpectedTensor& tensor : list) {
    (tensor.name.starts_with("backbone.") ? backbone : head) += tensor.shape.count();
  }
  EXPECT_EQ(backbone, 630'912'000);
  EXPECT_EQ(head, 39'497'837 + 109);
}

TEST(DeriveConfig, ReadsEverySizeFromTheShapes) {
  for (const Config& truth : {Config{}, small()}) {
    const Config config = derive_config(Shapes(truth).sources(), "x.ckpt");
    EXPECT_EQ(config.embed, truth.embed);
    EXPECT_EQ(config.heads(), truth.embed / 80);
    EXPECT_EQ(config.mlp, truth.mlp);
    EXPECT_EQ(config.depth, truth.depth);
    EXPECT_EQ(config.head_dim, truth.head_dim);
    EXPECT_EQ(config.head_inner, truth.head_inner);
    EXPECT_EQ(config.head_heads, truth.head_heads);
    EXPECT_EQ(config.head_mlp, truth.head_mlp);
    EXPECT_EQ(config.head_depth, truth.head_depth);
    EXPECT_EQ(config.focal_length, 5000);
  }
}

TEST(DeriveConfig, IgnoresWhatInferenceDoesNotUse) {
  Shapes shapes(small());
  shapes.set("initialized", {}, DType::kBool).set("discriminator.D_conv1.weight", {32, 9, 1, 1});
  shapes.set("mano.faces_tensor", {1538, 3}, DType::kI64).set("backbone.blocks.x.norm1.weight", {160});
  shapes.set("backbone.blocks.99999999999999999999.norm1.weight", {160})
      .set("backbone.blocks.-1.norm1.weight", {160});
  const Config config = derive_config(shapes.sources(), "x.ckpt");
  EXPECT_EQ(config.depth, 3);
  EXPECT_NO_THROW(check_tensors(shapes.sources(), config, "x.ckpt"));
}

TEST(DeriveConfig, RefusesWhatIsNoHamer) {
  Shapes other(small());
  const auto refused = [](const Sources& sources) {
    return error_of([&] { derive_config(sources, "x.ckpt"); });
  };
  EXPECT_THAT(refused(Sources{}).what(), HasSubstr("x.ckpt: none of its 0 tensors"));
  auto foreign = std::make_shared<MemoryCheckpoint>("memory");
  foreign->add_view("encoder.weight", TensorView(DType::kF32, {2}, nullptr));
  Sources sources;
  sources.add_all(foreign);
  const Error error = refused(sources);
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_THAT(error.what(), HasSubstr("no HaMeR checkpoint"));
  EXPECT_NE(error.hint(), "");

  auto empty = std::make_shared<MemoryCheckpoint>("memory");
  empty->add_view("backbone.pos_embed", TensorView(DType::kF32, {1, 193, 160}, nullptr));
  Sources no_blocks;
  no_blocks.add_all(empty);
  EXPECT_THAT(refused(no_blocks).what(), HasSubstr("no backbone.blocks.*"));
  empty->add_view("backbone.blocks.0.norm1.weight", TensorView(DType::kF32, {160}, nullptr));
  Sources no_layers;
  no_layers.add_all(empty);
  EXPECT_THAT(refused(no_layers).what(), HasSubstr(kLayer));
}

TEST(DeriveConfig, RefusesWidthsTheNetworkCannotHave) {
  const auto refused = [](Shapes& shapes) {
    return error_of([&] { derive_config(shapes.sources(), "x.ckpt"); });
  };
  Shapes odd(small());
  EXPECT_THAT(refused(odd.set("backbone.pos_embed", {1, 193, 100})).what(),
              HasSubstr("100 channels, expected a multiple of 80"));
  Shapes heads(small());
  EXPECT_THAT(refused(heads.set(std::string(kLayer) + "0.1.fn.to_q.weight", {130 + 63, 48})).what(),
              HasSubstr("193 rows"));
}

/// Extents that a file gets for nothing (another axis is empty, a stride is zero) must not overflow sizes
/// made from them (hostile_inputs row 13).
TEST(DeriveConfig, RefusesAbsurdWidths) {
  constexpr std::int64_t kHuge = 80 * (std::int64_t{1} << 55);
  const std::pair<std::string, Shape> cases[] = {{"backbone.pos_embed", {1, 0, kHuge}},
                                                 {"backbone.blocks.0.mlp.fc1.weight", {kHuge, 0}},
                                                 {"mano_head.transformer.pos_embedding", {0, 1, kHuge}},
                                                 {std::string(kLayer) + "0.1.fn.to_q.weight", {kHuge, 0}},
                                                 {std::string(kLayer) + "0.2.fn.net.0.weight", {kHuge, 0}}};
  for (const auto& [name, shape] : cases) {
    Shapes shapes(small());
    shapes.set(name, shape);
    const Error error = error_of([&] { derive_config(shapes.sources(), "x.ckpt"); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

TEST(CheckTensors, AcceptsEveryFloatType) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    Shapes shapes(small());
    for (const ExpectedTensor& tensor : expected_tensors(small()))
      shapes.set(tensor.name, tensor.shape, dtype);
    EXPECT_NO_THROW(check_tensors(shapes.sources(), small(), "x.ckpt"));
  }
}

TEST(CheckTensors, ListsEveryProblemAtOnce) {
  Shapes shapes(small());
  shapes.erase("backbone.last_norm.bias")
      .erase("mano_head.init_cam")
      .erase("backbone.blocks.1.attn.qkv.weight");
  shapes.set("mano_head.deccam.weight", {3, 47}).set("backbone.blocks.2.norm1.weight", {160}, DType::kI64);
  const Error error = error_of([&] { check_tensors(shapes.sources(), small(), "x.ckpt"); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  const std::string what = error.what();
  EXPECT_THAT(what, testing::StartsWith(fmt::format("x.ckpt: 3 of {} tensors missing, 2 unusable: ",
                                                    expected_tensors(small()).size())));
  EXPECT_THAT(what, HasSubstr("backbone.last_norm.bias [160] is missing"));
  EXPECT_THAT(what, HasSubstr("mano_head.init_cam [1,3] is missing"));
  EXPECT_THAT(what, HasSubstr("backbone.blocks.1.attn.qkv.weight [480,160] is missing"));
  EXPECT_THAT(what, HasSubstr("mano_head.deccam.weight has shape [3,47], expected [3,48]"));
  EXPECT_THAT(what, HasSubstr("backbone.blocks.2.norm1.weight has dtype i64, expected a float type"));
}

/// Each tensor alone: leaving it out is noticed, and it is the one that is named.
TEST(CheckTensors, EveryTensorCounts) {
  for (const ExpectedTensor& tensor : expected_tensors(small())) {
    Shapes shapes(small());
    shapes.erase(tensor.name);
    const Error error = error_of([&] { check_tensors(shapes.sources(), small(), "x.ckpt"); });
    EXPECT_THAT(error.what(), HasSubstr(tensor.name + " " + to_string(tensor.shape) + " is missing"));
    EXPECT_THAT(error.what(), HasSubstr("1 of"));
  }
}

// --- model_config.yaml ---

constexpr const char* kPublished = R"(MODEL:
  IMAGE_SIZE: 256
  IMAGE_MEAN: [0.485, 0.456, 0.406]
  IMAGE_STD: [0.229, 0.224, 0.225]
  BACKBONE:
    TYPE: vit
    PRETRAINED_WEIGHTS: /no/such/training/path.pth
  MANO_HEAD:
    TYPE: transformer_decoder
    IN_CHANNELS: 2048
    TRANSFORMER_DECODER:
      depth: 6
      heads: 8
      mlp_dim: 1024
      dim_head: 64
      dropout: 0.0
      emb_dropout: 0.0
      norm: layer
      context_dim: 1280
EXTRA:
  FOCAL_LENGTH: 5000
  PELVIS_IND: 0
MANO:
  DATA_DIR: ./_DATA/data/
  MODEL_PATH: data/mano
  GENDER: neutral
  NUM_HAND_JOINTS: 15
  MEAN_PARAMS: data/mano_mean_params.npz
  CREATE_BODY_POSE: false
)";

Config applied(const std::string& text, Config config = {}) {
  apply_yaml_text(text, "model_config.yaml", config);
  return config;
}

Error refused(const std::string& text) {
  Error error = error_of([&] { applied(text); });
  EXPECT_THAT(error.what(), HasSubstr("model_config.yaml: "));
  EXPECT_LT(std::string(error.what()).size(), 600U);
  return error;
}

TEST(Yaml, ThePublishedFileFitsThePublishedCheckpoint) {
  const Config config = applied(kPublished);
  EXPECT_EQ(config.head_heads, 8);
  EXPECT_EQ(config.ief_iters, 1);
  EXPECT_EQ(config.focal_length, 5000);
  EXPECT_EQ(config.image_mean, (std::array{0.485, 0.456, 0.406}));
  EXPECT_EQ(config.image_std, (std::array{0.229, 0.224, 0.225}));
}

TEST(Yaml, ReadsWhatItSays) {
  EXPECT_EQ(applied("EXTRA: {FOCAL_LENGTH: 122}").focal_length, 122) << "an edited copy is taken at its word";
  EXPECT_EQ(applied("MODEL: {IMAGE_MEAN: [0.5, 0.25, 0.125]}").image_mean, (std::array{0.5, 0.25, 0.125}));
  EXPECT_EQ(applied("MODEL: {IMAGE_STD: [1, 2, 3]}").image_std, (std::array{1.0, 2.0, 3.0}));
  EXPECT_EQ(applied("MODEL: {MANO_HEAD: {IEF_ITERS: 3, JOINT_REP: 6d, TRANSFORMER_INPUT: zero}}").ief_iters,
            3);
  const Config heads = applied("MODEL: {MANO_HEAD: {TRANSFORMER_DECODER: {dim_head: 32, heads: 16}}}");
  EXPECT_EQ(heads.head_heads, 16);
  // Absent or null: the published value.
  for (const char* text : {"{}", "MODEL: ~", "MODEL: {IMAGE_MEAN: null}", "EXTRA:", "OTHER: [1, 2]"}) {
    EXPECT_EQ(applied(text).focal_length, 5000) << text;
  }
  EXPECT_NO_THROW(applied("MODEL: {BBOX_SHAPE: [192, 256]}")) << "what the loader sets when it is absent";
}

TEST(Yaml, NamesEveryContradiction) {
  Config config;
  config.head_depth = 2;
  config.embed = 320;
  config.head_mlp = 96;
  const Error error = error_of([&] { apply_yaml_text(kPublished, "model_config.yaml", config); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_THAT(error.what(), HasSubstr("TRANSFORMER_DECODER.depth is 6, the tensors say 2"));
  EXPECT_THAT(error.what(), HasSubstr("context_dim is 1280, the tensors say 320"));
  EXPECT_THAT(error.what(), HasSubstr("mlp_dim is 1024, the tensors say 96"));
  EXPECT_THAT(error.what(), Not(HasSubstr("heads is")));
  EXPECT_THAT(refused("MODEL: {MANO_HEAD: {TRANSFORMER_DECODER: {heads: 4}}}").what(),
              HasSubstr("heads is 4, the tensors say 8"));
  for (const char* dim : {"0", "-64", "100", "9223372036854775807"}) {
    EXPECT_EQ(
        refused(fmt::format("MODEL: {{MANO_HEAD: {{TRANSFORMER_DECODER: {{dim_head: {}}}}}}}", dim)).code(),
        ErrorCode::kMismatch);
  }
}

TEST(Yaml, RefusesOtherNetworks) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {{"MODEL: {BACKBONE: {TYPE: resnet}}", "MODEL.BACKBONE.TYPE is resnet, only vit is supported"},
               {"MODEL: {MANO_HEAD: {TYPE: mlp}}", "MODEL.MANO_HEAD.TYPE is mlp"},
               {"MODEL: {MANO_HEAD: {JOINT_REP: aa}}", "JOINT_REP is aa, only 6d"},
               {"MODEL: {MANO_HEAD: {TRANSFORMER_INPUT: mean_shape}}", "TRANSFORMER_INPUT is mean_shape"},
               {"MODEL: {MANO_HEAD: {TRANSFORMER_DECODER: {norm: batch}}}", "norm is batch, only layer"},
               {"MODEL: {IMAGE_SIZE: 224}", "MODEL.IMAGE_SIZE is 224, only 256 is supported"},
               {"MODEL: {BBOX_SHAPE: [256, 256]}", "MODEL.BBOX_SHAPE is [256, 256], only [192, 256]"},
               {"MODEL: {BBOX_SHAPE: [192]}", "MODEL.BBOX_SHAPE is [192]"}};
  for (const auto& c : cases) {
    const Error error = refused(c.text);
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << c.text;
    EXPECT_THAT(error.what(), HasSubstr(c.message));
  }
}

TEST(Yaml, NamesTheKeyOfAWrongType) {
  const struct {
    const char* text;
    const char* key;
  } cases[] = {{"MODEL: 3", "MODEL must be a mapping"},
               {"MODEL: [1, 2]", "MODEL must be a mapping"},
               {"MODEL: {BACKBONE: vit}", "MODEL.BACKBONE must be a mapping"},
               {"EXTRA: text", "EXTRA must be a mapping"},
               {"MODEL: {IMAGE_SIZE: big}", "MODEL.IMAGE_SIZE"},
               {"MODEL: {IMAGE_SIZE: 256.5}", "MODEL.IMAGE_SIZE"},
               {"MODEL: {IMAGE_SIZE: [256]}", "MODEL.IMAGE_SIZE"},
               {"MODEL: {IMAGE_MEAN: 0.5}", "MODEL.IMAGE_MEAN"},
               {"MODEL: {IMAGE_MEAN: [1, 2]}", "MODEL.IMAGE_MEAN must be three"},
               {"MODEL: {IMAGE_MEAN: [1, 2, x]}", "MODEL.IMAGE_MEAN"},
               {"MODEL: {IMAGE_STD: [1, 0, 1]}", "MODEL.IMAGE_STD must be three"},
               {"MODEL: {IMAGE_STD: [1, .nan, 1]}", "MODEL.IMAGE_STD must be three"},
               {"MODEL: {IMAGE_STD: [1, -1, 1]}", "MODEL.IMAGE_STD must be three"},
               {"EXTRA: {FOCAL_LENGTH: far}", "EXTRA.FOCAL_LENGTH"},
               {"EXTRA: {FOCAL_LENGTH: -5000}", "EXTRA.FOCAL_LENGTH is -5000"},
               {"EXTRA: {FOCAL_LENGTH: .inf}", "EXTRA.FOCAL_LENGTH is inf"},
               {"EXTRA: {FOCAL_LENGTH: .nan}", "EXTRA.FOCAL_LENGTH is nan"},
               {"MODEL: {MANO_HEAD: {IEF_ITERS: 0}}", "IEF_ITERS is 0"},
               {"MODEL: {MANO_HEAD: {IEF_ITERS: 1000000}}", "IEF_ITERS is 1000000"},
               {"MODEL: {MANO_HEAD: {TRANSFORMER_DECODER: {depth: 99999999999999999999}}}", "depth"},
               {"MODEL: {BACKBONE: {TYPE: [vit]}}", "MODEL.BACKBONE.TYPE"}};
  for (const auto& c : cases) {
    const Error error = refused(c.text);
    EXPECT_EQ(error.code(), ErrorCode::kFormat) << c.text;
    EXPECT_THAT(error.what(), HasSubstr(c.key)) << c.text;
  }
}

TEST(Yaml, GarbageGivesOneShortLine) {
  for (const std::string& text :
       {std::string(""), std::string("just words"), std::string("- a\n- b"), std::string("3"),
        std::string("MODEL: {"), std::string("MODEL: [1,\n2"), std::string("a: b: c"),
        std::string("\t\tx: y"), std::string("%YAML 9.9\n---\nx"), std::string("*nowhere"),
        std::string("\0\0\0\0", 4), std::string("\xff\xfe\x00", 3), std::string("&a *a"),
        std::string("? ? ? ?")}) {
    EXPECT_EQ(refused(text).code(), ErrorCode::kFormat) << text;
  }
  // A hostile word is neither long nor multi-line in the message.
  EXPECT_THAT(refused("MODEL: {BACKBONE: {TYPE: \"a\\nb\"}}").what(), HasSubstr("a\\x0ab"));
  refused("MODEL: {BACKBONE: {TYPE: " + std::string(100'000, 'x') + "}}");
}

TEST(Yaml, BoundsNestingAndSize) {
  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    std::string text;
    while (text.size() < 900'000) text += open;
    EXPECT_THAT(refused(text).code(), testing::AnyOf(ErrorCode::kFormat, ErrorCode::kLimit)) << open;
  }
  std::string block;
  for (int depth = 0; depth < 1200; ++depth)
    block += std::string(static_cast<std::size_t>(depth), ' ') + "a:\n";
  EXPECT_EQ(refused(block).code(), ErrorCode::kFormat);
  EXPECT_EQ(refused("# " + std::string(2 << 20, 'x') + "\nMODEL: {}\n").code(), ErrorCode::kLimit);
  // Aliases that would expand to 10^9 nodes, and one that holds itself.
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format(
        "a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_NO_THROW(applied(bomb + "MODEL: {IMAGE_SIZE: 256}\n"));
  EXPECT_EQ(refused(bomb + "MODEL: {IMAGE_MEAN: *a8}\n").code(), ErrorCode::kFormat);
  EXPECT_EQ(refused("MODEL: &m {IMAGE_MEAN: *m}\n").code(), ErrorCode::kFormat);
}

TEST(Yaml, SurvivesDamage) {
  const std::string published = kPublished;
  const auto parse = [](std::span<const std::byte> bytes) {
    applied(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  };
  for (std::size_t size = 0; size < published.size(); size += 7)
    parse_outcome(published.substr(0, size), parse);
  survive_flips(published, parse, 300);
}

TEST(Yaml, ReadsAFile) {
  const TestFolder folder;
  write_file_atomically(folder.file("c.yaml"), "EXTRA: {FOCAL_LENGTH: 600}\n");
  Config config;
  apply_yaml(folder.file("c.yaml"), config);
  EXPECT_EQ(config.focal_length, 600);
  EXPECT_EQ(error_of([&] { apply_yaml(folder.file("missing.yaml"), config); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace sinew::hamer
